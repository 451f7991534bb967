// SPDX-License-Identifier: MIT
// The user's choices: the cache's policy, sampling, the system prompt; and the requests made from
// them.
import type { KvRequest, Message, Param, Policy, Props, Value } from "./types";

export interface Settings {
  policy: string;
  /** For each policy: the parameters that differ from the values in force on the server. */
  params: Record<string, Record<string, Value>>;
  /** Whether answers report the positions that are kept. */
  positions: boolean;
  /** Whether a second answer is computed with the full cache. */
  compare: boolean;
  snapshot: string;
  /** What new snapshots keep: what the server decides, every row, or what a policy chooses. */
  keeps: Keeps;
  system: string;
  /** Sampling parameters that differ from the server's; max_tokens too. */
  sampling: Record<string, number>;
}

export type Keeps = "server" | "full" | "chosen";
export const kKeeps: Record<Keeps, string> = {
  server: "what the server decides",
  full: "every row; each question chooses",
  chosen: "what matters without a question",
};

export const kFull = "full";

/** A model without a chat template: it continues texts, and knows no questions. */
export function isBaseModel(props: Props): boolean {
  return props.chat_template === "";
}

/** Tokens of a text that a base model writes, which rarely ends by itself, where nobody says. */
export const kCompletionTokens = 256;

/** Fields of requests that are no options of the sampler. */
const kAnswerFields: Param[] = [
  { name: "max_tokens", type: "integer", least: 1, most: 10_000_000, default: "", help: "Of an answer" },
];

/** The fields of the page that have to do with sampling, in the order in which they are shown: the server's own
 *  options of the sampler, with the values in force, and those of an answer. */
export function samplingFields(props: Props): Param[] {
  return [...props.sampling, ...kAnswerFields];
}

export function defaultSettings(props: Props): Settings {
  return { policy: String(props.kv.defaults.policy), params: {}, positions: true, compare: false,
    snapshot: "", keeps: "server", system: "", sampling: {} };
}

/** Reads stored settings. Values that this server does not know are left out. */
export function readSettings(stored: unknown, props: Props): Settings {
  const settings = defaultSettings(props);
  if (typeof stored !== "object" || stored === null) return settings;
  const given = stored as Partial<Record<keyof Settings, unknown>>;
  const policies = new Map(props.kv.policies.map((p) => [p.name, p]));
  if (typeof given.policy === "string" && policies.has(given.policy)) settings.policy = given.policy;
  if (typeof given.positions === "boolean") settings.positions = given.positions;
  if (typeof given.compare === "boolean") settings.compare = given.compare;
  if (typeof given.keeps === "string" && given.keeps in kKeeps) settings.keeps = given.keeps as Keeps;
  if (typeof given.system === "string") settings.system = given.system;
  if (typeof given.snapshot === "string" && props.has_snapshots) settings.snapshot = given.snapshot;
  for (const [name, values] of Object.entries(given.params ?? {})) {
    const policy = policies.get(name);
    for (const param of policy?.params ?? []) {
      const value = (values as Record<string, unknown> | null)?.[param.name];
      if (isValid(param, value)) (settings.params[name] ??= {})[param.name] = value;
    }
  }
  for (const field of samplingFields(props)) {
    const value = (given.sampling as Record<string, unknown> | undefined)?.[field.name];
    if (typeof value === "number" && isValid(field, value)) settings.sampling[field.name] = value;
  }
  return settings;
}

/** Whether the server would accept this value. */
export function isValid(param: Param, value: unknown): value is Value {
  if (param.type === "boolean") return typeof value === "boolean";
  if (param.type === "word") return typeof value === "string" && (param.words ?? []).includes(value);
  if (typeof value !== "number" || !Number.isFinite(value)) return false;
  if (value < (param.least ?? -Infinity) || value > (param.most ?? Infinity)) return false;
  return param.type === "real" || (Number.isInteger(value) && (!param.odd || value % 2 !== 0));
}

/** The range of a number: "odd, 1 to 65,535", "0 to 1". */
export function rangeText(param: Param): string {
  const text = (n: number) => n.toLocaleString("en-US", { maximumFractionDigits: 6 });
  if (param.least === undefined || param.most === undefined) return "";
  const most = param.most > 1e8 ? "" : ` to ${text(param.most)}`;
  return `${param.odd ? "odd, " : ""}${most ? "" : "from "}${text(param.least)}${most}`;
}

/** The value of a parameter in requests that do not name it. */
export function inForce(policy: Policy, param: Param): Value {
  return policy.values?.[param.name] ?? param.default;
}

/** Stores a choice, but not one that equals the value in force. */
export function setParam(settings: Settings, policy: Policy, param: Param, value: Value): void {
  const values = (settings.params[policy.name] ??= {});
  if (value === inForce(policy, param)) delete values[param.name];
  else values[param.name] = value;
}

/** The `kv` objects of the requests that one message needs: one, or one and the full cache's.
 *  `hasChosen`: the snapshot in use holds what its own policy has chosen. */
export function kvRequests(settings: Settings, hasChosen = false): KvRequest[] {
  const chosen: KvRequest = { policy: settings.policy, ...settings.params[settings.policy] };
  if (settings.snapshot) return [{ ...(hasChosen ? {} : chosen), snapshot: settings.snapshot }];
  if (!settings.compare || settings.policy === kFull) return [chosen];
  // neither may benefit from what the other has read
  return [{ ...chosen, reuse: false }, { policy: kFull, reuse: false }];
}

/** What a new snapshot is made with. What is chosen without a question is chosen by the server's own
 *  policy for documents, with the budget of the settings. */
export function snapshotBody(settings: Settings, name: string, text: string): object {
  const { budget, ratio } = settings.params[settings.policy] ?? {};
  const kv = { ...(budget !== undefined ? { budget } : {}), ...(ratio !== undefined ? { ratio } : {}) };
  const keeps = { server: {}, full: { keep_full: true }, chosen: { keep_full: false, kv } }[settings.keeps];
  return { name, text, ...(settings.system ? { system: settings.system } : {}), ...keeps };
}

/** A full cache keeps every position, so a list of them is useless; a snapshot has no text that an answer
 *  could be taken from. */
function reportOf(settings: Settings, kv: KvRequest): string {
  const positions = settings.positions && kv.policy !== kFull;
  if (kv.snapshot !== undefined) return positions ? "positions" : "summary";
  return positions ? "all" : "sources";
}

/** `input`: a conversation, or a text that the model continues. */
export function requestBody(settings: Settings, kv: KvRequest, input: Message[] | string): object {
  const completes = typeof input === "string";
  return {
    ...(completes ? { prompt: input, max_tokens: kCompletionTokens } : { messages: input }),
    ...settings.sampling,
    kv,
    kv_report: reportOf(settings, kv),
    return_progress: true,
  };
}
