// SPDX-License-Identifier: MIT
// Makes elements from an answer's Markdown. Text from a model is only ever inserted as text.
import type Token from "markdown-it/lib/token.mjs";
import { el } from "../page";
import { copyButton } from "./copy_button";
import { kMarkdown } from "./markdown";

type Tag = keyof HTMLElementTagNameMap;

/** The element that a token opens: a pair of what is inserted, and what its content is added to. */
function opened(token: Token): [HTMLElement, HTMLElement] {
  if (token.type === "heading_open") {
    const level = Number(token.tag.slice(1));
    // below the page's own headings
    const heading = el("p", { class: `heading h${level}`, role: "heading", "aria-level": String(Math.min(6, level + 2)) });
    return [heading, heading];
  }
  const element = el(token.tag as Tag);
  const start = token.attrGet("start");
  if (start !== null) element.setAttribute("start", String(start));
  const align = /^text-align:(\w+)$/.exec(token.attrGet("style") ?? "");
  if (align) element.style.textAlign = align[1];
  return token.type === "table_open" ? [el("div", { class: "wide", tabindex: "0", role: "region", "aria-label": "Table" }, element), element]
    : [element, element];
}

function leaf(token: Token): HTMLElement | string {
  switch (token.type) {
    case "softbreak":
      return "\n";
    case "hardbreak":
      return el("br");
    case "hr":
      return el("hr");
    case "code_inline":
      return el("code", {}, token.content);
    case "fence":
    case "code_block": {
      const language = token.info.trim().split(/\s+/)[0];
      const text = token.content.replace(/\n$/, "");
      const code = el("pre", { tabindex: "0", "aria-label": language ? `Code, ${language}` : "Code", role: "region" },
        el("code", {}, text));
      return el("div", { class: "code" }, code, copyButton("copy-code", "Copy the code", () => text));
    }
    default:
      return token.content;
  }
}

function append(parent: HTMLElement | DocumentFragment, tokens: Token[]): void {
  const open = [parent];
  for (const token of tokens) {
    const inner = open[open.length - 1];
    if (token.hidden) continue; // the paragraph in an item of a list without empty lines
    if (token.nesting === 1) {
      const [element, content] = opened(token);
      inner.append(element);
      open.push(content);
    } else if (token.nesting === -1) {
      open.pop();
    } else if (token.type === "inline") {
      append(inner as HTMLElement, token.children ?? []);
    } else {
      inner.append(leaf(token));
    }
  }
}

export function renderMarkdown(text: string): Node[] {
  const parts = document.createDocumentFragment();
  append(parts, kMarkdown.parse(text, {}));
  return [...parts.childNodes];
}
