// SPDX-License-Identifier: MIT
// snapkv for Node.js: long prompts in little memory.
import {Options, SnakeOptions} from './options';

export {Options, SnakeOptions};

/** Options by name: `kvBudget`, or `kv_budget` as in the C API. A list sets `stop` several times. */
export type AnyOptions = Options & SnakeOptions;

// what `using` looks for, where TypeScript's library or @types/node do not declare it
declare global {
  interface SymbolConstructor {
    readonly dispose: unique symbol;
  }
  interface Disposable {
    [Symbol.dispose](): void;
  }
}

/** What the engine refuses or cannot do. */
export class SnapkvError extends Error {
  /**
   * `SNAPKV_ERROR_USAGE`: a value, a name or an order of calls that cannot work;
   * `SNAPKV_ERROR_BAD_MODEL`: a model that is damaged or not supported;
   * `SNAPKV_ERROR_MEMORY`: no room for a model, a prompt or a cache;
   * `SNAPKV_ERROR_CONTEXT`: more tokens than the session's context holds;
   * `SNAPKV_ERROR_CANCELLED`: ended by `onProgress`;
   * `SNAPKV_ERROR_RUNTIME`: anything else, as a file that cannot be read;
   * `ABORT_ERR`: see {@link AbortError}.
   */
  code: string;
  /** The option (as `kv_budget`) or argument at fault, where there is one. */
  field?: string;
}

/** What a call that its `signal` has ended is rejected with; `cause` is the signal's reason. */
export class AbortError extends SnapkvError {}

/** Of calls that take long. They compute on a thread of the model, never on JavaScript's. */
export interface Controls {
  /** Ends the call with an {@link AbortError}; a session is then as it was before. */
  signal?: AbortSignal;
  /**
   * Told at most 20 times a second how far the call is: `fraction` from 0 to 1. Returning false ends
   * it with `SNAPKV_ERROR_CANCELLED`; what it throws is what the call is rejected with. Reports arrive
   * while the engine goes on, so a call may have succeeded by then.
   */
  onProgress?: (phase: 'load' | 'prefill', fraction: number) => boolean | void;
}

/** Of answers. */
export interface AnswerControls extends Controls {
  /** An {@link Answer} to iterate over instead of a promise of its text. */
  stream?: boolean;
  /** What the answer follows: GBNF, or a JSON schema as an object or text. */
  grammar?: string | object;
  /** Ids that penalties count as written already. Default: the prompt of `generate` and `chat`. */
  history?: Ids;
}
export type Streaming = {stream: true};
export type NotStreaming = {stream?: false};

/** Token ids: whole numbers from 0. */
export type Ids = Int32Array | number[];

/** A message of a conversation; templates may know more fields. */
export interface Message {
  role: string;
  content: unknown;
  [field: string]: unknown;
}
/** A message of the user, or a conversation. */
export type Messages = string | Message[];
/** Further variables of a chat template, as `tools` or `add_generation_prompt`. */
export type TemplateVariables = Record<string, unknown>;

/** What a model's file says. */
export interface ModelInfo {
  path: string;
  architecture: string;
  name: string;
  file_type: string;
  tokenizer: string;
  n_layer: number;
  n_embd: number;
  n_ff: number;
  n_vocab: number;
  /** Tokens of the longest text that it was trained on. */
  n_ctx_train: number;
  n_head: number;
  n_head_kv: number;
  head_dim: number;
  n_params: number;
  weight_bytes: number;
  /** Device, instruction set, threads and precision, for people. */
  backend: string;
  /** Names of its chat templates; without `default` it cannot chat. */
  chat_templates: string[];
}

/** Counts, times and bytes of a session. */
export interface Stats {
  /** Tokens of prompts, and tokens decoded. */
  n_prompt: number;
  n_decoded: number;
  prefill_seconds: number;
  decode_seconds: number;
  /** Bytes of the cache now, of one with every row, and at the highest point. */
  kv_bytes_used: number;
  kv_bytes_full: number;
  kv_bytes_peak: number;
  /** `kv_bytes_full / kv_bytes_used` */
  compression: number;
  /** For each layer: rows there would be, and rows kept of each KV head, `[n_head_kv]`. */
  layers: {n_total: number, n_kept: number[]}[];
}

/** An option, as {@link options} lists it. */
export interface OptionInfo {
  name: string;
  /** The object that has it: options of the later ones may be given to the earlier, as defaults. */
  group: 'model' | 'session' | 'sampler' | 'answer';
  type: 'boolean' | 'integer' | 'real' | 'bytes' | 'word' | 'text' | 'texts';
  default: string;
  range: string;
  help: string;
  words?: string[];
}

/**
 * Every option there is. `policy`: whose parameters (`kv_...`) are listed too; default: those of the
 * default policy.
 */
export function options(policy?: string): OptionInfo[];

/** The engine's version. */
export const version: string;

/**
 * A model: a GGUF file or a Hugging Face folder. Calls of a model and of all that is made of it run on
 * one thread of its own, in the order of the calls; while a prompt is read, steps of other answers
 * run in between.
 */
export class Model implements Disposable {
  private constructor();
  /**
   * Options of sessions, samplers and answers become the defaults of what is made of the model.
   *
   * ```js
   * const model = await Model.load('model.gguf', {nThreads: 2, kvBudget: 1024});
   * ```
   */
  static load(path: string, options?: AnyOptions & Controls): Promise<Model>;
  readonly info: ModelInfo;

  /**
   * The ids of a text. `addSpecial`: with the model's token for the beginning of a text;
   * `parseSpecial`: control tokens spelled out in it become their ids. Both are true by default.
   */
  tokenize(text: string, how?: {addSpecial?: boolean, parseSpecial?: boolean}): Promise<Int32Array>;
  /** The text of ids, with U+FFFD for bytes that are not a whole character. */
  detokenize(ids: Ids): Promise<string>;
  /** The prompt that the model's chat template makes of a conversation. */
  chatText(messages: Messages, variables?: TemplateVariables): Promise<string>;
  /** The ids of the same. Control tokens spelled out in messages stay text. */
  chatTokens(messages: Messages, variables?: TemplateVariables): Promise<Int32Array>;
  /** Whether a token ends an answer. */
  isEndOfGeneration(id: number): boolean;

  session(options?: AnyOptions): Promise<Session>;
  /** Reads a text, or its ids, and keeps every row: a document to ask about. */
  prefill(text: string | Ids, options?: AnyOptions & Controls): Promise<Document>;
  /** A document that {@link Document.save} or `snapkv compress` has written. */
  loadDocument(path: string): Promise<Document>;

  /** The continuation of a text or of ids. */
  generate(prompt: string | Ids, options: AnyOptions & AnswerControls & Streaming): Answer;
  generate(prompt: string | Ids, options?: AnyOptions & AnswerControls & NotStreaming): Promise<string>;
  generate(prompt: string | Ids, options: AnyOptions & AnswerControls): Answer | Promise<string>;
  /**
   * The answer to a message or a conversation, with the model's chat template.
   *
   * ```js
   * for await (const piece of model.chat('Why is the sky blue?', {stream: true})) {
   *   process.stdout.write(piece);
   * }
   * ```
   */
  chat(messages: Messages, options: AnyOptions & AnswerControls & Streaming): Answer;
  chat(messages: Messages, options?: AnyOptions & AnswerControls & NotStreaming): Promise<string>;
  chat(messages: Messages, options: AnyOptions & AnswerControls): Answer | Promise<string>;

  /** Lets the model go once nothing that was made of it is left, instead of when it is collected. */
  free(): void;
  /** As `free()`, at the end of a block that `using` is in. */
  [Symbol.dispose](): void;
}

/**
 * Every row of a text that was read once; each question chooses its own.
 *
 * ```js
 * const kv = await model.prefill(await readFile('book.txt', 'utf8'));
 * console.log(await kv.ask('\nQuestion: Who is the captain?\nAnswer:', {kvBudget: 512}));
 * ```
 */
export class Document implements Disposable {
  private constructor();
  /** Tokens. */
  readonly length: number;
  /** What the model writes after the text and the question, which follows it as it is. */
  ask(question: string | Ids, options: AnyOptions & AnswerControls & Streaming): Answer;
  ask(question: string | Ids, options?: AnyOptions & AnswerControls & NotStreaming): Promise<string>;
  ask(question: string | Ids, options: AnyOptions & AnswerControls): Answer | Promise<string>;
  /** A session that has read the text and, after it, a question. */
  session(question: string | Ids, options?: AnyOptions & Controls): Promise<Session>;
  /** Writes the rows to a file. */
  save(path: string): Promise<void>;
  /** Frees the rows now instead of when the object is collected. */
  free(): void;
  /** As `free()`, at the end of a block that `using` is in. */
  [Symbol.dispose](): void;
}

/**
 * What a model has read, in a compressed cache. Its calls wait for each other; each piece of an answer
 * is one.
 */
export class Session implements Disposable {
  private constructor();
  /** Tokens read so far. */
  readonly nPast: number;
  /** Most tokens that it may read. */
  readonly nCtx: number;
  /** Reads a prompt or a further turn and compresses the cache. */
  prefill(ids: Ids, controls?: Controls): Promise<void>;
  /** Reads one token. */
  decode(token: number): Promise<void>;
  /** The logits after the last token, `[n_vocab]`; empty before the first prompt. */
  logits(): Promise<Float32Array>;
  /** The answer to what was read. The options are those of samplers and answers. */
  generate(options: AnyOptions & AnswerControls & Streaming): Answer;
  generate(options?: AnyOptions & AnswerControls & NotStreaming): Promise<string>;
  generate(options: AnyOptions & AnswerControls): Answer | Promise<string>;
  stats(): Promise<Stats>;
  /** Positions whose rows are in the cache of a layer and KV head, ascending. */
  positions(layer: number, head: number): Promise<Int32Array>;
  /** Forgets everything that was read. */
  reset(): Promise<void>;
  /** Writes the compressed cache to a file. */
  save(path: string): Promise<void>;
  /** Continues from such a file of the same model and options. */
  load(path: string): Promise<void>;
  /** Frees the cache now instead of when the object is collected. */
  free(): void;
  /** As `free()`, at the end of a block that `using` is in. */
  [Symbol.dispose](): void;
}

/**
 * The pieces of an answer as they are written. Nothing is read before the first is asked for; leaving
 * a `for await` ends the answer.
 */
export class Answer implements AsyncIterableIterator<string> {
  private constructor();
  [Symbol.asyncIterator](): this;
  next(): Promise<IteratorResult<string, undefined>>;
  return(value?: undefined): Promise<IteratorResult<string, undefined>>;
  /** The rest of the answer. */
  text(): Promise<string>;
  /** Ids so far. */
  readonly ids: number[];
  /** With `topLogprobs` of at least 0: the natural logarithm of each id's probability. */
  readonly logprobs: number[];
  /** Why it has ended; null while it is written, and where its reader has left it. */
  readonly stopReason: 'eos' | 'stop' | 'paragraph' | 'length' | 'context' | null;
  /** Of its session, once it has ended. */
  readonly stats: Stats | null;
}

/** Lets each session read its token, all in one step. They must be of one model. */
export function decode(sessions: Session[], tokens: Ids): Promise<void>;
