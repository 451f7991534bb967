// SPDX-License-Identifier: MIT
// The parts of pages: header, tiles, cards with a chart, choices, footer.
import { mountChart } from "./chart";
import type { Picture } from "./picture";
import { savePicture, type Format } from "./save";

type Child = Node | string;

export function el<K extends keyof HTMLElementTagNameMap>(
  tag: K, attributes: Record<string, string> = {}, ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

function root(): HTMLElement {
  return document.getElementById("page")!;
}

export function addHeader(title: string, ...lines: string[]): void {
  document.title = `${title} · snapkv`;
  root().append(el("header", {}, el("h1", {}, title), ...lines.map((line) => el("p", {}, line))));
}

/** Adds large numbers, each with a line of text below. */
export function addTiles(tiles: { value: string; label: string }[]): void {
  if (tiles.length === 0) return;
  root().append(el("div", { class: "tiles" }, ...tiles.map(({ value, label }) =>
    el("div", { class: "tile" }, el("b", {}, value), el("span", {}, label)))));
}

export function addFooter(text: string): void {
  root().append(el("footer", {}, text, el("br"), "Charts: Apache ECharts (Apache License 2.0)."));
}

export interface Choice {
  label: string;
  options: string[];
  chosen: number;
  choose(index: number): void;
}

export interface Card {
  element: HTMLElement;
  controls: HTMLElement;
  /** The chart and the text, above the caption. */
  body: HTMLElement;
  setCaption(text: string): void;
}

export function saveButtons(title: string, save: (format: Format) => void): HTMLElement {
  const button = (format: Format) => {
    const name = format.toUpperCase();
    const b = el("button", { type: "button", title: `Save “${title}” as ${name}` }, name);
    b.dataset.save = format;
    b.addEventListener("click", () => save(format));
    return b;
  };
  return el("span", { class: "save" }, button("png"), button("svg"));
}

/** `save` null: for a table, which users copy rather than save. */
export function addCard(name: string, title: string, save: ((format: Format) => void) | null): Card {
  const controls = el("div", { class: "controls" });
  const body = el("div");
  const caption = el("p", { class: "caption" });
  const element = el("section", { class: "card", "data-card": name },
    el("div", { class: "head" }, el("h2", {}, title), ...(save ? [saveButtons(title, save)] : [])),
    controls, body, caption);
  root().append(element);
  return { element, controls, body, setCaption: (text) => (caption.textContent = text) };
}

export function addChoice(card: Card, choice: Choice): HTMLSelectElement {
  const select = el("select", {},
    ...choice.options.map((text, i) => el("option", { value: String(i) }, text)));
  select.value = String(choice.chosen);
  select.addEventListener("change", () => choice.choose(Number(select.value)));
  card.controls.append(el("label", {}, choice.label, select));
  return select;
}

/** Adds a card with one chart; returns it with a function that redraws it after a choice. */
export function addChartCard(picture: Picture): { card: Card; redraw: () => void } {
  const card = addCard(picture.name, picture.title, (format) => savePicture(picture, format));
  const chart = el("div", { class: "chart", "data-chart": picture.name, role: "img", "aria-label": picture.title });
  card.body.append(chart);
  const setCaption = () => card.setCaption([picture.caption(), picture.hint ?? ""].join(" ").trim());
  setCaption();
  const draw = mountChart(chart, picture);
  return {
    card,
    redraw: () => {
      setCaption();
      draw();
    },
  };
}

/** Rows of cells; the first row is the header. It scrolls sideways, also by keyboard. */
export function table(rows: string[][], label: string): HTMLElement {
  const [head, ...body] = rows;
  return el("div", { class: "table", tabindex: "0", role: "region", "aria-label": label }, el("table", {},
    el("thead", {}, el("tr", {}, ...head.map((cell) => el("th", { scope: "col" }, cell)))),
    el("tbody", {}, ...body.map((row) => el("tr", {}, ...row.map((cell) => el("td", {}, cell)))))));
}
