// SPDX-License-Identifier: MIT
// Makes elements from an answer's Markdown. Text from a model is only ever inserted as text.
import { el } from "../page";
import { parseMarkdown, type Block, type Inline } from "./markdown";

function inline(parts: Inline[]): (HTMLElement | string)[] {
  return parts.map(({ kind, text }) => (kind === "text" ? text : el(kind, {}, text)));
}

function element(block: Block): HTMLElement {
  switch (block.kind) {
    case "paragraph":
      return el("p", {}, ...inline(block.content));
    case "heading":
      // below the page's own headings
      return el("p", { class: `heading h${block.level}`, role: "heading", "aria-level": String(Math.min(6, block.level + 2)) },
        ...inline(block.content));
    case "code":
      return el("pre", { tabindex: "0", "aria-label": block.language ? `Code, ${block.language}` : "Code", role: "region" },
        el("code", {}, block.text));
    case "list": {
      const items = block.items.map((item) => el("li", {}, ...inline(item)));
      return block.ordered ? el("ol", { start: String(block.start) }, ...items) : el("ul", {}, ...items);
    }
  }
}

export function renderMarkdown(text: string): HTMLElement[] {
  return parseMarkdown(text).map(element);
}
