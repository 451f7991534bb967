// SPDX-License-Identifier: MIT
// The data block of a page, as eval/common/page.cpp (envelope) and the commands write it. A block
// of another kind or version makes the page show an error, not nothing.

/** Also holds the policy's parameters, by their "record" names in `snapkv policies --json`. */
export type Configuration = {
  policy: string;
  budget?: number;
  ratio?: number;
  kv_type: string;
  [field: string]: unknown;
};

/** Tokens [begin, begin + pieces.length) of the prompt. */
export interface TextPart {
  begin: number;
  pieces: string[];
  /** For each token: number of (layer, KV head) pairs that kept it. */
  kept_by: number[];
}

/** Attention of a group of queries: mean over its tokens, query heads and (layer -1) layers. */
export interface Spotlight {
  group: "window" | "layer" | "token" | "stretch" | "chosen";
  layer: number;
  begin: number;
  end: number;
  /** [columns]: total attention of each column's tokens, in millionths of all attention. */
  columns: number[];
  /** The tokens with the highest attention, ascending; `values` is their attention in millionths. */
  positions: number[];
  values: number[];
}

export interface InspectData {
  kind: "inspect";
  version: string;
  model: {
    name: string;
    file: string;
    architecture: string;
    file_type: string;
    n_layer: number;
    n_head: number;
    n_head_kv: number;
    head_dim: number;
  };
  backend: string;
  configuration: Configuration;
  label: string;
  n_tokens: number;
  window: number;
  text: TextPart[];
  text_limit: number;
  cache: {
    type: string;
    bytes_full: number;
    bytes_kept: number;
    bytes_peak: number;
    n_kept: number[][];
  };
  seconds: { prefill: number; score: number; gather: number };
  /** Column c of n holds tokens [floor(c * n_tokens / n), floor((c + 1) * n_tokens / n)). */
  n_columns: number;
  rows: { layer_begin: number; layer_end: number; head_begin: number; head_end: number }[];
  /** [rows][n_columns]: share of the cell's entries that were kept, in thousandths. */
  kept: number[][];
  /** [rows][n_columns]: highest attention of any of the cell's tokens, in millionths. */
  score: number[][];
  spotlights: Spotlight[];
}

export interface EvalRecord {
  id: string;
  model: string;
  version: string;
  configuration: Configuration;
  task?: string;
  n_prompt: number;
  score?: number;
  [field: string]: unknown;
}

export interface EvalData {
  kind: "eval";
  version: string;
  records: EvalRecord[];
}

export interface BenchRecord {
  backends: string;
  cpu_info: string;
  model_filename: string;
  model_type: string;
  n_threads: number;
  type_k: string;
  n_prompt: number;
  n_gen: number;
  n_depth: number;
  n_seq: number;
  kv_policy: string;
  kv_budget: number;
  avg_ns: number;
  avg_ts: number;
  stddev_ts: number;
  samples_ns: number[];
  prefill_s: number | null;
  pack_s: number | null;
  linear_s: number | null;
  attention_s: number | null;
  score_s: number | null;
  gather_s: number | null;
  gflops: number;
  /** Operations and bytes of one repetition, in 10^9. */
  work_gflop: number;
  work_gb: number;
  /** The fields from here on are null if the machine's limits were not measured. */
  percent_of_limit: number | null;
  limit: "compute" | "memory" | null;
  limit_s: number | null;
  linear_products: string | null;
  attention_products: string | null;
  machine_read_gbps: number | null;
  machine_f32_gflops: number | null;
  /** Also null if the processor has no such products. */
  machine_bf16_gflops: number | null;
  machine_int8_gops: number | null;
  kv_mib_full: number;
  kv_mib_peak: number;
  kv_mib: number;
  peak_rss_mib: number;
}

export interface BenchData {
  kind: "bench";
  version: string;
  records: BenchRecord[];
}

export type PageData = InspectData | EvalData | BenchData;

export function parseData(text: string): PageData {
  const data = JSON.parse(text) as PageData;
  if (!["inspect", "eval", "bench"].includes(data.kind)) {
    throw new Error(`the data block is of kind ${JSON.stringify((data as { kind: unknown }).kind)}, ` +
      "expected inspect, eval or bench");
  }
  return data;
}

/** The first token of column c; n_tokens for c = n. */
export function columnBegin(c: number, nColumns: number, nTokens: number): number {
  return Math.floor((c * nTokens) / nColumns);
}

/** The column that holds a token. */
export function columnOf(token: number, nColumns: number, nTokens: number): number {
  let c = Math.min(nColumns - 1, Math.floor((token * nColumns) / nTokens));
  while (c + 1 < nColumns && columnBegin(c + 1, nColumns, nTokens) <= token) ++c;
  while (c > 0 && columnBegin(c, nColumns, nTokens) > token) --c;
  return c;
}
