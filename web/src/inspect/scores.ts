// SPDX-License-Identifier: MIT
// The window's attention, position by position, with the kept positions marked.
import { css, keptColour } from "../colour";
import { columnBegin, type InspectData } from "../data";
import { number, percent, plural } from "../format";
import { baseOption, xAxis, yAxis, type Frame, type Picture } from "../picture";
import { zooms } from "./kept_map";
import { columnAt, columnName, rowName } from "./rows";

/** A choice of rows of the map; the chart shows their highest score and mean kept share. */
export interface RowChoice {
  label: string;
  rows: number[];
}

/** All rows, each layer, and each single row of a layer with several. */
export function rowChoices(data: InspectData): RowChoice[] {
  const all = data.rows.map((_, r) => r);
  const choices: RowChoice[] = [{ label: "all layers and heads", rows: all }];
  const layers = [...new Set(data.rows.map((row) => row.layer_begin))];
  for (const layer of layers) {
    const rows = all.filter((r) => data.rows[r].layer_begin === layer);
    if (rows.length > 1) choices.push({ label: `layer ${layer}, all heads`, rows });
    for (const r of rows) choices.push({ label: rowName(data, r), rows: [r] });
  }
  return choices;
}

export interface Columns {
  /** Highest score of the rows, a share of the window's attention. */
  score: number[];
  /** Mean share of the cells' entries that were kept. */
  kept: number[];
}

export function columnsOf(data: InspectData, rows: number[]): Columns {
  const score = new Array<number>(data.n_columns).fill(0);
  const kept = new Array<number>(data.n_columns).fill(0);
  for (const r of rows) {
    for (let c = 0; c < data.n_columns; ++c) {
      score[c] = Math.max(score[c], data.score[r][c] / 1e6);
      kept[c] += data.kept[r][c] / 1000 / rows.length;
    }
  }
  return { score, kept };
}

/**
 * The top of the axis. The first token and the window itself often get most of the attention; if
 * they would flatten everything else, the axis ends above the other values.
 */
export function scoreTop(score: number[], firstWindowColumn: number): { top: number; cut: boolean } {
  let rest = 0;
  for (let c = 1; c < firstWindowColumn; ++c) rest = Math.max(rest, score[c]);
  const all = score.reduce((a, b) => Math.max(a, b), 0);
  if (rest > 0 && all > 2.5 * rest) return { top: rest * 1.15, cut: true };
  return { top: all > 0 ? all * 1.08 : 1, cut: false };
}

export interface ScoresPicture extends Picture {
  choose(choice: RowChoice): void;
}

export function scores(data: InspectData, initial: RowChoice): ScoresPicture {
  let choice = initial;
  let columns = columnsOf(data, initial.rows);
  const windowColumn = columnAt(data, data.n_tokens - data.window);
  const queries = data.window === 1 ? "the last token attends" : `the last ${data.window} tokens attend`;
  return {
    name: "scores",
    title: "Attention of the window, and what was kept",
    caption() {
      const { cut } = scoreTop(columns.score, windowColumn);
      const heads = choice.rows.length === 1 ? "" : ", the highest of the chosen heads";
      return `How much ${queries} to each position (mean of the window’s tokens and of the query heads ` +
        `of a KV head${heads}). Green: kept; grey: dropped by every chosen head. The strip below the ` +
        "axis shows the share of the chosen heads that kept it." +
        (cut ? " Bars that reach the top are longer: the axis ends above the highest in between." : "");
    },
    height: () => 380,
    choose(next) {
      choice = next;
      columns = columnsOf(data, next.rows);
    },
    option(frame: Frame) {
      const { look } = frame;
      const { top: highest } = scoreTop(columns.score, windowColumn);
      const top = frame.top + 14;
      const height = frame.height - top - (frame.saving ? 70 : 100);
      const green = css(keptColour(look)), grey = css(look.dropped, 0.85);
      const bar = (_: unknown, api: { value(i: number): number; coord(v: number[]): number[] }) => {
        const c = api.value(0);
        const [x0, y0] = api.coord([columnBegin(c, data.n_columns, data.n_tokens), 0]);
        const [x1] = api.coord([columnBegin(c + 1, data.n_columns, data.n_tokens), 0]);
        const y1 = api.coord([0, Math.min(highest, columns.score[c])])[1];
        const width = Math.max(x1 - x0, 1.4);
        const strip = { type: "rect", shape: { x: x0, y: y0 + 5, width, height: 9 },
          style: { fill: green, opacity: columns.kept[c] > 0 ? 0.25 + 0.75 * columns.kept[c] : 0 } };
        return { type: "group", children: [
          { type: "rect", shape: { x: x0, y: y1, width, height: y0 - y1 },
            style: { fill: columns.kept[c] > 0 ? green : grey } }, strip] };
      };
      return {
        ...baseOption(frame),
        grid: { left: 78, right: 22, top, height },
        xAxis: xAxis(frame, "position in the prompt (tokens)", { type: "value", min: 0,
          max: data.n_tokens, splitLine: { show: false }, axisLine: { onZero: false },
          nameGap: 40, axisLabel: { margin: 20 }, axisTick: { show: false } }),
        yAxis: yAxis(frame, "share of the attention", 52, { type: "value", min: 0, max: highest,
          axisLabel: { formatter: (v: number) => percent(v), showMaxLabel: false } }),
        dataZoom: frame.saving ? [] : zooms(frame),
        // one shape per column; columns that are zoomed out of view are cut off at the sides
        series: [{ type: "custom", clip: false, silent: true, tooltip: { show: false },
          data: columns.score.map((_, c) => [c]), encode: { x: -1, y: -1 },
          renderItem: clipped(bar, data) }],
      };
    },
    describe(x) {
      const c = columnAt(data, x);
      const kept = columns.kept[c];
      const what = kept === 0 ? "dropped" : kept >= 0.9995 ? "kept"
        : `kept by ${percent(kept)} of the ${plural(choice.rows.length, "row")}`;
      return `${columnName(data, c)}\n${number(columns.score[c] * 100)}% of the attention\n${what}`;
    },
  };
}

type Render = (params: never, api: never) => unknown;

// Leaves out columns that are zoomed out of view. The strip is below the grid, so the series itself
// can't be clipped to the grid.
function clipped(render: unknown, data: InspectData): Render {
  return ((params: { coordSys: { x: number; width: number } },
    api: { value(i: number): number; coord(v: number[]): number[] }) => {
    const c = api.value(0);
    const [x0] = api.coord([columnBegin(c, data.n_columns, data.n_tokens), 0]);
    const [x1] = api.coord([columnBegin(c + 1, data.n_columns, data.n_tokens), 0]);
    const { x, width } = params.coordSys;
    if (x0 < x - 0.5 || x1 > x + width + 0.5) return null;
    return (render as (p: unknown, a: unknown) => unknown)(params, api);
  }) as Render;
}
