// SPDX-License-Identifier: MIT
// The server's endpoints that the page calls. Every error is an ApiError with the server's message.
import { EventParser } from "./sse";
import type { Chunk, Fit, Message, Props, Snapshot } from "./types";

export class ApiError extends Error {
  /** `status` 0: the server could not be reached. */
  constructor(readonly status: number, message: string) {
    super(message);
  }
}

/** The server's message in an error object; `otherwise` if there is none. */
export function errorText(body: string, otherwise: string): string {
  try {
    const message = (JSON.parse(body) as { error?: { message?: unknown } }).error?.message;
    if (typeof message === "string" && message) return message;
  } catch {
    // not JSON, but perhaps the text of a proxy
  }
  return otherwise;
}

export interface TokenPieces {
  tokens: { id: number; piece: string | number[] }[];
}

/** Requests by what they do, the page's own among them. */
export interface ServerLoad {
  waiting: number;
  reading: number;
  answering: number;
}

/** Reads the numbers in the text of /metrics; 0 for those that are not there. */
export function serverLoad(metrics: string): ServerLoad {
  const number = (state: string) => Number(new RegExp(`^snapkv_sessions\\{state="${state}"\\} (\\d+)`, "m").exec(metrics)?.[1] ?? 0);
  return { waiting: number("waiting"), reading: number("reading"), answering: number("answering") };
}

export class Api {
  constructor(public key: string) {}

  props(): Promise<Props> {
    return this.json("GET", "/props");
  }
  async snapshots(): Promise<Snapshot[]> {
    return (await this.json<{ data: Snapshot[] }>("GET", "/v1/kv/snapshots")).data;
  }
  makeSnapshot(body: object): Promise<unknown> {
    return this.json("POST", "/v1/kv/snapshots", body);
  }
  eraseSnapshot(name: string): Promise<unknown> {
    return this.json("DELETE", `/v1/kv/snapshots/${encodeURIComponent(name)}`);
  }
  async countTokens(text: string): Promise<number> {
    const answer = await this.json<{ tokens: number[] }>("POST", "/tokenize",
      { content: text, parse_special: false });
    return answer.tokens.length;
  }
  tokenize(content: string, add_special: boolean): Promise<TokenPieces> {
    return this.json("POST", "/tokenize", { content, add_special, with_pieces: true });
  }
  async applyTemplate(messages: Message[]): Promise<string> {
    return (await this.json<{ prompt: string }>("POST", "/apply-template", { messages })).prompt;
  }

  /** The text of a document's bytes: PDF, HTML, EPUB, Word, text in other encodings. */
  async documentText(name: string, bytes: Uint8Array): Promise<string> {
    const path = `/v1/documents/text?name=${encodeURIComponent(name)}`;
    const response = await this.request("POST", path, "application/octet-stream", bytes as BodyInit);
    return ((await response.json()) as { text: string }).text;
  }

  /** What the server is doing for all its clients. */
  async load(): Promise<ServerLoad> {
    return serverLoad(await (await this.send("GET", "/metrics")).text());
  }

  /** Whether the server could read the prompt of this body. */
  fit(body: object): Promise<Fit> {
    return this.json("POST", "/v1/kv/fit", body);
  }

  /** A chat, or the completion of a text where `body` has a prompt, as a stream. Ends with the
   *  stream; an abort is an AbortError. */
  async *generate(body: object, signal: AbortSignal): AsyncGenerator<Chunk> {
    const path = "prompt" in body ? "/v1/completions" : "/v1/chat/completions";
    const response = await this.send("POST", path, { ...body, stream: true }, signal);
    const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
    const parser = new EventParser();
    while (true) {
      const { value, done } = await reader.read().catch((error: unknown) => {
        if (signal.aborted) throw error;
        throw new ApiError(0, "the connection to the server broke off");
      });
      if (done) throw new ApiError(0, "the server ended the answer before it was complete");
      for (const data of parser.push(value)) {
        if (data === "[DONE]") return;
        const chunk = JSON.parse(data) as Chunk & { error?: unknown };
        if (chunk.error !== undefined) throw new ApiError(500, errorText(data, data));
        yield chunk;
      }
    }
  }

  private async json<T>(method: string, path: string, body?: object, signal?: AbortSignal): Promise<T> {
    return (await this.send(method, path, body, signal)).json() as Promise<T>;
  }

  private send(method: string, path: string, body?: object, signal?: AbortSignal): Promise<Response> {
    return this.request(method, path, "application/json", body && JSON.stringify(body), signal);
  }

  private async request(method: string, path: string, type: string, body?: BodyInit, signal?: AbortSignal): Promise<Response> {
    const headers: Record<string, string> = {};
    if (this.key) headers.Authorization = `Bearer ${this.key}`;
    if (body) headers["Content-Type"] = type;
    let response: Response;
    try {
      response = await fetch(path, { method, headers, signal, body });
    } catch (error) {
      if (signal?.aborted) throw error;
      throw new ApiError(0, "the server can't be reached");
    }
    if (response.ok) return response;
    const otherwise = `${method} ${path}: the server answered ${response.status}`;
    throw new ApiError(response.status, errorText(await response.text(), otherwise));
  }
}
