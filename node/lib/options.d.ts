// SPDX-License-Identifier: MIT
// The options of the engine, by `node scripts/make-options.js`.

/** Every option; parameters of a policy (`kv...`) need that `kvPolicy`. */
export interface Options {
  /** Where the model runs; auto: cuda, else cpu; cpu: this machine's processors; cuda: an NVIDIA GPU, in builds with SNAPKV_CUDA; reference: plain loops, exact and very slow. Default: auto. */
  device?: 'auto' | 'cpu' | 'cuda' | 'reference';
  /** Precision of matrix products; auto: activations are rounded to 8 bits or to bf16, whichever is fastest; bf16: to 8 bits while decoding only; f32: nothing is rounded. Default: auto. */
  compute?: 'auto' | 'f32' | 'bf16';
  /** Decode from the mapped file (mapped) or, faster, from a copy in huge pages made at the start (huge); auto: the copy is made while the model is used, if there is memory; copy: read the whole model at the start and close its files, which may then change. Default: auto. */
  weights?: 'auto' | 'mapped' | 'huge' | 'copy';
  /** Threads; 0: one for each processor that the process may use; from 0 to 4096. Default: 0. */
  nThreads?: number;
  /** Read all weights first, and refuse models with infinities or NaNs among them; true or false. Default: false. */
  checkTensors?: boolean;
  /** How positions are scaled for longer contexts; auto: as the model's file says, by YaRN with yarn_factor; none: not at all; yarn: by YaRN, where the model's makers publish a factor. Default: auto. */
  ropeScaling?: 'auto' | 'none' | 'yarn';
  /** YaRN's factor: the context becomes so many times as long; 0: the file's; from 0 to 1024. Default: 0. */
  yarnFactor?: number;
  /** The context that the model was trained with, for YaRN; 0: the file's; from 0 to 1073741824. Default: 0. */
  yarnOrigCtx?: number;
  /** A smaller model with the same vocabulary, which guesses what the model then checks (draft model): GGUF file or folder; CPU only; a text. Default: none. */
  draftModel?: string;
  /** Most tokens, prompt and answer; 0: the model's own; from 0 to 1073741824. Default: 0. */
  nCtx?: number;
  /** Type of the cache; q8_0 takes half of f16's memory. Default: f16. */
  kvType?: 'f32' | 'f16' | 'bf16' | 'q8_0';
  /** The largest budget whose cache takes no more than this, as in 256MiB, room for the first generated tokens included; 0: off; a size from 0 B to 1 EiB, as in 256MiB or 8G. Default: 0. */
  kvMemory?: number | string;
  /** Compress to the budget again when generated tokens have filled the cache to this many rows per layer and KV head, from all rows with kv_refresh; 0: never; from 0 to 1073741824. Default: 0. */
  kvDecodeLimit?: number;
  /** Keep the uncompressed rows as well, in memory or in files of spill_dir, so that every further turn reads and chooses from all of them; true or false. Default: false. */
  kvRefresh?: boolean;
  /** Prompt tokens computed at a time; bounds activations; 0: 512, in mixtures of experts up to 2048; from 0 to 1048576. Default: 0. */
  chunk?: number;
  /** What tokens of a long prompt attend to; dense: all before them; sparse: the blocks of 128 that matter to them, faster and not exact, CPU only. Default: dense. */
  prefillAttention?: 'dense' | 'sparse';
  /** With sparse attention, the share of each head's attention that the chosen blocks are to have; from 0.1 to 1. Default: 0.9. */
  attentionShare?: number;
  /** Rows allocated at once for generated tokens; from 1 to 1048576. Default: 256. */
  decodeReserve?: number;
  /** Guess several tokens and check them in one step; the answer stays the same; lookup: those that came after the last ones where these stood before, for quotes, edited code and structured data; self: also those that the kept rows find likely, checked by all rows, which are kept too: the full cache's answer, sooner after a long prompt; model: also those of draft_model. Default: lookup. */
  draft?: 'off' | 'lookup' | 'self' | 'model';
  /** Most tokens guessed for a step; fewer where that is faster; from 1 to 15. Default: 7. */
  draftMax?: number;
  /** As many guessed tokens are checked at least, even where that is slower; from 0 to 15. Default: 0. */
  draftMin?: number;
  /** Context of draft_model, which reads the end of longer texts; from 256 to 1073741824. Default: 4096. */
  draftCtx?: number;
  /** Refuse prompts that would need more, as in 8G; 0: what the system has left; a size from 0 B to 1 EiB, as in 256MiB or 8G. Default: 0. */
  memoryLimit?: number | string;
  /** Keep a long prompt's hidden states in a temporary file in this folder, not in memory; a text. Default: none. */
  spillDir?: string;
  /** What is kept of a prompt. Default: snapkv-max. */
  kvPolicy?: 'full' | 'snapkv' | 'snapkv-max' | 'pyramidkv' | 'ada-snapkv' | 'chunkkv' | 'tova' | 'h2o' | 'expected-attention' | 'streaming-llm' | 'knorm' | 'keydiff' | 'lagkv' | 'kvzip' | 'random';
  /** Temperature; 0: always the likeliest token; from 0 to 1000. Default: 0.8. */
  temperature?: number;
  /** Only the k likeliest tokens; 0: off; at least 0. Default: 40. */
  topK?: number;
  /** Only tokens of this probability together whose surprise is nearest to what the model expects; 1: off; from 0 to 1. Default: 1. */
  typicalP?: number;
  /** Only the likeliest tokens that make up this probability; 1: off; from 0 to 1. Default: 0.95. */
  topP?: number;
  /** Only tokens with this share of the best one's probability; 0: off; from 0 to 1. Default: 0.05. */
  minP?: number;
  /** Makes recent tokens less likely; 1: off; from 0.001 to 1000. Default: 1. */
  repeatPenalty?: number;
  /** Recent tokens for all penalties; 0: off, -1: all; at least -1. Default: 64. */
  repeatLastN?: number;
  /** Makes tokens less likely that are among the recent ones; below 0: likelier; 0: off; from -2 to 2. Default: 0. */
  presencePenalty?: number;
  /** The same for each time that they are among them; from -2 to 2. Default: 0. */
  frequencyPenalty?: number;
  /** The same seed gives the same answer; -1: another one each time; of 64 bits. Default: 0. */
  seed?: number;
  /** Most tokens of an answer; -1: until it ends or the context is full; from -1 to 1073741824. Default: -1. */
  maxTokens?: number;
  /** The answer ends with its first paragraph; true or false. Default: false. */
  oneParagraph?: boolean;
  /** Never let the model end its answer; true or false. Default: false. */
  ignoreEos?: boolean;
  /** Control tokens are part of the text; true or false. Default: false. */
  showsControlTokens?: boolean;
  /** Alternatives reported with each token; -1: none; from -1 to 1048576. Default: -1. */
  topLogprobs?: number;
  /** The answer ends before this text; may be set several times; a text. Default: none. */
  stop?: string | string[];
  /** Rows kept per layer and KV head, the window included; at least 1. Default: 1024. */
  kvBudget?: number | 'auto';
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
  /** Keep only rows with this share of a query's attention, and their neighbours; the budget is the most. 0: the budget alone; from 0 to 1. Default: 0. */
  kvLeastAttention?: number;
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
