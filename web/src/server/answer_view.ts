// SPDX-License-Identifier: MIT
// One answer: progress while the prompt is read, the text as it arrives, and the KV panel. update()
// must be called whenever the answer has changed; it draws at most once per frame.
import { percent } from "../format";
import { el } from "../page";
import { isRunning, type Answer } from "./conversation";
import { copyButton } from "./copy_button";
import { renderMarkdown } from "./markdown_view";
import { sourcesView } from "./sources_view";
import { details, doneShare, facts, progressText } from "./numbers";

export interface AnswerView {
  element: HTMLElement;
  update(): void;
  /** Offers to show what was kept; `show` fills the box when it is opened. */
  addKept(show: (box: HTMLElement) => void): void;
}

const kStates: Record<string, string> = {
  waiting: "Waiting for the server …", stopped: "Stopped.", writing: "Writing …", reading: "Reading the prompt …",
};

/** The numbers, with a bar for the part of the cache that is left. */
function panel(answer: Answer): HTMLElement[] {
  const all = facts(answer);
  if (all.length === 0) return [];
  const list = el("dl", { class: "facts" }, ...all.map(({ name, label, value, of }) =>
    el("div", { "data-fact": name }, el("dt", {}, label),
      el("dd", {}, el("b", {}, value), ...(of ? [el("span", {}, ` ${of}`)] : [])))));
  const parts: HTMLElement[] = [list];
  if (answer.kv) {
    const share = answer.kv.bytes_after / Math.max(1, answer.kv.bytes_before);
    const bar = el("div", { class: "bar", role: "img", "aria-label": `${percent(share)} of the cache's bytes are left` },
      el("i"));
    (bar.firstElementChild as HTMLElement).style.width = `${Math.max(0.5, Math.min(100, share * 100))}%`;
    parts.unshift(bar);
  }
  parts.push(el("p", { class: "details" }, details(answer)));
  return parts;
}

/** `isText`: the answer continues a text, so that it is shown as it was written. `showSource` gets the text
 *  of a passage that the answer was taken from. */
export function answerView(answer: Answer, title: string, isText: boolean,
    showSource: (passage: string) => void): AnswerView {
  const progress = el("progress", { max: "1", value: "0", "aria-label": "Reading the prompt" });
  const progressLine = el("p", { class: "state" });
  const reasoningText = el("div", { class: "reasoning-text" });
  const reasoning = el("details", { class: "reasoning" }, el("summary", {}, "Reasoning"), reasoningText);
  const text = el("div", { class: "answer-text" });
  const error = el("p", { class: "error", role: "alert" });
  const sources = el("div", {});
  const numbers = el("div", { class: "kv" });
  const kept = el("details", { class: "kept" }, el("summary", {}, "What was kept"));
  const head = el("div", { class: "answer-head" }, el("h3", {}, title), copyButton("copy", "Copy the answer", () => answer.text));
  const element = el("article", { class: "answer", "aria-label": title }, head, progressLine, progress,
    reasoning, text, error, sources, numbers, kept);
  kept.hidden = true;
  let drawn = { text: "", reasoning: "" };

  const draw = () => {
    const running = isRunning(answer);
    element.dataset.state = answer.state;
    element.setAttribute("aria-busy", String(running));
    progress.hidden = answer.state !== "reading";
    if (answer.progress && answer.state === "reading") {
      progress.value = doneShare(answer.progress);
      progressLine.textContent = progressText(answer.progress);
    } else {
      progressLine.textContent = answer.state === "done"
        ? (answer.text === "" && answer.reasoning === "" ? "The answer is empty." : "")
        : (answer.state === "waiting" && answer.waits) || (kStates[answer.state] ?? "");
    }
    progressLine.hidden = progressLine.textContent === "";
    if (answer.reasoning !== drawn.reasoning) {
      reasoningText.replaceChildren(...renderMarkdown(answer.reasoning));
    }
    reasoning.firstElementChild!.textContent = answer.text === "" && running ? "Reasoning …" : "Reasoning";
    reasoning.hidden = answer.reasoning === "";
    if (answer.text !== drawn.text) {
      text.replaceChildren(...(isText ? [el("p", {}, answer.text)] : renderMarkdown(answer.text)));
    }
    drawn = { text: answer.text, reasoning: answer.reasoning };
    error.textContent = answer.error ?? "";
    error.hidden = !answer.error;
    (head.lastElementChild as HTMLElement).hidden = running || answer.text === "";
    if (!running) {
      numbers.replaceChildren(...panel(answer));
      const passages = answer.kv?.sources ?? [];
      sources.replaceChildren(...(passages.length > 0 ? [sourcesView(passages, showSource)] : []));
    }
    numbers.hidden = numbers.childElementCount === 0;
  };
  let waiting = false;
  draw();
  return {
    element,
    update: () => {
      if (!isRunning(answer)) return draw(); // draws at once, so that the finished answer is complete
      if (waiting) return;
      waiting = true;
      requestAnimationFrame(() => {
        waiting = false;
        draw();
      });
    },
    addKept: (show) => {
      kept.hidden = false;
      const box = el("div", { class: "kept-box" });
      kept.append(box);
      kept.addEventListener("toggle", () => {
        if (kept.open && box.childElementCount === 0) show(box);
      });
    },
  };
}
