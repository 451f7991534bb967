// SPDX-License-Identifier: MIT
// The parts of the server's API that the page uses, with the names of the JSON (docs/server.md).

export type Value = boolean | number | string;

/** A parameter of a policy: a row of the policies' tables. */
export interface Param {
  name: string;
  type: "boolean" | "integer" | "real" | "word";
  words?: string[];
  least?: number;
  most?: number;
  odd?: boolean;
  default: Value;
  help: string;
}

export interface Policy {
  name: string;
  score: string;
  paper: string;
  has_budget: boolean;
  params: Param[];
  /** Values in force on this server, if its command line sets others than the defaults. */
  values?: Record<string, Value>;
}

/** GET /props: the fields that the page reads. */
export interface Props {
  model_alias: string;
  build_info: string;
  backend: string;
  has_snapshots: boolean;
  chat_template: string;
  default_generation_settings: { n_ctx: number; params: Record<string, number> };
  /** The options of the sampler; their defaults are the values in force. */
  sampling: Param[];
  kv: { defaults: Record<string, Value>; policies: Policy[] };
}

export interface Snapshot {
  name: string;
  bytes: number;
  created: number;
  /** What it was made of; absent where the file can't be read. */
  model?: string;
  tokens?: number;
  /** Every row is there, from which each question chooses. */
  keep_full?: boolean;
  /** Otherwise: the policy that has chosen. */
  kv?: Record<string, Value>;
  /** Why this server can't continue it. */
  problem?: string;
}

/** POST /v1/kv/fit. */
export interface Fit {
  fits: boolean;
  prompt_tokens: number;
  most_prompt_tokens: number;
  limit: "context" | "memory";
  n_ctx: number;
  n_ctx_train: number;
}

export interface Message {
  role: "system" | "user" | "assistant";
  content: string;
}

/** The request's `kv` object. */
export interface KvRequest {
  policy?: string;
  snapshot?: string;
  reuse?: boolean;
  [param: string]: Value | undefined;
}

export interface KvSource {
  attention: number;
  text: string;
}

/** The answer's `kv` object; `positions` is [n_layer][n_head_kv][kept]. */
export interface Kv {
  policy: string;
  tokens_before: number;
  tokens_kept: number;
  bytes_before: number;
  bytes_after: number;
  compress_ms: number;
  reused_tokens: number;
  /** The sentences that the answer was taken from. */
  sources?: KvSource[];
  positions?: number[][][];
}

export interface Timings {
  cache_n: number;
  prompt_n: number;
  prompt_ms: number;
  prompt_per_second: number;
  predicted_n: number;
  predicted_ms: number;
  predicted_per_second: number;
  draft_n?: number; // tokens that were guessed; absent if none were
  draft_n_accepted?: number;
}

export interface Progress {
  total: number;
  cache: number;
  processed: number;
  time_ms: number;
}

/** One chunk of a streamed chat completion, or of a text completion, which has `text`. */
export interface Chunk {
  choices?: {
    text?: string;
    delta?: { content?: string | null; reasoning_content?: string | null };
    finish_reason?: string | null;
  }[];
  prompt_progress?: Progress;
  timings?: Timings;
  kv?: Kv;
}
