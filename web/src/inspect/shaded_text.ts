// SPDX-License-Identifier: MIT
// The prompt's text with a shade behind each token. Long texts are split into blocks that the
// browser lays out when they scroll into view.
import { look, onSchemeChange } from "../chart";
import { css, type Rgb } from "../colour";
import type { InspectData, TextPart } from "../data";
import { plural } from "../format";
import { el } from "../page";
import { hideTip, showTip } from "../tip";
import { blockEnds, kLevels, runsOf } from "./text_runs";

export interface Shading {
  /** The shade of each token of a part, in [0, 1]. */
  levels(part: TextPart): Float64Array;
  colour(): Rgb;
  describe(token: number, text: string): string;
  /** Extra CSS classes of a token, "" for none. */
  mark?(token: number): string;
  click?(token: number): void;
}

/** The style of a shade: dark text stays legible on strong shades, and light text on faint ones. */
function style(level: number, rgb: Rgb, dark: boolean): string {
  if (level === 0) return "";
  const alpha = 0.96 * (level / kLevels);
  const ink = dark && alpha > 0.5 ? ";color:#10161f" : "";
  return `background:${css(rgb, alpha)}${ink}`;
}

export interface ShadedText {
  element: HTMLElement;
  draw(): void;
  /** Scrolls the box, not the page, to a token. */
  show(token: number): void;
}

const kLazy = 20_000; // tokens; shorter texts are laid out at once, so that they print and copy completely

export function shadedText(data: Pick<InspectData, "n_tokens" | "text" | "text_limit">, shading: Shading): ShadedText {
  const box = el("div", { class: "text", tabindex: "0", role: "region", "aria-label": "The prompt" });
  const tokenOf = (target: EventTarget | null): number | null => {
    const span = target instanceof HTMLElement ? target.closest<HTMLElement>("span[data-i]") : null;
    return span ? Number(span.dataset.i) : null;
  };
  box.addEventListener("mousemove", (event) => {
    const token = tokenOf(event.target);
    const span = event.target as HTMLElement;
    if (token === null || span.dataset.n !== undefined) return hideTip();
    showTip(shading.describe(token, span.textContent ?? ""), event.clientX, event.clientY);
  });
  box.addEventListener("mouseleave", hideTip);
  box.addEventListener("click", (event) => {
    const token = tokenOf(event.target);
    if (token !== null) shading.click?.(token);
  });
  const draw = () => {
    const scroll = box.scrollTop;
    const parts: HTMLElement[] = [];
    data.text.forEach((part, p) => {
      if (p > 0) {
        const before = data.text[p - 1];
        const missing = part.begin - before.begin - before.pieces.length;
        parts.push(el("div", { class: "cut" }, `… ${plural(missing, "token")} not on this page: it holds ` +
          `the text of ${plural(data.text_limit, "token")} (snapkv inspect --text-limit) …`));
      }
      parts.push(...blocks(part, shading, data.n_tokens > kLazy));
    });
    box.replaceChildren(...parts);
    box.scrollTop = scroll;
  };
  draw();
  onSchemeChange(draw);
  const show = (token: number) => {
    const spans = [...box.querySelectorAll<HTMLElement>("span[data-i]")];
    const span = spans.reverse().find((x) => Number(x.dataset.i) <= token);
    const first = box.firstElementChild as HTMLElement | null;
    if (span && first) box.scrollTop = span.offsetTop - first.offsetTop - box.clientHeight / 3;
  };
  return { element: box, draw, show };
}

function blocks(part: TextPart, shading: Shading, lazy: boolean): HTMLElement[] {
  const levels = shading.levels(part);
  const rgb = shading.colour();
  const { dark } = look();
  const mark = (i: number) => shading.mark?.(part.begin + i) ?? "";
  let begin = 0;
  return blockEnds(part.pieces).map((end) => {
    const block = el("div", lazy ? { class: "block" } : {});
    for (const run of runsOf(levels, begin, end, (i) => mark(i) !== "")) {
      const text = part.pieces.slice(run.begin, run.end).join("");
      if (!text) continue;
      const span = el("span", { "data-i": String(part.begin + run.begin) }, text);
      if (run.end - run.begin > 1) span.dataset.n = String(run.end - run.begin);
      const css = style(run.level, rgb, dark);
      if (css) span.style.cssText = css;
      if (mark(run.begin)) span.className = mark(run.begin);
      block.append(span);
    }
    begin = end;
    return block;
  });
}
