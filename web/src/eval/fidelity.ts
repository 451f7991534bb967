// SPDX-License-Identifier: MIT
// The records of `snapkv eval fidelity`: how far a compressed cache moves the predictions, position
// by position after the prompt.
import type { EvalRecord } from "../data";
import { count, number, percent, plural } from "../format";
import type { Line, LinesSpec, Point } from "../lines";
import { groupBy, meanInterval, meanOf } from "../stats";
import { Namer } from "./configurations";
import { placeOf } from "./quality";

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

/** Means over the records; with more than kBins positions, also over neighbouring positions. */
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

/** All prompts together, and those of each length. */
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

/** Whether there are budgets against which to draw the measures. */
export function hasBudgets(records: EvalRecord[]): boolean {
  return records.some((r) => placeOf(r) !== undefined);
}

/** The measures against the budget: the mean of the passages' means, with its interval. */
export function fidelityBudgetSpec(choice: FidelityChoice, measure: number): LinesSpec {
  const { field, axis, explain, share } = kFidelityMeasures[measure];
  const namer = new Namer(choice.records);
  const shares = choice.records.some((r) => r.configuration.ratio !== undefined);
  const within = (y: number | undefined) =>
    y === undefined ? y : Math.max(field === "nll" ? -Infinity : 0, share ? Math.min(1, y) : y);
  const at = (group: EvalRecord[], x: number): Point => {
    const { mean, low, high } = meanInterval(group.map((r) => meanOf(r[field] as number[])));
    return { x, y: mean, low: within(low), high: within(high), note: `of ${plural(group.length, "passage")}` };
  };
  const lines = [...groupBy(choice.records, (r) => namer.series(r.configuration))].flatMap(([name, group]): Line[] => {
    if (group[0].configuration.policy === "full") {
      return field === "nll" ? [{ name, band: true, colour: "ink", points: [at(group, 0)] }] : [];
    }
    const points = [...groupBy(group, (r) => String(placeOf(r)))].map(([x, same]) => at(same, Number(x)));
    return [{ name, points: points.sort((a, b) => a.x - b.x) }];
  });
  return {
    name: "fidelity-budget", title: "Predictions against budget",
    caption: `For ${choice.label}, by what each KV head keeps: ${explain}. Bars are 95% intervals of the mean over ` +
      `passages${field === "nll" ? "; the dashed line and its band are the full cache" : ""}.`,
    xName: shares ? "share of the prompt that is kept" : "budget (entries kept per layer and KV head)", yName: axis,
    xLog: true, yMin: field === "nll" ? undefined : 0, yMax: share ? 1 : undefined, dodge: true,
    xText: shares ? percent : count, yText: share ? percent : number, lines,
  };
}
