// SPDX-License-Identifier: MIT
// The cache before and after compression: the same rows, coloured by each entry's place in the
// prompt.
import { resample, imageShape, paintRows } from "../bitmap";
import { css, kOriginCss, mix, origin } from "../colour";
import { columnBegin, type InspectData } from "../data";
import { bytes, count, number } from "../format";
import { baseOption, xAxis, type Frame, type Picture } from "../picture";
import { mapSeries } from "./map_series";
import { endsLayer, rowAxis, rowsHeight } from "./rows";

/** The smallest and the largest number of kept entries of a KV head. */
export function keptRange(data: InspectData): [number, number] {
  const all = data.cache.n_kept.flat();
  return [all.reduce((a, b) => Math.min(a, b)), all.reduce((a, b) => Math.max(a, b))];
}

/** "[4, 2, 2000, 64]": layers, KV heads, entries, head size. The commas separate dimensions only. */
export function shape(data: InspectData, entries: string): string {
  const { n_layer, n_head_kv, head_dim } = data.model;
  return `[${n_layer}, ${n_head_kv}, ${entries}, ${head_dim}]`;
}

/**
 * Where the entries of a row come from, in cache order: for each of `width` pixels over `slots`
 * entries, the place in the prompt (0 to 1), or -1 beyond the last entry. `kept` is in thousandths
 * of a column's tokens; a row for several heads shows their mean.
 */
export function origins(kept: number[], nTokens: number, slots: number, width: number): Float64Array {
  const entries = kept.map((share, c) =>
    (share / 1000) * (columnBegin(c + 1, kept.length, nTokens) - columnBegin(c, kept.length, nTokens)));
  const result = new Float64Array(width).fill(-1);
  let c = 0;
  let before = 0; // entries that columns < c kept
  for (let x = 0; x < width; ++x) {
    const slot = ((x + 0.5) / width) * slots;
    while (c < kept.length && before + entries[c] <= slot) before += entries[c++];
    if (c === kept.length) break;
    result[x] = (c + 0.5) / kept.length;
  }
  return result;
}

const kGap = 96; // between the two panels: axis, bar at scale, funnel

export function cacheMatrix(data: InspectData): Picture {
  const [low, high] = keptRange(data);
  const range = low === high ? count(high) : `${count(low)} to ${count(high)}`;
  const shrink = data.cache.bytes_full / data.cache.bytes_kept;
  return {
    name: "cache-matrix",
    title: "The cache before and after",
    caption: () =>
      `Above, the keys and values of all ${count(data.n_tokens)} tokens, ${bytes(data.cache.bytes_full)}: ` +
      "entries that stay are coloured by their place in the prompt, the others are faint. Below, what is " +
      `left, ${bytes(data.cache.bytes_kept)}: the same entries side by side, ${number(shrink)}x smaller. ` +
      "The short bar between them is the lower picture at the scale of the upper one.",
    height: () => 2 * Math.min(230, rowsHeight(data)) + kGap + 130,
    option(frame: Frame) {
      const { look } = frame;
      const top = frame.top + 30;
      const panel = (frame.height - top - kGap - 96) / 2;
      const left = 78, right = 22;
      const width = frame.width - left - right;
      const below = top + panel + kGap;
      const label = (text: string, y: number) => ({
        type: "text" as const, silent: true,
        style: { x: left, y, text, fill: look.ink, fontSize: 13, fontWeight: 600 as const,
          width, overflow: "truncate" as const },
      });
      const grid = (y: number) => ({ left, right, top: y, height: panel, show: true,
        borderColor: look.line, backgroundColor: css(look.panel) });
      const x = (gridIndex: number, name: string, max: number) =>
        xAxis(frame, name, { type: "value", gridIndex, min: 0, max, nameGap: 24,
          splitLine: { show: false } });
      const y = (gridIndex: number) => rowAxis(frame, data, panel, { gridIndex });
      return {
        ...baseOption(frame),
        grid: [grid(top), grid(below)],
        xAxis: [x(0, "position in the prompt (tokens)", data.n_tokens), x(1, "entry of the cache", high)],
        yAxis: [y(0), y(1)],
        series: [
          mapSeries(0, data.n_tokens, data.rows.length, (r) => endsLayer(data, r), (_b, _e, w) => (r) => {
            const row = resample(data.kept[r], w, 0, data.n_columns, "max");
            return (px) => {
              const colour = origin((px + 0.5) / w);
              return mix(look.panel, colour, 0.2 + 0.8 * Math.sqrt(row[px] / 1000));
            };
          }),
          mapSeries(1, high, data.rows.length, (r) => endsLayer(data, r), (_b, _e, w) => (r) => {
            const from = origins(data.kept[r], data.n_tokens, high, w);
            return (px) => (from[px] >= 0 ? origin(from[px]) : null);
          }),
          {
            type: "custom", coordinateSystem: "none", data: [0], silent: true, tooltip: { show: false },
            renderItem: () => {
              const bar = { x: left, y: top + panel + 52, height: 8,
                width: Math.max(2, (width * high) / data.n_tokens) };
              const funnel = [[left, bar.y + bar.height], [left + bar.width, bar.y + bar.height],
                [left + width, below], [left, below]];
              return { type: "group", children: [
                label(`K and V, each ${shape(data, String(data.n_tokens))} ${data.cache.type}`, top - 22),
                { type: "polygon", silent: true, shape: { points: funnel },
                  style: { fill: look.soft, opacity: 0.13 } },
                imageShape(bar, (w, h) => paintRows(1, w, h, () => false,
                  () => (px) => origin((px + 0.5) / w))),
                label(`K and V, each ${shape(data, range.replace(/,/g, ""))} ${data.cache.type}`, below - 22),
              ] };
            },
          },
          ...originScale(frame),
        ],
      };
    },
  };
}

// The colour key, at the bottom right.
function originScale(frame: Frame) {
  const { look } = frame;
  const width = 150, x = frame.width - 22 - width, y = frame.height - 26;
  const text = (words: string, at: number, align: "left" | "right") => ({
    type: "text" as const, silent: true,
    style: { x: at, y: y - 2, text: words, fill: look.soft, fontSize: 12, align },
  });
  return [{
    type: "custom", coordinateSystem: "none", data: [0], silent: true, tooltip: { show: false },
    renderItem: () => ({ type: "group", children: [
      text("from the prompt’s start", x - 8 - 30, "right"),
      { type: "rect", silent: true, shape: { x: x - 30, y, width, height: 9, r: 2 }, style: { fill: {
        type: "linear", x: 0, y: 0, x2: 1, y2: 0,
        colorStops: kOriginCss.map((color, i) => ({ offset: i / (kOriginCss.length - 1), color })) } } },
      text("end", x + width - 24, "left"),
    ] }),
  }];
}
