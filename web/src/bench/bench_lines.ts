// SPDX-License-Identifier: MIT
// Line charts over the length of the context: memory of the cache, time per token, time of a
// prompt.
import type { BenchRecord } from "../data";
import { bytes, count, number, seconds, tokens } from "../format";
import { binaryStep, type Line, type LinesSpec, type Point } from "../lines";
import { distinct, groupBy, meanOf } from "../stats";

const kMib = 1 << 20;

/** "full", "snapkv 1024", and the other fields in which the records differ. */
export function seriesName(r: BenchRecord, all: BenchRecord[]): string {
  const differs = (field: keyof BenchRecord) => distinct(all.map((x) => x[field])).length > 1;
  const parts = [r.kv_policy + (r.kv_budget > 0 ? ` ${r.kv_budget}` : "")];
  if (differs("type_k")) parts.push(r.type_k);
  if (differs("n_threads")) parts.push(`${r.n_threads} threads`);
  if (differs("n_seq") && r.n_seq > 1) parts.push(`${r.n_seq} sequences`);
  if (differs("model_filename")) parts.push(r.model_filename.replace(/^.*\//, ""));
  return parts.join(", ");
}

/** "prompt of 4k", "32 tokens after 4k × 8" */
export function testName(r: BenchRecord): string {
  return `${r.n_prompt > 0 ? `prompt of ${tokens(r.n_prompt)}` : `${count(r.n_gen)} tokens`}` +
    `${r.n_depth > 0 ? ` after ${tokens(r.n_depth)}` : ""}${r.n_seq > 1 ? ` × ${r.n_seq}` : ""}`;
}

/** Tokens of a sequence at the end of a test. */
export function contextOf(r: BenchRecord): number {
  return r.n_prompt + r.n_depth + r.n_gen;
}

/** Replaces points at the same x (as from tests with several answer lengths) by their mean. */
function pointsOf(records: BenchRecord[], x: (r: BenchRecord) => number,
  y: (r: BenchRecord) => Omit<Point, "x">): Point[] {
  return [...groupBy(records, (r) => String(x(r)))]
    .map(([, same]) => {
      const points = same.map(y);
      const fold = (pick: (p: Omit<Point, "x">) => number | undefined, how: (v: number[]) => number) => {
        const values = points.map(pick).filter((v): v is number => v !== undefined);
        return values.length === points.length ? how(values) : undefined;
      };
      return { x: x(same[0]), y: meanOf(points.map((p) => p.y)), note: points[0].note,
        low: fold((p) => p.low, (v) => Math.min(...v)), high: fold((p) => p.high, (v) => Math.max(...v)) };
    })
    .sort((a, b) => a.x - b.x);
}

function highest(lines: Line[], of: "x" | "y"): number {
  return lines.flatMap((l) => l.points.map((p) => (of === "y" ? p.high ?? p.y : p.x))).reduce((a, b) => Math.max(a, b), 0);
}

// Formats all ticks in one unit: "200 ms", or "200 s" where seconds() would use minutes.
function timeTick(lines: Line[]): (s: number) => string {
  return highest(lines, "y") < 1 ? (s) => `${number(s * 1000)} ms` : (s) => `${number(s)} s`;
}

/**
 * Tests that read their context in one go. A prompt after another prompt keeps rows of both, so it
 * can't be compared.
 */
function readAtOnce(records: BenchRecord[]): BenchRecord[] {
  const plain = records.filter((r) => r.n_prompt === 0 || r.n_depth === 0);
  return plain.length > 0 ? plain : records;
}

/** ", after 4k" for a prompt that came after others. */
export function afterDepth(r: BenchRecord): string {
  return r.n_prompt > 0 && r.n_depth > 0 ? `, after ${tokens(r.n_depth)}` : "";
}

export function memorySpec(all: BenchRecord[], log: boolean): LinesSpec {
  const records = readAtOnce(all);
  const lines: Line[] = [];
  for (const [name, group] of groupBy(records, (r) => seriesName(r, records))) {
    const full = group[0].kv_policy === "full";
    lines.push({ name: full ? name : `${name}: kept`, family: name,
      points: pointsOf(group, contextOf, (r) => ({ y: r.kv_mib * kMib })) });
    if (!full) {
      lines.push({ name: `${name}: peak while reading`, family: name, dash: "dashed",
        points: pointsOf(group, contextOf, (r) => ({ y: r.kv_mib_peak * kMib })) });
    }
  }
  const step = binaryStep(highest(lines, "y"), 6);
  return {
    name: "memory", title: "Memory of the KV cache",
    caption: "Bytes allocated for keys and values of all sequences, by the tokens of a context. Dashed: the most " +
      "there ever was, which is one full layer and the kept entries; a full cache is always at its peak.",
    xName: "tokens in the context", yName: "KV cache", xLog: log, yMin: 0,
    xText: tokens, yText: bytes, xStep: binaryStep(highest(lines, "x"), 10),
    yStep: step, yMax: Math.ceil(highest(lines, "y") / step) * step, lines,
  };
}

/** The shortest and the longest repetition, if there are several. */
function extremes(r: BenchRecord, scale: number): { low?: number; high?: number } {
  if (r.samples_ns.length < 2) return {};
  return { low: Math.min(...r.samples_ns) * scale, high: Math.max(...r.samples_ns) * scale };
}

export function latencySpec(records: BenchRecord[], log: boolean): LinesSpec {
  const decodes = records.filter((r) => r.n_gen > 0 && r.n_prompt === 0);
  const lines = [...groupBy(decodes, (r) => seriesName(r, records))].map(([name, group]): Line => ({
    name,
    points: pointsOf(group, (r) => r.n_depth, (r) => ({
      y: r.avg_ns / 1e9 / r.n_gen, ...extremes(r, 1 / 1e9 / r.n_gen),
      note: `(${count(r.n_gen)} tokens, ${r.samples_ns.length} times)` })),
  }));
  return {
    name: "latency", title: "Time per generated token",
    caption: "Mean time of one decode step, by the tokens that the context held before; bars span the shortest and " +
      "the longest repetition. A full cache is read whole for every token, so its line rises.",
    xName: "tokens in the context before", yName: "time per token", xLog: log, yMin: 0,
    xText: tokens, yText: seconds, yTick: timeTick(lines), xStep: binaryStep(highest(lines, "x"), 10), lines,
  };
}

export function promptSpec(records: BenchRecord[], log: boolean): LinesSpec {
  const prompts = records.filter((r) => r.n_prompt > 0);
  const lines = [...groupBy(prompts, (r) => seriesName(r, records) + afterDepth(r))].map(([name, group]): Line => ({
    name,
    points: pointsOf(group, (r) => r.n_prompt, (r) => ({ y: r.avg_ns / 1e9, ...extremes(r, 1e-9) })),
  }));
  return {
    name: "prompt-time", title: "Time to read a prompt",
    caption: "Mean time from the first token of the prompt to the logits of its last, compression included; bars " +
      "span the shortest and the longest repetition.",
    xName: "tokens in the prompt", yName: "time", xLog: log, yMin: 0,
    xText: tokens, yText: seconds, yTick: timeTick(lines), xStep: binaryStep(highest(lines, "x"), 10), lines,
  };
}

export interface Comparison {
  name: string;
  x: number;
  full: number;
  compressed: number;
  /** full / compressed, and its range where repetitions differ. */
  ratio: number;
  low: number;
  high: number;
}

/** "7.3x smaller", "1.2x slower"; "" where there is no difference, or none beyond the repetitions'. */
export function gainText(c: Comparison, better: string, worse: string): string {
  const same = number(c.ratio) === number(1) || (c.low < 1 && c.high > 1);
  if (same) return "";
  return c.ratio > 1 ? `${number(c.ratio)}x ${better}` : `${number(1 / c.ratio)}x ${worse}`;
}

/** Compares the full cache with the first compressed one, at the longest context that both have. */
export function comparison(spec: LinesSpec): Comparison | null {
  const full = spec.lines.find((l) => /^full\b/.test(l.name));
  const other = spec.lines.find((l) => !/^full\b/.test(l.name));
  if (!full || !other) return null;
  const common = full.points.filter((p) => other.points.some((q) => q.x === p.x));
  if (common.length === 0) return null;
  const last = common[common.length - 1];
  const point = other.points.find((q) => q.x === last.x)!;
  return { name: other.family ?? other.name, x: last.x, full: last.y, compressed: point.y, ratio: last.y / point.y,
    low: (last.low ?? last.y) / (point.high ?? point.y), high: (last.high ?? last.y) / (point.low ?? point.y) };
}
