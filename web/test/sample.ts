// SPDX-License-Identifier: MIT
// A small inspect block as eval/inspect/inspect.cpp writes it: 2 layers x 2 KV heads, 40 tokens, 8 kept.
import type { BenchRecord, InspectData } from "../src/data";
import { lookOf } from "../src/colour";
import type { Frame } from "../src/picture";
import type { Scored } from "../src/eval/quality";

export const frame: Frame = { look: lookOf(false), width: 900, height: 400, top: 0, saving: false };

export function sample(): InspectData {
  const n = 40;
  const rows = [0, 1].flatMap((il) => [0, 1].map((head) =>
    ({ layer_begin: il, layer_end: il + 1, head_begin: head, head_end: head + 1 })));
  const keeps = (r: number, j: number) => j >= 36 || (j >= 10 + r && j < 14 + r);
  const kept = rows.map((_, r) => Array.from({ length: n }, (_, j) => (keeps(r, j) ? 1000 : 0)));
  const score = rows.map((_, r) => Array.from({ length: n }, (_, j) =>
    j === 0 ? 500_000 : j === 11 + r ? 100_000 : 1000));
  const columns = Array.from({ length: n }, (_, j) =>
    j === 0 ? 400_000 : j === 12 ? 200_000 : j >= 36 ? 100_000 : 0);
  return {
    kind: "inspect", version: "0.1.0",
    model: { name: "sample", file: "sample.gguf", architecture: "llama", file_type: "f16", n_layer: 2,
      n_head: 4, n_head_kv: 2, head_dim: 64 },
    backend: "cpu", label: "snapkv 8, window 4, kernel 3",
    configuration: { policy: "snapkv", budget: 8, window_size: 4, kernel_size: 3, pooling: "max", kv_type: "f16" },
    n_tokens: n, window: 4, text_limit: 100,
    text: [{ begin: 0, pieces: Array.from({ length: n }, (_, j) => ` w${j}`),
      kept_by: Array.from({ length: n }, (_, j) => rows.filter((_, r) => keeps(r, j)).length) }],
    cache: { type: "f16", bytes_full: 40 * 1024, bytes_kept: 8 * 1024, bytes_peak: 28 * 1024,
      n_kept: [[8, 8], [8, 8]] },
    seconds: { prefill: 1, score: 0.01, gather: 0.005 },
    n_columns: n, rows, kept, score,
    spotlights: [{ group: "window", layer: -1, begin: 36, end: 40, columns, positions: [], values: [] }],
  };
}

export function scored(policy: string, budget: number, score: number, more: object = {}): Scored {
  return { id: `needle ${JSON.stringify(more)}`, model: "m/needle.gguf", version: "0.1.0", n_prompt: 400,
    task: "needle", kind: "single", score, answer: "12345", references: ["12345"],
    configuration: { policy, kv_type: "f16", ...(policy === "full" ? {} : { budget, kernel_size: 7, window_size: 32 }) },
    ...more };
}

export function bench(policy: string, more: Partial<BenchRecord>): BenchRecord {
  return { backends: "cpu", cpu_info: "a cpu", model_filename: "m.gguf", model_type: "llama 1 M", n_threads: 1,
    type_k: "f16", n_prompt: 0, n_gen: 0, n_depth: 0, n_seq: 1, kv_policy: policy,
    kv_budget: policy === "full" ? 0 : 128, avg_ns: 2e9, avg_ts: 10, stddev_ts: 1, samples_ns: [1e9, 3e9],
    prefill_s: null, pack_s: null, linear_s: null, attention_s: null, score_s: null, gather_s: null,
    gflops: 10, work_gflop: 20, work_gb: 10, percent_of_limit: null, limit: null, limit_s: null,
    linear_products: null, attention_products: null, machine_read_gbps: null, machine_f32_gflops: null,
    machine_bf16_gflops: null, machine_int8_gops: null,
    kv_mib_full: 8, kv_mib_peak: 4, kv_mib: 2, peak_rss_mib: 100, ...more };
}
