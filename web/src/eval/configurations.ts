// SPDX-License-Identifier: MIT
// Names of cache configurations: what differs between the records of a page is part of the name.
import type { Configuration, EvalRecord } from "../data";
import { bytes, count, percent } from "../format";
import { distinct } from "../stats";

// Fields that a name may need, with how they read.
const kFields: [string, (value: unknown) => string][] = [
  ["window", (v) => `window ${v}`], ["kernel", (v) => `kernel ${v}`], ["pooling", (v) => `${v} pooling`],
  ["group", (v) => `group ${v}`], ["sinks", (v) => `sinks ${v}`], ["critical", (v) => (v ? "critical" : "plain")],
  ["seed", (v) => `seed ${v}`], ["chunk_length", (v) => `chunks of ${v}`], ["n_future", (v) => `future ${v}`],
  ["head_floor", (v) => `floor ${v}`], ["pyramid_beta", (v) => `beta ${v}`],
  ["kv_memory", (v) => `${bytes(Number(v))} at most`], ["kv_decode_limit", (v) => `decode limit ${v}`],
];

function differing(records: EvalRecord[]): Set<string> {
  const compressed = records.filter((r) => r.configuration.policy !== "full").map((r) => r.configuration);
  const names = new Set(kFields.map(([name]) => name)
    .filter((name) => distinct(compressed.map((c) => JSON.stringify(c[name]))).length > 1));
  if (distinct(records.map((r) => r.configuration.kv_type)).length > 1) names.add("kv_type");
  return names;
}

/** Names configurations of these records. */
export class Namer {
  private readonly fields: Set<string>;
  constructor(records: EvalRecord[]) {
    this.fields = differing(records);
  }

  /** Without its budget, in rows or bytes: "snapkv, kernel 15" */
  series(c: Configuration): string {
    return [c.policy, ...this.parts(c, ["kv_memory"])].join(", ");
  }

  /** With it: "snapkv 128, kernel 15" */
  full(c: Configuration): string {
    const budget = c.ratio !== undefined ? ` ${percent(c.ratio)}` : c.budget !== undefined ? ` ${count(c.budget)}` : "";
    return [c.policy + budget, ...this.parts(c, [])].join(", ");
  }

  private parts(c: Configuration, without: string[]): string[] {
    const parts = kFields
      .filter(([name]) => c.policy !== "full" && this.fields.has(name) && !without.includes(name) && c[name] !== undefined)
      .map(([name, read]) => read(c[name]));
    return this.fields.has("kv_type") ? [...parts, c.kv_type] : parts;
  }
}

/** What a record's prompt is a case of: "needle, single", "ruler, vt, asked after compression". */
export function taskName(r: EvalRecord): string {
  const parts = [r.task ?? r.id.split(" ")[0], r.kind, r.ruler_task, r.dataset,
    r.question === "agnostic" ? "asked after compression" : undefined];
  return parts.filter((part) => typeof part === "string").join(", ");
}

/** The length that was asked for; undefined where every prompt has its own. */
export function lengthOf(r: EvalRecord): number | undefined {
  const length = r.length_wanted ?? (r.task === "needle" ? r.length : undefined);
  return typeof length === "number" ? length : undefined;
}
