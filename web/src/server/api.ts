// SPDX-License-Identifier: MIT
// The server's endpoints that the page calls. Every error is an ApiError with the server's message.
import { EventParser } from "./sse";
import type { Chunk, Message, Props, Snapshot } from "./types";

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

  /** POST /v1/chat/completions as a stream. Ends with the stream; throws AbortError when aborted. */
  async *chat(body: object, signal: AbortSignal): AsyncGenerator<Chunk> {
    const response = await this.send("POST", "/v1/chat/completions", { ...body, stream: true }, signal);
    const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
    const parser = new EventParser();
    while (true) {
      const { value, done } = await reader.read();
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

  private async send(method: string, path: string, body?: object, signal?: AbortSignal): Promise<Response> {
    const headers: Record<string, string> = {};
    if (this.key) headers.Authorization = `Bearer ${this.key}`;
    if (body) headers["Content-Type"] = "application/json";
    let response: Response;
    try {
      response = await fetch(path, { method, headers, signal, body: body && JSON.stringify(body) });
    } catch (error) {
      if (signal?.aborted) throw error;
      throw new ApiError(0, "the server can't be reached");
    }
    if (response.ok) return response;
    const otherwise = `${method} ${path}: the server answered ${response.status}`;
    throw new ApiError(response.status, errorText(await response.text(), otherwise));
  }
}
