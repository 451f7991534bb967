// SPDX-License-Identifier: MIT
// The spotlight: the earlier tokens that a token, or a group of tokens, attends to.
import { css, spotColour } from "../colour";
import { columnBegin, type InspectData, type Spotlight } from "../data";
import { count, number, percent, visible } from "../format";
import { baseOption, xAxis, yAxis, type Frame, type Picture } from "../picture";
import { zooms } from "./kept_map";
import { columnAt, columnName, excerpt } from "./rows";

function tokenText(data: InspectData, i: number): string {
  const text = excerpt(data, i, i + 1);
  return text ? ` ${text}` : "";
}

/** The name in the list of choices. */
export function spotlightName(data: InspectData, s: Spotlight): string {
  const last = data.n_tokens - data.window;
  if (s.group === "window") return `the window: the last ${count(s.end - s.begin)} tokens`;
  if (s.group === "layer") return `the window in layer ${s.layer}`;
  if (s.end - s.begin === 1) {
    const where = s.begin >= last ? "token" : "earlier token";
    return `${where} ${count(s.begin)}${tokenText(data, s.begin)}`;
  }
  return `tokens ${count(s.begin)} to ${count(s.end - 1)} ${excerpt(data, s.begin, s.end)}`.trim();
}

/** Shares of the attention: to the first token, to the queries themselves, and to the others. */
export function shares(data: InspectData, s: Spotlight): { first: number; own: number; rest: number } {
  const known = tokenValues(data, s);
  const first = s.begin === 0 ? 0 : known.get(0) ?? 0;
  let total = 0, own = 0;
  for (let c = 0; c < data.n_columns; ++c) {
    const begin = columnBegin(c, data.n_columns, data.n_tokens);
    const end = columnBegin(c + 1, data.n_columns, data.n_tokens);
    const value = (s.columns[c] ?? 0) / 1e6;
    total += value;
    // a column in which the group begins is divided by its tokens
    own += value * Math.max(0, Math.min(end, s.end) - Math.max(begin, s.begin)) / (end - begin);
  }
  return { first, own, rest: Math.max(0, total - first - own) };
}

/** Attention (a share) of the single tokens for which the page has it. */
export function tokenValues(data: InspectData, s: Spotlight): Map<number, number> {
  const values = new Map<number, number>();
  s.positions.forEach((p, i) => values.set(p, s.values[i] / 1e6));
  if (data.n_columns >= data.n_tokens) {
    s.columns.forEach((v, c) => values.set(columnBegin(c, data.n_columns, data.n_tokens), v / 1e6));
  }
  return values;
}

/** Attention of tokens [begin, end): their own values where known, else the column's mean. */
export function shading(data: InspectData, s: Spotlight, begin: number, end: number): Float64Array {
  const result = new Float64Array(end - begin);
  const known = tokenValues(data, s);
  for (let c = columnAt(data, begin); c < data.n_columns; ++c) {
    const from = columnBegin(c, data.n_columns, data.n_tokens);
    const to = columnBegin(c + 1, data.n_columns, data.n_tokens);
    if (from >= end) break;
    let left = (s.columns[c] ?? 0) / 1e6, unknown = 0;
    for (let i = from; i < to; ++i) {
      const value = known.get(i);
      if (value === undefined) ++unknown;
      else left -= value;
    }
    for (let i = Math.max(from, begin); i < Math.min(to, end); ++i) {
      result[i - begin] = known.get(i) ?? (unknown > 0 ? Math.max(0, left) / unknown : 0);
    }
  }
  return result;
}

/** The token to show first: the brightest that is not close to the queries, or else the brightest of all. */
export function brightestToken(data: InspectData, s: Spotlight): number {
  const values = [...tokenValues(data, s)];
  const best = (end: number) => values
    .reduce((a, [i, v]) => (i > 0 && i < end && v > a.v ? { i, v } : a), { i: 0, v: 0 }).i;
  return best(s.begin - 4 * data.window) || best(s.begin);
}

/** The attention shown in full colour: that of brightestToken(). */
export function brightest(data: InspectData, s: Spotlight): number {
  return tokenValues(data, s).get(brightestToken(data, s)) ?? 0;
}

export interface SpotlightPicture extends Picture {
  choose(spotlight: Spotlight): void;
}

export function spotlightChart(data: InspectData, initial: Spotlight): SpotlightPicture {
  let s = initial;
  return {
    name: "spotlight",
    title: "Spotlight: what a token attends to",
    caption() {
      const { first, own, rest } = shares(data, s);
      const many = s.end - s.begin > 1;
      const mean = s.layer >= 0 ? `query heads of layer ${s.layer}` : "layers and query heads";
      const where = s.begin === 0 ? "" : `${percent(first)} goes to the first token, `;
      return `Attention of ${spotlightName(data, s)}, mean of all ${mean}: ${where}${percent(own)} to ` +
        `${many ? "the chosen tokens themselves" : "itself"} and ${percent(rest)} to the other tokens ` +
        "before. The text below is shaded in proportion, in full colour from the highest of the " +
        "tokens that are not close to the chosen ones.";
    },
    hint: "Click into the chart to find the place in the text, or on a framed token to see its own attention.",
    height: () => 250,
    choose(next) {
      s = next;
    },
    option(frame: Frame) {
      const { look } = frame;
      const top = frame.top + 14;
      const firstOwn = columnAt(data, s.begin);
      let rest = 0;
      for (let c = 1; c < firstOwn; ++c) rest = Math.max(rest, (s.columns[c] ?? 0) / 1e6);
      const all = s.columns.reduce((a, b) => Math.max(a, b), 0) / 1e6;
      const highest = rest > 0 ? rest * 1.12 : all * 1.08 || 1;
      const yellow = css(spotColour(look)), grey = css(look.dropped, 0.8);
      return {
        ...baseOption(frame),
        grid: { left: 78, right: 22, top, height: frame.height - top - (frame.saving ? 56 : 86) },
        xAxis: xAxis(frame, "position in the prompt (tokens)", { type: "value", min: 0,
          max: data.n_tokens, splitLine: { show: false }, axisTick: { show: false } }),
        yAxis: yAxis(frame, "share of the attention", 52, { type: "value", min: 0, max: highest,
          axisLabel: { formatter: (v: number) => percent(v), showMaxLabel: false } }),
        dataZoom: frame.saving ? [] : zooms(frame),
        series: [{
          type: "custom", clip: true, silent: true, tooltip: { show: false },
          data: s.columns.map((v, c) => [c, v / 1e6]).filter((d) => d[1] > 0),
          encode: { x: -1, y: -1 },
          renderItem: (_: unknown, api: { value(i: number): number; coord(v: number[]): number[] }) => {
            const c = api.value(0);
            const from = columnBegin(c, data.n_columns, data.n_tokens);
            const [x0, y0] = api.coord([from, 0]);
            const [x1] = api.coord([columnBegin(c + 1, data.n_columns, data.n_tokens), 0]);
            const y1 = api.coord([0, Math.min(highest, api.value(1))])[1];
            return { type: "rect",
              shape: { x: x0, y: y1, width: Math.max(x1 - x0, 1.4), height: y0 - y1 },
              style: { fill: c === 0 || from >= s.begin ? grey : yellow } };
          },
        }],
      };
    },
    describe(x) {
      const c = columnAt(data, x);
      return `${columnName(data, c)}\n${number(((s.columns[c] ?? 0) / 1e6) * 100)}% of the attention`;
    },
  };
}

/** The tooltip of a token in the text. */
export function describeToken(data: InspectData, i: number, text: string, value: number, s: Spotlight): string {
  if (i >= s.end) return `token ${count(i)}: “${visible(text)}”\nafter the chosen tokens`;
  return `token ${count(i)}: “${visible(text)}”\n${number(value * 100)}% of the attention` +
    (i >= s.begin ? "\none of the chosen tokens" : "") +
    (data.n_tokens > data.n_columns && !tokenValues(data, s).has(i) ? "\n(mean of its neighbourhood)" : "");
}
