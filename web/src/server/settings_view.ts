// SPDX-License-Identifier: MIT
// The settings: the cache's policy with the fields of the policies' own tables, the system prompt and
// sampling. `changed` is called after each valid change.
import { count, percent } from "../format";
import { el } from "../page";
import { inForce, isBaseModel, isValid, kCompletionTokens, kFull, rangeText, samplingFields, setParam, type Settings } from "./settings";
import type { Param, Policy, Props, Snapshot, Value } from "./types";

let nextId = 0;

/** A label, its control, and a line of help text. */
function field(label: string, control: HTMLElement, help: string): HTMLElement {
  const id = `field-${++nextId}`;
  control.id = id;
  const parts: HTMLElement[] = [el("label", { for: id }, label), control];
  if (help) {
    control.setAttribute("aria-describedby", `${id}-help`);
    parts.push(el("small", { id: `${id}-help` }, help));
  }
  return el("div", { class: control instanceof HTMLInputElement && control.type === "checkbox" ? "field check" : "field" },
    ...parts);
}

function select(options: string[], chosen: string): HTMLSelectElement {
  const control = el("select", {}, ...options.map((text) => el("option", { value: text }, text)));
  control.value = chosen;
  return control;
}

/** Says why a value can't be used, and what is used instead; "" when it can. */
function explain(box: HTMLElement, control: HTMLElement, reason: string): void {
  box.querySelector(".reason")?.remove();
  const about = [control.id + "-help"].filter((id) => box.querySelector(`#${id}`));
  control.setAttribute("aria-invalid", String(reason !== ""));
  if (reason) {
    const id = `${control.id}-reason`;
    control.after(el("small", { class: "reason", role: "alert", id }, reason));
    about.unshift(id);
  }
  if (about.length > 0) control.setAttribute("aria-describedby", about.join(" "));
  else control.removeAttribute("aria-describedby");
}

/** `used`: the value that stays in force. */
function refusal(param: Param, given: unknown, used: string): string {
  const range = rangeText(param);
  const whole = param.type === "integer" ? "a whole number" : "a number";
  const what = typeof given === "number" && Number.isFinite(given) ? given.toLocaleString("en-US", { maximumFractionDigits: 6 }) : "This";
  return `${what} can't be used: it must be ${whole}${range ? `, ${range}` : ""}. ${used} stays in force.`;
}

const words = (name: string) => name[0].toUpperCase() + name.slice(1).replaceAll("_", " ");

/** The field for one parameter; a value that the server would refuse is marked and not stored. */
function paramField(policy: Policy, param: Param, settings: Settings, changed: () => void): HTMLElement {
  const value = settings.params[policy.name]?.[param.name] ?? inForce(policy, param);
  let control: HTMLInputElement | HTMLSelectElement;
  let read: () => Value;
  if (param.type === "boolean") {
    const box = el("input", { type: "checkbox" });
    box.checked = value === true;
    [control, read] = [box, () => box.checked];
  } else if (param.type === "word") {
    const list = select(param.words ?? [], String(value));
    [control, read] = [list, () => list.value];
  } else {
    const input = el("input", { type: "number", step: param.type === "integer" ? "1" : "any", inputmode: "decimal",
      min: String(param.least), max: String(param.most), value: String(value) });
    [control, read] = [input, () => input.valueAsNumber];
  }
  control.dataset.param = param.name;
  const range = param.type === "integer" || param.type === "real" ? ` (${rangeText(param)})` : "";
  const box = field(words(param.name), control, `${param.help}${range}`);
  const mark = () => box.classList.toggle("changed", settings.params[policy.name]?.[param.name] !== undefined);
  mark();
  control.addEventListener("change", () => {
    const given = read();
    const used = settings.params[policy.name]?.[param.name] ?? inForce(policy, param);
    explain(box, control, isValid(param, given) ? "" : refusal(param, given, String(used)));
    if (!isValid(param, given)) return;
    setParam(settings, policy, param, given);
    mark();
    changed();
  });
  return box;
}

/** Fields that few people change, behind a word that opens them. */
function advanced(fields: HTMLElement[]): HTMLElement[] {
  return fields.length === 0 ? [] : [el("details", { class: "advanced" }, el("summary", {}, "Advanced"), ...fields)];
}

/** Which rows a snapshot holds, in the user's words; "" where the question chooses among all. */
export function ownPolicy({ kv, tokens }: Snapshot): string {
  if (!kv) return "";
  const kept = Number(kv.ratio) > 0 ? `${percent(Number(kv.ratio))}` : kv.budget === undefined ? "all" : count(Number(kv.budget));
  return `${kv.policy}, ${kept} of ${count(tokens ?? 0)} rows`;
}

/** In place of the policy's fields: what the snapshot in use was made with. */
function snapshotFields(snapshot: Snapshot): HTMLElement[] {
  return [el("p", { class: "own-policy" }, "The snapshot in use has its own: ", el("b", {}, ownPolicy(snapshot)), "."),
    el("p", { class: "details" }, "Its rows were chosen when it was made. A question keeps all of its own.")];
}

function policyFields(policy: Policy, settings: Settings, changed: () => void, draw: () => void): HTMLElement[] {
  const fields = policy.params.map((param) => ({ param, element: paramField(policy, param, settings, changed) }));
  const isPlain = ({ param }: { param: Param }) => param.name === "budget";
  const more = fields.filter((f) => !isPlain(f)).map((f) => f.element);
  if (policy.name !== kFull) {
    const positions = el("input", { type: "checkbox" });
    positions.checked = settings.positions;
    positions.addEventListener("change", () => {
      settings.positions = positions.checked;
      changed();
    });
    more.push(field("Report what is kept", positions, "For the map and the shaded prompt; takes no time, but much to send for large caches"));
    const reset = el("button", { type: "button" }, "Back to the server's values");
    reset.addEventListener("click", () => {
      delete settings.params[policy.name];
      changed();
      draw();
    });
    more.push(reset);
  }
  return [...fields.filter(isPlain).map((f) => f.element), ...advanced(more)];
}

interface Fields {
  element: HTMLElement;
  refresh(): void;
}

function cacheFields(props: Props, settings: Settings, inUse: () => Snapshot | null, changed: () => void): Fields {
  const element = el("div");
  let shown = "";
  const own = () => {
    const snapshot = inUse();
    return snapshot?.kv ? `${snapshot.name} ${ownPolicy(snapshot)}` : "";
  };
  const draw = () => {
    const snapshot = inUse();
    shown = own();
    if (snapshot?.kv) return element.replaceChildren(...snapshotFields(snapshot));
    const open = element.querySelector<HTMLDetailsElement>(".advanced")?.open ?? false;
    const policy = props.kv.policies.find((p) => p.name === settings.policy)!;
    const list = select(props.kv.policies.map((p) => p.name), settings.policy);
    list.dataset.setting = "policy";
    list.addEventListener("change", () => {
      settings.policy = list.value;
      changed();
      draw();
      element.querySelector<HTMLElement>("[data-setting=policy]")!.focus();
    });
    element.replaceChildren(field("Policy", list, policy.score), ...policyFields(policy, settings, changed, draw));
    const more = element.querySelector<HTMLDetailsElement>(".advanced");
    if (more) more.open = open;
  };
  draw();
  // Fields that stay the same are left alone: somebody may be typing.
  const refresh = () => {
    if (own() !== shown) draw();
  };
  return { element, refresh };
}

function samplingField(usual: Value, param: Param, settings: Settings, changed: () => void): HTMLElement {
  const input = el("input", { type: "number", min: String(param.least), max: String(param.most),
    step: param.type === "integer" ? "1" : "any", inputmode: "decimal",
    placeholder: typeof usual === "number" ? String(Number(usual.toPrecision(6))) : "" });
  input.dataset.sampling = param.name;
  if (settings.sampling[param.name] !== undefined) input.value = String(settings.sampling[param.name]);
  const box = field(words(param.name), input, param.help);
  input.addEventListener("change", () => {
    const value = input.valueAsNumber;
    const empty = input.value === "" && !input.validity.badInput;
    const valid = empty || isValid(param, value);
    const used = settings.sampling[param.name] ?? input.placeholder;
    explain(box, input, valid ? "" : refusal(param, value, String(used) || "No value"));
    if (!valid) return;
    if (empty) delete settings.sampling[param.name];
    else settings.sampling[param.name] = value;
    changed();
  });
  return box;
}

function samplingSection(props: Props, settings: Settings, changed: () => void): HTMLElement {
  const usual = ({ name, default: value }: Param) =>
    name === "max_tokens" && isBaseModel(props) ? kCompletionTokens : value;
  const shown = (rows: Param[]) => el("div", { class: "pairs" },
    ...rows.map((row) => samplingField(usual(row), row, settings, changed)));
  const all = samplingFields(props);
  const isPlain = ({ name }: Param) => name === "temperature" || name === "max_tokens";
  return el("div", {}, shown(all.filter(isPlain)), ...advanced([shown(all.filter((row) => !isPlain(row)))]));
}

function systemField(settings: Settings, changed: () => void): HTMLElement {
  const area = el("textarea", { rows: "3", placeholder: "None", spellcheck: "true", "data-setting": "system" });
  area.value = settings.system;
  area.addEventListener("change", () => {
    settings.system = area.value;
    changed();
  });
  return field("System prompt", area, "Sent before the messages that follow");
}

export interface SettingsView {
  sections: HTMLElement[];
  /** Another snapshot is in use, or none. */
  refresh(): void;
}

/** `inUse`: the snapshot that the conversation is about, as far as it is known. */
export function settingsView(props: Props, settings: Settings, inUse: () => Snapshot | null, changed: () => void): SettingsView {
  const section = (name: string, open: boolean, ...content: HTMLElement[]) =>
    el("details", { class: "section", "data-section": name, ...(open ? { open: "" } : {}) },
      el("summary", {}, name), ...content);
  const cache = cacheFields(props, settings, inUse, changed);
  const sections = [section("Cache", true, cache.element)];
  if (!isBaseModel(props)) sections.push(section("System prompt", false, systemField(settings, changed)));
  sections.push(section("Sampling", false, samplingSection(props, settings, changed)));
  return { sections, refresh: cache.refresh };
}
