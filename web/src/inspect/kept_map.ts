// SPDX-License-Identifier: MIT
// The map of kept positions: which ones each layer and KV head kept.
import { resample } from "../bitmap";
import { css, keptColour, mix } from "../colour";
import type { InspectData } from "../data";
import { percent, plural } from "../format";
import { baseOption, xAxis, type Frame, type Picture } from "../picture";
import { mapSeries } from "./map_series";
import { columnAt, columnName, endsLayer, rowAxis, rowName, rowsHeight, type MapData } from "./rows";

/** The part of an inspect page's data that the map draws. */
export type KeptData = MapData & Pick<InspectData, "kept"> & { model: Pick<InspectData["model"], "n_layer" | "n_head_kv"> };

export function keptMap(data: KeptData): Picture {
  const cell = data.n_tokens > data.n_columns || data.rows.length < data.model.n_layer * data.model.n_head_kv;
  return {
    name: "kept-map",
    title: "Which positions each head kept",
    caption: () =>
      "Every row is one KV head of one layer, every column a place in the prompt; coloured where its " +
      "keys and values are still in the cache. " +
      (cell ? "A cell stands for several of them: the darker, the more of it was kept. " : "") +
      "Columns in which all heads agree are passages that every head keeps.",
    height: () => rowsHeight(data) + 98,
    option(frame: Frame) {
      const { look } = frame;
      const top = frame.top + 12;
      const height = frame.height - top - (frame.saving ? 56 : 86);
      const colour = keptColour(look);
      const scale = data.kept.map((row) => row.map((v) => v / 1000));
      return {
        ...baseOption(frame),
        grid: { left: 78, right: 22, top, height, show: true, borderColor: look.line,
          backgroundColor: css(look.panel) },
        xAxis: xAxis(frame, "position in the prompt (tokens)", {
          type: "value", min: 0, max: data.n_tokens, splitLine: { show: false } }),
        yAxis: rowAxis(frame, data, height),
        dataZoom: frame.saving ? [] : zooms(frame),
        series: [mapSeries(0, data.n_tokens, data.rows.length, (r) => endsLayer(data, r),
          (begin, end, width) => {
            const toColumn = data.n_columns / data.n_tokens;
            return (r) => {
              const row = resample(scale[r], width, begin * toColumn, end * toColumn, "max");
              return (x) => (row[x] > 0 ? mix(look.panel, colour, 0.25 + 0.75 * row[x]) : null);
            };
          })],
      };
    },
    describe(x, y) {
      const c = columnAt(data, x);
      const row = data.rows[y];
      if (!row) return null;
      const share = data.kept[y][c] / 1000;
      const what = share === 0 ? "not kept" : share === 1 ? "kept" : `${percent(share)} kept`;
      return `${rowName(data, y)}\n${columnName(data, c)}\n${what}`;
    },
  };
}

/** Zoom by wheel (with Ctrl, so that the page still scrolls) and by the slider below. */
export function zooms(frame: Frame, xAxisIndex: number | number[] = 0) {
  const { look } = frame;
  return [
    { type: "inside", xAxisIndex, filterMode: "none", zoomOnMouseWheel: "ctrl",
      moveOnMouseMove: true, moveOnMouseWheel: false },
    { type: "slider", xAxisIndex, filterMode: "none", bottom: 8, height: 22, brushSelect: false,
      showDataShadow: false, borderColor: look.line, fillerColor: look.dark ? "#3a485c66" : "#c9d2de66",
      handleStyle: { color: look.card, borderColor: look.soft },
      moveHandleStyle: { color: look.soft, opacity: 0.4 },
      textStyle: { color: look.soft }, labelFormatter: (v: number) => plural(v, "token") },
  ];
}
