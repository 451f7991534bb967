// SPDX-License-Identifier: MIT
// Names of cache configurations: what differs between the records of a page is part of the name.
import type { Configuration, EvalRecord } from "../data";
import { bytes, count, percent } from "../format";
import { distinct, groupBy } from "../stats";

// Said in another way than by their name, or in another place.
const kSaidElsewhere = ["policy", "budget", "ratio", "kv_type"];
const kSession: Record<string, (value: unknown) => string> = {
  kv_memory: (v) => `${bytes(Number(v))} at most`,
  kv_decode_limit: (v) => `decode limit ${v}`,
};

/** A field as records have it: "kernel 15", "avg pooling", "critical"; nothing for a no. */
function fieldText(name: string, value: unknown): string {
  if (kSession[name]) return kSession[name](value);
  const words = name.replaceAll("_", " ");
  if (typeof value === "boolean") return value ? words : "";
  return typeof value === "string" ? `${value} ${words}` : `${words} ${value}`;
}

/** The fields by which records of one policy differ. Which fields there are, the policies say. */
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
    const parts = Object.keys(c)
      .filter((name) => this.fields.has(name) && !kSaidElsewhere.includes(name) && !without.includes(name))
      .map((name) => fieldText(name, c[name])).filter((text) => text !== "");
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
