// SPDX-License-Identifier: MIT
// The records of `snapkv eval fidelity`: how far a compressed cache moves the predictions, position
// by position after the prompt.
import type { EvalRecord } from "../data";
import { count, number, percent, plural } from "../format";
import type { Line, LinesSpec, Point } from "../lines";
import { groupBy, meanOf } from "../stats";
import { Namer } from "./configurations";

type Field = "kl" | "agreement" | "nll";

export const kFidelityMeasures: { field: Field; label: string; axis: string; explain: string; share: boolean }[] = [
  { field: "kl", label: "divergence from the full cache", axis: "KL divergence (nats)", share: false,
    explain: "the KL divergence of the predictions from the full cache’s; 0 is no change" },
  { field: "agreement", label: "same likeliest token", axis: "same likeliest token", share: true,
    explain: "the share of positions where the likeliest token is the full cache’s" },
  { field: "nll", label: "surprise at the true token", axis: "-ln p (nats)", share: false,
    explain: "the mean of -ln p of the token that truly follows; its exponential is the perplexity" },
];

const kBins = 64;

export function fidelityRecords(records: EvalRecord[]): EvalRecord[] {
  return records.filter((r) => r.task === "fidelity" && Array.isArray(r.kl));
}

/** Means over the records; where there are more than kBins positions, over neighbouring ones too. */
export function curve(records: EvalRecord[], field: Field): Point[] {
  const rows = records.map((r) => r[field] as number[]);
  const n = rows.reduce((a, row) => Math.max(a, row.length), 0);
  const bins = Math.min(kBins, n);
  const points: Point[] = [];
  for (let b = 0; b < bins; ++b) {
    const begin = Math.floor((b * n) / bins), end = Math.floor(((b + 1) * n) / bins);
    const values = rows.flatMap((row) => row.slice(begin, end)).filter((v) => typeof v === "number");
    if (values.length > 0) points.push({ x: (begin + end + 1) / 2, y: meanOf(values) });
  }
  return points;
}

export interface FidelityChoice {
  label: string;
  records: EvalRecord[];
}

/** All prompts and those of each length. */
export function fidelityChoices(records: EvalRecord[]): FidelityChoice[] {
  const lengths = groupBy(records, (r) => String(r.length));
  const each = [...lengths].sort(([a], [b]) => Number(a) - Number(b))
    .map(([length, group]) => ({ label: `prompts of ${plural(Number(length), "token")}`, records: group }));
  return each.length > 1 ? [{ label: "all prompts", records }, ...each] : each;
}

export function fidelitySpec(choice: FidelityChoice, measure: number): LinesSpec {
  const { field, axis, explain, share } = kFidelityMeasures[measure];
  const namer = new Namer(choice.records);
  const groups = [...groupBy(choice.records, (r) => namer.full(r.configuration))];
  const lines = groups
    .filter(([, group]) => field === "nll" || group[0].configuration.policy !== "full")
    .map(([name, group]): Line => ({ name, points: curve(group, field), symbols: false }));
  const n = choice.records.reduce((a, r) => Math.max(a, (r[field] as number[]).length), 0);
  const passages = Math.max(...groups.map(([, group]) => group.length));
  return {
    name: "fidelity", title: "How far the predictions move",
    caption: `For each position after the prompt, ${explain}. Mean of ${plural(passages, "passage")}` +
      `${n > kBins ? ` and of ${kBins} stretches of positions` : ""}.`,
    xName: "position after the prompt", yName: axis, yMin: field === "nll" ? undefined : 0,
    yMax: share ? 1 : undefined, xText: (x) => count(x), yText: share ? percent : number, lines,
  };
}
