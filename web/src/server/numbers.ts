// SPDX-License-Identifier: MIT
// The numbers beside an answer: what was kept, how long it took, and two answers compared.
import { bytes, count, number, percent, seconds } from "../format";
import type { ServerLoad } from "./api";
import type { Answer } from "./conversation";
import type { Kv, Progress } from "./types";

/** Seconds until the prompt has been read; null while there is no estimate. */
export function etaSeconds(progress: Progress): number | null {
  const total = progress.total - progress.cache;
  const read = progress.processed - progress.cache;
  if (read <= 0 || progress.time_ms <= 0) return null;
  return ((progress.time_ms / 1000) * (total - read)) / read;
}

/** "1 s", "34 s", "2 min 10 s": rounded, because it is an estimate. */
export function etaText(s: number): string {
  if (s < 1.5) return "1 s";
  if (s < 90) return `${Math.round(s)} s`;
  const whole = Math.round(s / 5) * 5;
  return `${Math.floor(whole / 60)} min ${whole % 60} s`;
}

/** The share of the prompt's work that is done, in [0, 1]. */
export function doneShare(progress: Progress): number {
  const total = progress.total - progress.cache;
  return total > 0 ? Math.max(0, Math.min(1, (progress.processed - progress.cache) / total)) : 1;
}

export function progressText(progress: Progress): string {
  const eta = etaSeconds(progress);
  const left = eta === null ? "" : `, about ${etaText(eta)} left`;
  return `Reading the prompt: ${count(progress.processed)} of ${count(progress.total)} tokens${left}`;
}

/** What a request that the server has not begun with waits for; "" where nothing is before it. */
export function waitText({ waiting, reading, answering }: ServerLoad): string {
  const others = Math.max(0, waiting - 1);
  const queue = others > 0 ? ` ${count(others)} other ${others === 1 ? "request waits" : "requests wait"} as well.` : "";
  if (reading > 0) return `Waiting: the server reads another prompt first.${queue}`;
  if (answering > 0) return `Waiting: the server writes other answers, and has no room for this one yet.${queue}`;
  return "";
}

/** How many times smaller the cache has become; 1 if it is kept whole. */
export function ratio(kv: Kv): number {
  return kv.bytes_after > 0 ? kv.bytes_before / kv.bytes_after : 1;
}

/** "16.0×": three significant digits, and no decimals from 100 on. */
export function times(x: number): string {
  return `${x >= 100 ? count(x) : x.toLocaleString("en-US", { maximumSignificantDigits: 3 })}×`;
}

export interface Fact {
  name: string;
  label: string;
  value: string;
  /** Shown smaller, after the value. */
  of?: string;
}

/** The important numbers in a fixed order, so that two answers can be compared line by line. */
export function facts(answer: Answer): Fact[] {
  const { kv, timings } = answer;
  const all: Fact[] = [];
  if (kv) {
    all.push(
      { name: "kept", label: "tokens kept", value: count(kv.tokens_kept), of: `of ${count(kv.tokens_before)}` },
      { name: "bytes", label: "cache", value: bytes(kv.bytes_after), of: `of ${bytes(kv.bytes_before)}` },
      times(ratio(kv)) === times(1) ? { name: "ratio", label: "kept", value: "all" }
        : { name: "ratio", label: "smaller", value: times(ratio(kv)) });
  }
  if (answer.first_ms !== undefined) {
    all.push({ name: "first", label: "first token", value: seconds(answer.first_ms / 1000) });
  }
  if (timings && timings.predicted_ms > 0 && timings.predicted_n > 0) {
    all.push({ name: "speed", label: "tokens/s", value: number(timings.predicted_per_second) });
  }
  return all;
}

/** The other numbers, in one line. */
export function details(answer: Answer): string {
  const { kv, timings } = answer;
  const parts: string[] = [];
  if (kv) {
    if (kv.policy !== answer.request.policy) parts.push(`policy ${kv.policy}`); // the policy of a document
    parts.push(`${percent(kv.tokens_kept / Math.max(1, kv.tokens_before))} of the prompt kept`);
    if (kv.compress_ms > 0) parts.push(`chosen in ${seconds(kv.compress_ms / 1000)}`);
    if (kv.reused_tokens > 0) parts.push(`${count(kv.reused_tokens)} tokens not read again`);
  }
  if (timings) {
    parts.push(`prompt read in ${seconds(timings.prompt_ms / 1000)}` +
      (timings.prompt_n > 0 ? ` (${count(timings.prompt_per_second)} tokens/s)` : ""));
    const guessed = timings.draft_n_accepted ? `, ${count(timings.draft_n_accepted)} of them guessed` : "";
    parts.push(`${count(timings.predicted_n)} tokens written${guessed}`);
  }
  if (answer.finish === "length") parts.push("stopped at the token limit");
  return parts.join(" · ");
}

/** Speeds of shorter answers say little: a pause of some milliseconds changes them. */
const kTokensToTime = 16;

/** One line that compares a compressed answer with the full cache's; "" until both exist. */
export function comparison(compressed: Answer, full: Answer): string {
  if (!compressed.kv || !full.kv) return "";
  const smaller = full.kv.bytes_after / Math.max(1, compressed.kv.bytes_after);
  const parts = [times(smaller) === times(1) ? "both caches have the same size" : `the cache is ${times(smaller)} smaller`];
  const [a, b] = [compressed, full].map(({ timings }) =>
    timings && timings.predicted_n >= kTokensToTime ? timings.predicted_per_second : 0);
  if (a > 0 && b > 0) parts.push(times(a / b) === times(1) ? "tokens come as fast" : `tokens come ${times(a / b)} as fast`);
  const finished = compressed.state === "done" && full.state === "done";
  if (finished) parts.push(compressed.text === full.text ? "the answers are the same" : "the answers differ");
  const line = parts.join(", ");
  return `${line[0].toUpperCase()}${line.slice(1)}.`;
}
