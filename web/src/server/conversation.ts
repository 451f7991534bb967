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
  /** What a waiting answer waits for; not kept. */
  waits?: string;
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
  /** The model continues the text, by itself: it is no message of a chat. */
  completes?: boolean;
  /** The first one is what the conversation continues. */
  answers: Answer[];
}

export interface Conversation {
  id: string;
  /** Of the server that answered last. */
  model: string;
  /** Milliseconds since 1970. */
  changed: number;
  turns: Turn[];
}

export function newConversation(model: string): Conversation {
  const id = Array.from(crypto.getRandomValues(new Uint8Array(8)), (b) => b.toString(16).padStart(2, "0")).join("");
  return { id, model, changed: Date.now(), turns: [] };
}

/** The first words that the user wrote, or the name of the document. */
export function titleOf({ turns }: Conversation): string {
  const kLongest = 60;
  const [first] = turns;
  const words = (first?.text || first?.documents[0]?.name || "").replace(/\s+/g, " ").trim();
  return words.length > kLongest ? `${words.slice(0, kLongest).trimEnd()} …` : words || "Untitled";
}

export function newAnswer(request: KvRequest): Answer {
  return { request, state: "waiting", text: "", reasoning: "" };
}

export function isRunning(answer: Answer): boolean {
  return answer.state === "waiting" || answer.state === "reading" || answer.state === "writing";
}

/**
 * The user's message. The documents come first, so that the cache is compressed for the question; several have their
 * names, as in the prompts of the commands.
 */
export function contentOf(turn: Turn): string {
  const isOne = turn.documents.length === 1;
  const texts = turn.documents.map(({ name, text }) =>
    isOne ? text.trimEnd() : `<document title=${JSON.stringify(name)}>\n${text.trimEnd()}\n</document>`);
  return [...texts, turn.text].filter((s) => s !== "").join("\n\n");
}

/** What the model continues: the documents, then the text, and what it has written of it. */
export function promptOf(turn: Turn, written = ""): string {
  return contentOf(turn) + written;
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

/** What the model gets for turn `index`; `written`: of the text that it goes on with. */
export function inputOf(conversation: Conversation, index: number, written = ""): Message[] | string {
  const turn = conversation.turns[index];
  return turn.completes ? promptOf(turn, written) : messagesOf(conversation, index);
}

/** Takes one chunk of the stream that came `ms` after the request. */
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
    if (choice.text) {
      answer.first_ms ??= ms;
      answer.state = "writing";
    }
    answer.text += content ?? choice.text ?? "";
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

/** What was stored; what the page's end cut off counts as stopped. null: no conversation. */
export function readConversation(stored: unknown): Conversation | null {
  const { id, model, changed, turns } = (stored ?? {}) as Partial<Conversation>;
  const isAnswer = (a: Partial<Answer>) =>
    typeof a?.text === "string" && typeof a.reasoning === "string" && typeof a.state === "string" &&
    typeof a.request === "object" && a.request !== null;
  const isTurn = (t: Partial<Turn>) =>
    typeof t?.text === "string" && typeof t.system === "string" && Array.isArray(t.answers) &&
    t.answers.every(isAnswer) && Array.isArray(t.documents) &&
    t.documents.every((d) => typeof d?.text === "string" && typeof d.name === "string");
  if (typeof id !== "string" || typeof model !== "string" || typeof changed !== "number") return null;
  if (!Array.isArray(turns) || !turns.every(isTurn)) return null;
  for (const answer of turns.flatMap((t) => t.answers)) if (isRunning(answer)) answer.state = "stopped";
  return { id, model, changed, turns };
}

/** The file that "Export" saves: everything that another program needs to ask the same questions. */
export function exportJson(conversation: Conversation, settings: Settings, props: Props): string {
  const turns = conversation.turns.map((turn, i) =>
    ({ ...turn, ...(turn.completes ? { prompt: promptOf(turn) } : { messages: messagesOf(conversation, i) }) }));
  return JSON.stringify({ kind: "snapkv conversation", version: 1, program: props.build_info,
    model: props.model_alias, backend: props.backend, settings, turns }, null, 2);
}

/** The server reads every document, so that page and commands take the same files for the same text: a
 *  PDF may consist of ASCII alone. Throws an error in the user's words. `read`: the server's reader. */
export async function readDocument(name: string, bytes: Uint8Array,
    read: (name: string, bytes: Uint8Array) => Promise<string>): Promise<TextDocument> {
  if (bytes.length === 0) throw new Error(`“${name}” is empty`);
  const text = await read(name, bytes);
  if (text.trim() === "") throw new Error(`“${name}” has no text in it`);
  return { name, text };
}

/** A name for a snapshot of this document that the server accepts. */
export function snapshotName(document: string): string {
  const name = document.replace(/\.[A-Za-z0-9]{1,5}$/, "").normalize("NFKD")
    .replace(/[^A-Za-z0-9._-]+/g, "-").replace(/^[-.]+|[-.]+$/g, "");
  return name.slice(0, 100) || "document";
}
