// SPDX-License-Identifier: MIT
// The passages that an answer was taken from, as buttons that show them in their documents.
import { percent } from "../format";
import { el } from "../page";
import type { KvSource } from "./types";

/** `show` is called with the passage's text. */
export function sourcesView(sources: KvSource[], show: (passage: string) => void): HTMLElement {
  const items = sources.map(({ text, attention }) => {
    const button = el("button", { type: "button", class: "source", "data-do": "source",
      title: `Show it in the document (attention ${percent(attention)})` }, text.replace(/\s+/g, " "));
    button.addEventListener("click", () => show(text));
    return el("li", {}, button);
  });
  return el("div", { class: "sources" }, el("h4", {}, "Taken from"), el("ul", {}, ...items));
}

/** Shows the part of a document around a passage, which is marked; false if it does not have it. */
export function showPassage(box: HTMLElement, text: string, passage: string, shown: number): boolean {
  const at = text.indexOf(passage);
  if (at < 0) return false;
  const begin = at + passage.length <= shown ? 0 : Math.max(0, at - shown / 4);
  const end = Math.min(text.length, Math.max(at + passage.length, begin + shown));
  const mark = el("mark", {}, passage);
  box.replaceChildren(`${begin > 0 ? "… " : ""}${text.slice(begin, at)}`, mark,
    `${text.slice(at + passage.length, end)}${end < text.length ? " …" : ""}`);
  mark.scrollIntoView({ block: "center" });
  return true;
}
