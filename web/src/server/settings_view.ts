// SPDX-License-Identifier: MIT
// The settings: the cache's policy with its parameters from the policies' tables, the system prompt
// and sampling. Calls `changed` after each valid change.
import { el } from "../page";
import { inForce, isValid, kFull, kSampling, rangeText, setParam, type Settings } from "./settings";
import type { Param, Policy, Props, Value } from "./types";

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
    control.setAttribute("aria-invalid", String(!isValid(param, given)));
    if (!isValid(param, given)) return;
    setParam(settings, policy, param, given);
    mark();
    changed();
  });
  return box;
}

function cacheFields(props: Props, settings: Settings, changed: () => void): HTMLElement {
  const box = el("div");
  const draw = () => {
    const policy = props.kv.policies.find((p) => p.name === settings.policy)!;
    const list = select(props.kv.policies.map((p) => p.name), settings.policy);
    list.dataset.setting = "policy";
    list.addEventListener("change", () => {
      settings.policy = list.value;
      changed();
      draw();
      box.querySelector<HTMLElement>("[data-setting=policy]")!.focus();
    });
    const parts = [field("Policy", list, policy.score)];
    for (const param of policy.params) parts.push(paramField(policy, param, settings, changed));
    if (settings.policy !== kFull) {
      const positions = el("input", { type: "checkbox" });
      positions.checked = settings.positions;
      positions.addEventListener("change", () => {
        settings.positions = positions.checked;
        changed();
      });
      parts.push(field("Report what is kept", positions, "For the map and the shaded prompt; takes no time, but much to send for large caches"));
      const reset = el("button", { type: "button" }, "Back to the server's values");
      reset.addEventListener("click", () => {
        delete settings.params[policy.name];
        changed();
        draw();
      });
      parts.push(reset);
    }
    box.replaceChildren(...parts);
  };
  draw();
  return box;
}

function samplingFields(props: Props, settings: Settings, changed: () => void): HTMLElement {
  const defaults = props.default_generation_settings.params;
  return el("div", { class: "pairs" }, ...kSampling.map(({ name, label, least, most, step, help }) => {
    const usual = defaults[name];
    const input = el("input", { type: "number", min: String(least), max: String(most),
      step: step < 1 ? "any" : "1", inputmode: "decimal",
      placeholder: usual === undefined ? "" : String(Number(usual.toPrecision(6))) });
    input.dataset.sampling = name;
    if (settings.sampling[name] !== undefined) input.value = String(settings.sampling[name]);
    input.addEventListener("change", () => {
      const value = input.valueAsNumber;
      const empty = input.value === "" && !input.validity.badInput;
      const valid = empty || (value >= least && value <= most && (step < 1 || Number.isInteger(value)));
      input.setAttribute("aria-invalid", String(!valid));
      if (!valid) return;
      if (empty) delete settings.sampling[name];
      else settings.sampling[name] = value;
      changed();
    });
    return field(label, input, help);
  }));
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

export function settingsView(props: Props, settings: Settings, changed: () => void): HTMLElement[] {
  const section = (name: string, open: boolean, ...content: HTMLElement[]) =>
    el("details", { class: "section", "data-section": name, ...(open ? { open: "" } : {}) },
      el("summary", {}, name), ...content);
  return [
    section("Cache", true, cacheFields(props, settings, changed)),
    section("System prompt", false, systemField(settings, changed)),
    section("Sampling", false, samplingFields(props, settings, changed)),
  ];
}
