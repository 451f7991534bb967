// SPDX-License-Identifier: MIT
// The records of `snapkv eval overlap`: whether windows of a prompt attend to the same tokens as
// generation does, layer by layer, and whether that depends on the question.
import { css, origin } from "../colour";
import type { EvalRecord } from "../data";
import { number, percent, plural } from "../format";
import type { Line, LinesSpec } from "../lines";
import { groupBy, meanOf } from "../stats";

interface Coverage {
  overlap: number;
  hit: number | null;
}

/** The two measures of a record: eval/overlap/overlap.h. */
export type Measure = "overlap" | "hit";
export const kMeasures: { measure: Measure; label: string }[] = [
  { measure: "overlap", label: "overlap of the highest tokens" },
  { measure: "hit", label: "hit rate" },
];

const kWhat: Record<Measure, string> = {
  overlap: "share of the highest tokens in common",
  hit: "share of the used tokens that are selected",
};

type Layer = Record<string, Coverage & Coverage[]>;

export function overlapRecords(records: EvalRecord[], part: "windows" | "questions"): EvalRecord[] {
  return records.filter((r) => r.task === "overlap" && r.part === part);
}

/** Mean over the records that have a value; undefined if none has. */
function meanAt(records: EvalRecord[], pick: (layer: Layer) => Coverage | undefined, il: number, measure: Measure) {
  const values = records.map((r) => pick((r.layers as Layer[])[il])?.[measure])
    .filter((v): v is number => typeof v === "number");
  return values.length > 0 ? meanOf(values) : undefined;
}

const layersOf = (records: EvalRecord[]) => (records[0].layers as Layer[]).length;

/** A line for each layer, early ones blue and late ones red, and one for the mean of all. */
export function layerLines(records: EvalRecord[], field: "windows" | "generation", x: (i: number) => number,
  measure: Measure): Line[] {
  const n = layersOf(records);
  const nPoints = (records[0].layers as Layer[])[0][field].length;
  const line = (layers: number[]) => Array.from({ length: nPoints }, (_, i) => {
    const values = layers.map((il) => meanAt(records, (layer) => layer[field][i], il, measure))
      .filter((v): v is number => v !== undefined);
    return values.length > 0 ? [{ x: x(i), y: meanOf(values) }] : [];
  }).flat();
  const all = Array.from({ length: n }, (_, il) => il);
  return [
    ...all.map((il) => ({ name: `layer ${il}`, points: line([il]), symbols: false,
      colour: css(origin(n > 1 ? il / (n - 1) : 0)) })),
    { name: "mean of layers", points: line(all), dash: "dashed" as const, width: 3,
      colour: "ink", symbols: false },
  ];
}

// Tokens drawn at random would reach the selected share in both measures.
function chance(records: EvalRecord[]): Line {
  return { name: "by chance", band: true, dash: "dotted", colour: "ink", width: 1.5,
    points: [{ x: 0, y: records[0].p as number }] };
}

function parameters(records: EvalRecord[]): string {
  const [r] = records;
  return `${plural(records.length, "prompt")}; a window selects its highest ${percent(r.p as number)}` +
    ` of the tokens, used means more than ${number(r.theta as number)} of the attention. The dotted line is what tokens drawn at random ` +
    "would reach.";
}

export function windowsSpec(records: EvalRecord[], measure: Measure): LinesSpec {
  const n = records[0].n_windows as number, w = records[0].window_length as number;
  return {
    name: "overlap-windows", title: "Do windows of the prompt see what generation sees?",
    caption: `For each of the prompt’s last ${n} windows of ${plural(w, "token")} and each layer: how much of what the ` +
      `generated tokens attend to it already attends to. ${parameters(records)} High at the right end is what SnapKV needs.`,
    xName: "window, counted back from the end of the prompt", yName: kWhat[measure], yMin: 0, yMax: 1,
    xStep: Math.max(1, Math.ceil(n / 10)), xText: (x) => `${x}`, yText: percent,
    lines: [...layerLines(records, "windows", (i) => i - n, measure), chance(records)],
  };
}

export function generationSpec(records: EvalRecord[], measure: Measure): LinesSpec {
  const w = records[0].window_length as number;
  return {
    name: "overlap-generation", title: "Does it last while the answer grows?",
    caption: `How much of what each window of ${plural(w, "token")} after the prompt attends to is also attended to by ` +
      `the prompt’s last window. ${parameters(records)}`,
    xName: "window after the prompt", yName: kWhat[measure], yMin: 0, yMax: 1,
    xStep: 1, xText: (x) => `${x}`, yText: percent,
    lines: [...layerLines(records, "generation", (i) => i + 1, measure), chance(records)],
  };
}

export function questionsSpec(records: EvalRecord[], measure: Measure): LinesSpec {
  const line = (field: string, name: string): Line => ({
    name,
    points: Array.from({ length: layersOf(records) }, (_, il) => {
      const y = meanAt(records, (layer) => layer[field], il, measure);
      return y === undefined ? [] : [{ x: il, y }];
    }).flat(),
  });
  return {
    name: "overlap-questions", title: "Does it depend on the question?",
    caption: "Per layer: how much of what one question and its answer use is selected by another question of the same " +
      "document, and how much of what the answer uses the prompt’s end selects, with the question last and with the " +
      `question first. ${parameters(records)}`,
    xName: "layer", yName: kWhat[measure], yMin: 0, yMax: 1,
    xStep: Math.max(1, Math.ceil(layersOf(records) / 16)), xText: (x) => `${x}`, yText: percent,
    lines: [line("question_last", "question last"), line("question_first", "question first"),
      line("other_question", "another question"), chance(records)],
  };
}

/** Groups of records that may share a chart: those of one kind of prompt. */
export function overlapGroups(records: EvalRecord[]): { label: string; records: EvalRecord[] }[] {
  const key = (r: EvalRecord) => `${r.model} ${r.id}`.replace(/ sample \d+/, "");
  return [...groupBy(records, key)].map(([label, group]) => ({ label, records: group }));
}
