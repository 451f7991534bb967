// SPDX-License-Identifier: MIT
// The conversation, as the page keeps, sends and exports it.
import type { Settings } from "./settings";
import type { Chunk, Kv, KvRequest, Message, Progress, Props, Timings } from "./types";

export interface TextDocument {
  name: string;
  text: string;
  /** Counted by the server; undefined until it has replied. */
  tokens?: number;
}

export type State = "waiting" | "reading" | "writing" | "done" | "stopped" | "failed";

export interface Answer {
  request: KvRequest;
  state: State;
  text: string;
  reasoning: string;
  finish?: string;
  error?: string;
  progress?: Progress;
  /** Milliseconds from sending the request to the first text. */
  first_ms?: number;
  /** Without the positions, which would exceed what browsers can store. */
  kv?: Kv;
  timings?: Timings;
}

export interface Turn {
  text: string;
  documents: TextDocument[];
  system: string;
  /** The conversation continues with the first one. */
  answers: Answer[];
}

export interface Conversation {
  turns: Turn[];
}

export function newAnswer(request: KvRequest): Answer {
  return { request, state: "waiting", text: "", reasoning: "" };
}

export function isRunning(answer: Answer): boolean {
  return answer.state === "waiting" || answer.state === "reading" || answer.state === "writing";
}

/** The user's message. The documents come first, so that the cache is compressed for the question. */
export function contentOf(turn: Turn): string {
  return [...turn.documents.map((d) => d.text.trimEnd()), turn.text].filter((s) => s !== "").join("\n\n");
}

/** The messages of the request for turn `index`. */
export function messagesOf(conversation: Conversation, index: number): Message[] {
  const messages: Message[] = [];
  const { system, answers } = conversation.turns[index];
  // a snapshot holds the system message of its document
  if (system && !answers.some((a) => a.request.snapshot !== undefined)) messages.push({ role: "system", content: system });
  conversation.turns.slice(0, index + 1).forEach((turn, i) => {
    messages.push({ role: "user", content: contentOf(turn) });
    if (i < index) messages.push({ role: "assistant", content: turn.answers[0]?.text ?? "" });
  });
  return messages;
}

/** Applies a chunk of the stream that arrived `ms` after the request. */
export function applyChunk(answer: Answer, chunk: Chunk, ms: number): void {
  if (chunk.prompt_progress) {
    answer.progress = chunk.prompt_progress;
    if (answer.state === "waiting") answer.state = "reading";
  }
  for (const choice of chunk.choices ?? []) {
    const { content, reasoning_content } = choice.delta ?? {};
    if (content || reasoning_content) {
      answer.first_ms ??= ms;
      answer.state = "writing";
    }
    answer.text += content ?? "";
    answer.reasoning += reasoning_content ?? "";
    if (choice.finish_reason) {
      answer.finish = choice.finish_reason;
      answer.state = "done";
    }
  }
  if (chunk.timings) answer.timings = chunk.timings;
  if (chunk.kv) {
    const { positions: _, ...summary } = chunk.kv;
    answer.kv = summary;
  }
}

/**
 * Reads a stored conversation. Answers that were cut off when the page closed count as stopped;
 * anything else that is stored is ignored.
 */
export function readConversation(stored: unknown): Conversation {
  const turns = (stored as Conversation | null)?.turns;
  const isAnswer = (a: Partial<Answer>) =>
    typeof a?.text === "string" && typeof a.reasoning === "string" && typeof a.state === "string" &&
    typeof a.request === "object" && a.request !== null;
  const isTurn = (t: Partial<Turn>) =>
    typeof t?.text === "string" && typeof t.system === "string" && Array.isArray(t.answers) &&
    t.answers.every(isAnswer) && Array.isArray(t.documents) &&
    t.documents.every((d) => typeof d?.text === "string" && typeof d.name === "string");
  if (!Array.isArray(turns) || !turns.every(isTurn)) return { turns: [] };
  for (const answer of turns.flatMap((t) => t.answers)) if (isRunning(answer)) answer.state = "stopped";
  return { turns };
}

/** The file that "Export" saves: everything that another program needs to ask the same questions. */
export function exportJson(conversation: Conversation, settings: Settings, props: Props): string {
  const turns = conversation.turns.map((turn, i) => ({ ...turn, messages: messagesOf(conversation, i) }));
  return JSON.stringify({ kind: "snapkv conversation", version: 1, program: props.build_info,
    model: props.model_alias, backend: props.backend, settings, turns }, null, 2);
}

/** The text of a file; throws an error that users can understand. */
export function decodeDocument(name: string, bytes: Uint8Array): TextDocument {
  let text: string;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw new Error(`“${name}” is not a text file: it is not UTF-8`);
  }
  if (text.includes("\0")) throw new Error(`“${name}” is not a text file: it has zero bytes in it`);
  if (text.trim() === "") throw new Error(`“${name}” is empty`);
  return { name, text };
}

/** A name for a snapshot of this document that the server accepts. */
export function snapshotName(document: string): string {
  const name = document.replace(/\.[A-Za-z0-9]{1,5}$/, "").normalize("NFKD")
    .replace(/[^A-Za-z0-9._-]+/g, "-").replace(/^[-.]+|[-.]+$/g, "");
  return name.slice(0, 100) || "document";
}
