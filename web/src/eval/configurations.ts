// SPDX-License-Identifier: MIT
// Names of cache configurations: a name includes the fields in which the records of a page differ.
import type { Configuration, EvalRecord } from "../data";
import { bytes, count, percent } from "../format";
import { distinct, groupBy } from "../stats";

// Fields that appear in another form or another place.
const kSaidElsewhere = ["policy", "budget", "ratio", "kv_type"];
const kSession: Record<string, (value: unknown) => string> = {
  kv_memory: (v) => `${bytes(Number(v))} at most`,
  kv_decode_limit: (v) => `decode limit ${v}`,
  least_attention: (v) => Number(v) > 0 ? "automatic budget" : "",
};

/** Whether each prompt keeps as many rows as its question attends to; `budget` is the most. */
export function isAutomatic(c: Configuration): boolean {
  return Number(c.least_attention ?? 0) > 0;
}

/** A record's field as text: "kernel 15" of kernel_size, "avg pooling", "critical"; empty for false. */
function fieldText(name: string, value: unknown): string {
  if (kSession[name]) return kSession[name](value);
  const words = name.replace(/^(kernel|window)_size$/, "$1").replaceAll("_", " ");
  if (typeof value === "boolean") return value ? words : "";
  return typeof value === "string" ? `${value} ${words}` : `${words} ${value}`;
}

/** The fields in which records of the same policy differ. The policies define which fields exist. */
function differing(records: EvalRecord[]): Set<string> {
  const names = new Set<string>();
  for (const group of groupBy(records.map((r) => r.configuration), (c) => c.policy).values()) {
    const fields = new Set(group.flatMap((c) => Object.keys(c)).filter((name) => !kSaidElsewhere.includes(name)));
    for (const name of fields) {
      if (distinct(group.map((c) => JSON.stringify(c[name]))).length > 1) names.add(name);
    }
  }
  if (distinct(records.map((r) => r.configuration.kv_type)).length > 1) names.add("kv_type");
  return names;
}

/** Names the configurations of these records. */
export class Namer {
  private readonly fields: Set<string>;
  constructor(records: EvalRecord[]) {
    this.fields = differing(records);
  }

  /** The name without the budget in rows or bytes: "snapkv, kernel 15". */
  series(c: Configuration): string {
    return [c.policy, ...this.parts(c, ["kv_memory"])].join(", ");
  }

  /** The name with the budget: "snapkv 128, kernel 15". */
  full(c: Configuration): string {
    const rows = c.budget !== undefined && !isAutomatic(c) ? ` ${count(c.budget)}` : "";
    const budget = c.ratio !== undefined ? ` ${percent(c.ratio)}` : rows;
    return [c.policy + budget, ...this.parts(c, [])].join(", ");
  }

  private parts(c: Configuration, without: string[]): string[] {
    const parts = Object.keys(c)
      .filter((name) => this.fields.has(name) && !kSaidElsewhere.includes(name) && !without.includes(name))
      .map((name) => fieldText(name, c[name])).filter((text) => text !== "");
    return this.fields.has("kv_type") ? [...parts, c.kv_type] : parts;
  }
}

/** The task that a record's prompt belongs to: "needle, single", "ruler, vt, asked after compression". */
export function taskName(r: EvalRecord): string {
  const parts = [r.task ?? r.id.split(" ")[0], r.kind, r.ruler_task, r.dataset,
    r.question === "agnostic" ? "asked after compression" : undefined];
  return parts.filter((part) => typeof part === "string").join(", ");
}

/** The requested length; undefined if every prompt has its own. */
export function lengthOf(r: EvalRecord): number | undefined {
  const length = r.length_wanted ?? (r.task === "needle" ? r.length : undefined);
  return typeof length === "number" ? length : undefined;
}
