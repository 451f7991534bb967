// SPDX-License-Identifier: MIT
// The options of the engine, by `node scripts/make-options.js`.

/** Every option; parameters of a policy (`kv...`) need that `kvPolicy`. */
export interface Options {
  /** Where the model runs. Default: automatic. */
  device?: 'automatic' | 'cpu' | 'cuda' | 'reference';
  /** Precision of matrix products. Default: automatic. */
  compute?: 'automatic' | 'f32' | 'bf16';
  /** Where weights are read from while decoding. Default: automatic. */
  weights?: 'automatic' | 'mapped' | 'huge_pages' | 'copy';
  /** Threads; 0: one for each processor; a whole number from 0 to 4096. Default: 0. */
  nThreads?: number;
  /** Refuse a model with weights that are not finite; true or false. Default: false. */
  checkTensors?: boolean;
  /** Most tokens, prompt and answer; 0: the model's context; a whole number from 0 to 1073741824. Default: 0. */
  nCtx?: number;
  /** Type of the cache; q8_0 needs a head_dim that 32 divides. Default: f16. */
  kvType?: 'f32' | 'f16' | 'bf16' | 'q8_0';
  /** Budget as bytes of all kept rows; 0: kv_budget rows; bytes from 0 to 1152921504606846976, as in 256MiB. Default: 0. */
  kvMemory?: number | string;
  /** Compress again before a layer has more rows; 0: never; a whole number from 0 to 1073741824. Default: 0. */
  kvDecodeLimit?: number;
  /** Keep every row for the selection of later turns; true or false. Default: false. */
  kvRefresh?: boolean;
  /** Prompt tokens computed at a time; a whole number from 1 to 1048576. Default: 512. */
  chunk?: number;
  /** Rows allocated at once for generated tokens; a whole number from 1 to 1048576. Default: 256. */
  decodeReserve?: number;
  /** Bytes that reading may take; 0: what is free; bytes from 0 to 1152921504606846976, as in 256MiB. Default: 0. */
  memoryLimit?: number | string;
  /** Folder for hidden states that memory has no room for. Default: none. */
  spillDir?: string;
  /** What is kept of a prompt. Default: snapkv-max. */
  kvPolicy?: 'full' | 'snapkv' | 'snapkv-max' | 'pyramidkv' | 'ada-snapkv' | 'chunkkv' | 'tova' | 'h2o' | 'expected-attention' | 'streaming-llm' | 'knorm' | 'keydiff' | 'lagkv' | 'random';
  /** 0: always the likeliest token; a number from 0 to 1000. Default: 0.8. */
  temperature?: number;
  /** Only the k likeliest tokens; 0: off; a whole number from 0 to 2147483647. Default: 40. */
  topK?: number;
  /** Only the likeliest tokens of this probability; 1: off; a number from 0 to 1. Default: 0.95. */
  topP?: number;
  /** Only tokens of this share of the best one; 0: off; a number from 0 to 1. Default: 0.05. */
  minP?: number;
  /** Makes repeated tokens unlikelier; 1: off; a number from 0.001 to 1000. Default: 1. */
  repeatPenalty?: number;
  /** Tokens that penalties look back; -1: all; a whole number from -1 to 2147483647. Default: 64. */
  repeatLastN?: number;
  /** Taken off tokens that were there already; a number from -2 to 2. Default: 0. */
  presencePenalty?: number;
  /** The same for each time that they were there; a number from -2 to 2. Default: 0. */
  frequencyPenalty?: number;
  /** The same seed draws the same answer; a whole number, at least 0. Default: 0. */
  seed?: number;
  /** Tokens of an answer; -1: until the context is full; a whole number from -1 to 1073741824. Default: -1. */
  maxTokens?: number;
  /** The answer ends before this text; may be set several times. Default: none. */
  stop?: string | string[];
  /** The answer ends with its first paragraph; true or false. Default: false. */
  oneParagraph?: boolean;
  /** Never choose a token that ends the answer; true or false. Default: false. */
  ignoreEos?: boolean;
  /** Control tokens are part of the text; true or false. Default: false. */
  showsControlTokens?: boolean;
  /** Alternatives with each token; -1: none; a whole number from -1 to 1048576. Default: -1. */
  topLogprobs?: number;
  /** Rows kept per layer and KV head, the window included; at least 1. Default: 1024. */
  kvBudget?: number;
  /** Keep this share of the prompt instead of a budget; 0: off; from 0 to 1. Default: 0. */
  kvRatio?: number;
  /** Last tokens of the prompt, which choose what is kept and are always kept; at least 1. Default: by kvPolicy. */
  kvWindowSize?: number;
  /** First positions that are always kept; -1: the default; at least -1. Default: by kvPolicy. */
  kvSinks?: number;
  /** Pooling width: a fact must fit into it; odd and from 1 to 65535. Default: by kvPolicy. */
  kvKernelSize?: number;
  /** How votes of neighbours combine. Default: max. */
  kvPooling?: 'max' | 'avg';
  /** How query heads of one KV head combine their votes. Default: mean. */
  kvGroup?: 'mean' | 'max';
  /** Choose half of the rows by attention times the size of what they add; true or false. Default: false. */
  kvCritical?: boolean;
  /** Share of the rows that are chosen by their own votes, not pooled; from 0 to 1. Default: 0.5. */
  kvOwnShare?: number;
  /** The last layer keeps about budget / beta; at least 1. Default: 20. */
  kvPyramidBeta?: number;
  /** Share of a head's budget that other heads can't take; from 0 to 1. Default: 0.2. */
  kvHeadFloor?: number;
  /** Rows kept or dropped together; at least 1. Default: 20. */
  kvChunkLength?: number;
  /** Coming positions that count; from 1 to 65536. Default: 512. */
  kvNFuture?: number;
  /** Rows that are ranked together, in the range of as many later ones; at least 1. Default: 128. */
  kvLagSize?: number;
  /** Another seed, other rows; at least 0. Default: 0. */
  kvSeed?: number;
}

type Snake<Name extends string> = Name extends `${infer Head}${infer Tail}`
  ? Head extends Lowercase<Head> ? `${Head}${Snake<Tail>}` : `_${Lowercase<Head>}${Snake<Tail>}`
  : '';
/** The same in the spelling of the C API: `kv_budget`. */
export type SnakeOptions = {[Name in keyof Options as Snake<Name & string>]?: Options[Name]};
