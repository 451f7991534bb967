// SPDX-License-Identifier: MIT
// The page of `snapkv inspect`: what a prompt's cache holds after compression, and why.
import { look, onSchemeChange } from "../chart";
import { css, keptColour, spotColour } from "../colour";
import type { InspectData, TextPart } from "../data";
import { bytes, count, number, percent, plural, seconds, visible } from "../format";
import { addCard, addChartCard, addChoice, addFooter, addHeader, addTiles, el, saveButtons } from "../page";
import { cacheMatrix, keptRange } from "./cache_matrix";
import { keptMap } from "./kept_map";
import { saveText } from "./save_text";
import { rowChoices, scores } from "./scores";
import { shadedText, type ShadedText, type Shading } from "./shaded_text";
import { brightest, brightestToken, describeToken, shading as spotShading, spotlightChart, spotlightName } from "./spotlight";

function addSummary(data: InspectData): void {
  const { model } = data;
  addHeader("What the cache keeps of a prompt",
    `${model.name || model.file} (${model.architecture}, ${model.file_type}): ` +
      `${plural(model.n_layer, "layer")}, ${plural(model.n_head_kv, "KV head")} each. ` +
      `Cache policy: ${data.label}.`);
  const [low, high] = keptRange(data);
  const kept = low === high ? count(high) : `${count(low)} to ${count(high)}`;
  addTiles([
    { value: count(data.n_tokens), label: "tokens in the prompt" },
    { value: kept, label: "entries kept per KV head" },
    { value: bytes(data.cache.bytes_full), label: `full cache, ${data.cache.type}` },
    { value: bytes(data.cache.bytes_kept), label: "kept" },
    { value: `${number(data.cache.bytes_full / data.cache.bytes_kept)}x`, label: "smaller" },
    { value: seconds(data.seconds.prefill),
      label: `to read the prompt, ${percent((data.seconds.score + data.seconds.gather) / data.seconds.prefill)} of it to choose` },
  ]);
}

function addScores(data: InspectData): void {
  const choices = rowChoices(data);
  const picture = scores(data, choices[0]);
  const { card, redraw } = addChartCard(picture);
  addChoice(card, { label: "Heads", options: choices.map((c) => c.label), chosen: 0, choose: (i) => {
    picture.choose(choices[i]);
    redraw();
  } });
}

function addScale(body: HTMLElement, colour: () => string, low: string, high: string, ...more: (Node | string)[]): void {
  const bar = el("i");
  const draw = () => (bar.style.background = `linear-gradient(90deg, transparent, ${colour()})`);
  draw();
  onSchemeChange(draw);
  body.append(el("div", { class: "scale" }, low, bar, high, ...more));
}

function addSpotlight(data: InspectData): void {
  if (data.spotlights.length === 0) return;
  let s = data.spotlights[0];
  let text: ShadedText | undefined;
  const picture = spotlightChart(data, s);
  picture.click = (x) => text?.show(Math.floor(x));
  const { card, redraw } = addChartCard(picture);
  const byToken = new Map<number, number>();
  data.spotlights.forEach((x, i) => {
    if (x.end - x.begin === 1 && x.layer < 0) byToken.set(x.begin, i);
  });
  const choose = (i: number) => {
    s = data.spotlights[i];
    picture.choose(s);
    redraw();
    text?.draw();
  };
  const select = addChoice(card, { label: "Attention of",
    options: data.spotlights.map((x) => spotlightName(data, x)), chosen: 0, choose: (i) => {
      choose(i);
      text?.show(brightestToken(data, s));
    } });
  const shading: Shading = {
    levels(part: TextPart) {
      const high = brightest(data, s);
      return spotShading(data, s, part.begin, part.begin + part.pieces.length)
        .map((v) => (high > 0 ? Math.min(1, v / high) : 0));
    },
    colour: () => spotColour(look()),
    describe: (i, t) => describeToken(data, i, t,
      spotShading(data, s, i, i + 1)[0], s) + (byToken.has(i) ? "\nclick: its own attention" : ""),
    mark: (i) => (i >= s.begin && i < s.end ? "asked" : "") + (byToken.has(i) ? " query" : ""),
    click(i) {
      const chosen = byToken.get(i);
      if (chosen === undefined) return;
      select.value = String(chosen);
      choose(chosen);
    },
  };
  text = shadedText(data, shading);
  addScale(card.element, () => css(spotColour(look())), "no attention", "highest", el("span", {}, "Save the text in view:"),
    saveButtons("The text in view", (format) =>
      void saveText(text!.element, "spotlight-text", "Spotlight: the text", picture.caption(), format)));
  card.element.append(text.element);
  text.show(brightestToken(data, s));
  addTextNote(data, card.element);
}

function addTextNote(data: InspectData, body: HTMLElement): void {
  if (data.text.length < 2) return;
  body.append(el("p", { class: "note" }, `The text is cut: this page holds ${plural(data.text_limit, "token")} ` +
    `of ${count(data.n_tokens)}, the first and the last. The charts cover all of them.`));
}

function addKeptText(data: InspectData): void {
  const total = data.model.n_layer * data.model.n_head_kv;
  const title = "The prompt, shaded by how many heads kept each token";
  const caption = `Full colour: all ${count(total)} KV heads (of all layers) still have the token’s keys and ` +
    "values; no colour: none has. What is not coloured is no longer in the cache.";
  let text: ShadedText | undefined;
  const card = addCard("kept-text", title, (format) =>
    void saveText(text!.element, "kept-text", title, caption, format));
  const keptBy = (i: number) => {
    const part = data.text.find((t) => t.begin <= i && i < t.begin + t.kept_by.length);
    return part ? part.kept_by[i - part.begin] : 0;
  };
  text = shadedText(data, {
    levels: (part) => Float64Array.from(part.kept_by, (n) => n / total),
    colour: () => keptColour(look()),
    describe: (i, t) => `token ${count(i)}: “${visible(t)}”\nkept by ${count(keptBy(i))} of ${plural(total, "KV head")}`,
  });
  addScale(card.body, () => css(keptColour(look())), "kept by no head", "by all");
  card.body.append(text.element);
  addTextNote(data, card.body);
  card.setCaption(caption);
}

export function inspectPage(data: InspectData): void {
  addSummary(data);
  addSpotlight(data);
  addScores(data);
  addChartCard(cacheMatrix(data));
  addChartCard(keptMap(data));
  addKeptText(data);
  addFooter(`snapkv ${data.version} · ${data.model.file} · ${data.backend} · ${data.label}`);
}
