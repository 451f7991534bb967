// SPDX-License-Identifier: MIT
// Turns the positions in an answer's report into the map of kept positions and the shaded prompt.
import { columnBegin, columnOf } from "../data";
import type { KeptData } from "../inspect/kept_map";

const kColumns = 1024;
const kRows = 256;

/** The first of n items in group i of `groups`. */
const bound = (i: number, n: number, groups: number) => Math.floor((i * n) / groups);

/** `positions`: [n_layer][n_head_kv]; layers share a row if there are too many. */
export function keptData(positions: number[][][], nTokens: number): KeptData {
  const nLayer = positions.length;
  const nHead = positions[0]?.length ?? 0;
  const nColumns = Math.min(nTokens, kColumns);
  const groups = Math.min(nLayer, Math.max(1, Math.floor(kRows / Math.max(1, nHead))));
  const rows: KeptData["rows"] = [];
  const kept: number[][] = [];
  for (let g = 0; g < groups; ++g) {
    const [begin, end] = [bound(g, nLayer, groups), bound(g + 1, nLayer, groups)];
    for (let h = 0; h < nHead; ++h) {
      const counts = new Array<number>(nColumns).fill(0);
      for (let il = begin; il < end; ++il) {
        for (const p of positions[il][h]) if (p < nTokens) ++counts[columnOf(p, nColumns, nTokens)];
      }
      rows.push({ layer_begin: begin, layer_end: end, head_begin: h, head_end: h + 1 });
      kept.push(counts.map((n, c) => {
        const width = columnBegin(c + 1, nColumns, nTokens) - columnBegin(c, nColumns, nTokens);
        return Math.round((1000 * n) / (width * (end - begin)));
      }));
    }
  }
  return { n_tokens: nTokens, n_columns: nColumns, rows, kept, text: [],
    model: { n_layer: nLayer, n_head_kv: nHead } };
}

/** For each token: number of (layer, KV head) pairs that kept it. */
export function keptBy(positions: number[][][], nTokens: number): Uint32Array {
  const counts = new Uint32Array(nTokens);
  for (const head of positions.flat()) for (const p of head) if (p < nTokens) ++counts[p];
  return counts;
}

const kPassage = 64; // tokens: a few sentences

/** Where the passage begins of which most is kept; 0 where no passage has more than the others. The
 *  window at the end and the first tokens, which every head keeps, are no passage. */
export function densestPassage(counts: Uint32Array, heads: number): number {
  let begin = 0;
  let end = counts.length;
  while (begin < end && counts[begin] === heads) ++begin;
  while (end > begin && counts[end - 1] === heads) --end;
  const size = Math.min(kPassage, end - begin);
  let sum = 0;
  for (let i = begin; i < begin + size; ++i) sum += counts[i];
  let best = { at: 0, sum };
  for (let i = begin; i + size < end; ++i) {
    sum += counts[i + size] - counts[i];
    if (sum > best.sum) best = { at: i + 1, sum };
  }
  // not in the middle of what is kept
  while (best.at > 0 && best.at < end && counts[best.at] === 0) ++best.at;
  return best.at;
}

/** Texts of tokens: bytes that are part of a character go to the token that completes it. */
export function pieceTexts(tokens: { piece: string | number[] }[]): string[] {
  const encoder = new TextEncoder();
  const decoder = new TextDecoder();
  return tokens.map(({ piece }, i) => decoder.decode(
    typeof piece === "string" ? encoder.encode(piece) : Uint8Array.from(piece),
    { stream: i + 1 < tokens.length }));
}
