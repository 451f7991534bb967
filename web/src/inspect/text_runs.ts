// SPDX-License-Identifier: MIT
// Splits a shaded text into blocks, and into runs of one shade, to need fewer elements for long
// prompts.

/** Number of different shades. */
export const kLevels = 24;
const kBlock = 1200; // tokens; a block ends at the next line end, if that comes soon

/** Ends of the blocks: after a line end if there is one nearby, so that no line breaks early. */
export function blockEnds(pieces: string[]): number[] {
  const ends: number[] = [];
  let begin = 0;
  for (let i = 0; i < pieces.length; ++i) {
    const n = i + 1 - begin;
    if ((n >= kBlock && pieces[i].endsWith("\n")) || n >= 4 * kBlock) {
      ends.push(i + 1);
      begin = i + 1;
    }
  }
  if (begin < pieces.length) ends.push(pieces.length);
  return ends;
}

export interface Run {
  begin: number; // relative to the part
  end: number;
  level: number; // 0 to kLevels
}

/** Gives each shaded token a run of its own, and joins neighbours without a shade, to need fewer elements. */
export function runsOf(levels: Float64Array, begin: number, end: number, alone: (i: number) => boolean): Run[] {
  const runs: Run[] = [];
  for (let i = begin; i < end; ++i) {
    const level = Math.round(Math.max(0, Math.min(1, levels[i])) * kLevels);
    const last = runs[runs.length - 1];
    if (last && level === 0 && last.level === 0 && !alone(i) && !alone(last.begin)) last.end = i + 1;
    else runs.push({ begin: i, end: i + 1, level });
  }
  return runs;
}
