// SPDX-License-Identifier: MIT
// Quality against budget: a line for each policy, with intervals.
import type { EvalRecord } from "../data";
import { count, percent, plural } from "../format";
import type { Line, LinesSpec } from "../lines";
import { distinct, groupBy, meanOf, wilson } from "../stats";
import { isAutomatic, lengthOf, Namer } from "./configurations";

export type Scored = EvalRecord & { score: number };

/** The budget or ratio of a configuration; undefined for the full cache. */
export function placeOf(r: EvalRecord): number | undefined {
  return r.configuration.ratio ?? r.configuration.budget;
}

/** Rows kept per layer and KV head; undefined where the record does not tell. */
function rowsKept(r: EvalRecord): number | undefined {
  const { kv_bytes, kv_bytes_full } = r;
  if (typeof kv_bytes !== "number" || typeof kv_bytes_full !== "number") return undefined;
  return r.n_prompt * kv_bytes / kv_bytes_full;
}

/** Where records of one budget stand: at the budget, or at the mean of what each prompt kept. */
function placeOfAll(records: EvalRecord[]): number {
  const budget = Number(placeOf(records[0]));
  if (!isAutomatic(records[0].configuration)) return budget;
  return Math.round(meanOf(records.map((r) => rowsKept(r) ?? budget)));
}

/** A choice on the page: all tasks together, one task, or one length of prompts. */
export interface Selection {
  label: string;
  records: Scored[];
}

export function selections(records: Scored[], task: (r: EvalRecord) => string): Selection[] {
  const all: Selection[] = [{ label: "all prompts", records }];
  const tasks = groupBy(records, task);
  if (tasks.size > 1) tasks.forEach((group, label) => all.push({ label, records: group }));
  const lengths = groupBy(records.filter((r) => lengthOf(r) !== undefined), (r) => String(lengthOf(r)));
  if (lengths.size > 1) {
    [...lengths].sort(([a], [b]) => Number(a) - Number(b)).forEach(([length, group]) =>
      all.push({ label: `prompts of ${plural(Number(length), "token")}`, records: group }));
  }
  return all;
}

export function qualitySpec(chosen: Selection): LinesSpec {
  const { records } = chosen;
  const namer = new Namer(records);
  const shares = records.some((r) => r.configuration.ratio !== undefined);
  const lines = [...groupBy(records, (r) => namer.series(r.configuration))].map(([name, group]): Line => {
    const at = (same: Scored[], x: number) => {
      const interval = wilson(meanOf(same.map((r) => r.score)), same.length);
      return { x, y: interval.mean, low: interval.low, high: interval.high,
        note: `of ${plural(same.length, "prompt")}` };
    };
    if (group[0].configuration.policy === "full") return { name, band: true, colour: "ink", points: [at(group, 0)] };
    const points = [...groupBy(group, (r) => String(placeOf(r)))].map(([, same]) => at(same, placeOfAll(same)));
    return { name, points: points.sort((a, b) => a.x - b.x) };
  });
  return {
    name: "quality",
    title: "Quality against budget",
    caption: `Mean score of ${chosen.label} by what each KV head keeps; bars are 95% Wilson intervals. ` +
      "The dashed line and its band are the full cache and its interval; it has no budget.",
    xName: shares ? "share of the prompt that is kept" : "budget (entries kept per layer and KV head)",
    yName: "mean score", xLog: true, yMin: 0, yMax: 1, dodge: true,
    xText: shares ? percent : count, yText: percent, lines,
  };
}

/** The table below the chart: configurations x tasks or lengths. */
export function qualityTable(records: Scored[], column: (r: Scored) => string): string[][] {
  const namer = new Namer(records);
  const columns = distinct(records.map(column));
  const groups = [...groupBy(records, (r) => namer.full(r.configuration))];
  // the header gives the number of prompts if it is the same in the whole column
  const sizes = (wanted: (r: Scored) => boolean) =>
    distinct(groups.map(([, group]) => group.filter(wanted).length));
  const cell = (group: Scored[], withN: boolean) => {
    if (group.length === 0) return "-";
    const { mean, low, high, n } = wilson(meanOf(group.map((r) => r.score)), group.length);
    const p = (x: number) => (100 * x).toFixed(1);
    return `${p(mean)}% [${p(low)}, ${p(high)}]${withN ? ` of ${n}` : ""}`;
  };
  const heads = [...columns.map((name) => ({ name, wanted: (r: Scored) => column(r) === name })),
    ...(columns.length > 1 ? [{ name: "all", wanted: () => true }] : [])]
    .map((head) => ({ ...head, sizes: sizes(head.wanted) }));
  const memory = (group: Scored[]) => {
    const known = group.filter((r) => typeof r.kv_bytes === "number" && typeof r.kv_bytes_full === "number");
    if (known.length === 0) return "-";
    return percent(meanOf(known.map((r) => (r.kv_bytes as number) / (r.kv_bytes_full as number))));
  };
  return [
    ["cache", ...heads.map((h) => (h.sizes.length > 1 ? h.name : `${h.name} (${plural(h.sizes[0], "prompt")})`)),
      "size"],
    ...groups.map(([name, group]) => [
      name, ...heads.map((h) => cell(group.filter(h.wanted), h.sizes.length > 1)), memory(group)]),
  ];
}
