// SPDX-License-Identifier: MIT
// The needle grid: length of the prompt x depth of the fact, with a panel for each cache
// configuration.
import { kNeedleStops } from "../colour";
import { count, percent, plural, tokens } from "../format";
import { baseOption, xAxis, yAxis, type Frame, type Picture } from "../picture";
import { distinct, groupBy, meanOf } from "../stats";
import { Namer } from "./configurations";
import type { Scored } from "./quality";

export interface Cell {
  x: number; // index of the length
  y: number; // index of the depth
  mean: number;
  records: Scored[];
}

export interface Panel {
  name: string;
  mean: number;
  cells: Cell[];
}

/** Configurations that are shown together. */
export interface Choice {
  label: string;
  records: Scored[];
}

/** All configurations and, if there are many, each policy beside the full cache; `chosen` is shown first. */
export function gridChoices(records: Scored[]): { choices: Choice[]; chosen: number } {
  const all = { label: "all caches", records };
  const policies = distinct(records.map((r) => r.configuration.policy)).filter((p) => p !== "full");
  const panels = distinct(records.map((r) => JSON.stringify(r.configuration))).length;
  if (panels <= 6 || policies.length < 2) return { choices: [all], chosen: 0 };
  const choices = policies.map((policy) => ({
    label: records.some((r) => r.configuration.policy === "full") ? `full and ${policy}` : policy,
    records: records.filter((r) => ["full", policy].includes(r.configuration.policy)),
  }));
  return { choices: [all, ...choices], chosen: 1 + Math.max(0, policies.indexOf("snapkv")) };
}

export interface Grid {
  lengths: number[];
  depths: number[];
  panels: Panel[];
}

export function hasGrid(r: Scored): boolean {
  return typeof r.length === "number" && typeof r.depth === "number";
}

export function makeGrid(records: Scored[]): Grid {
  const namer = new Namer(records);
  const sorted = (field: "length" | "depth") =>
    distinct(records.map((r) => r[field] as number)).sort((a, b) => a - b);
  const lengths = sorted("length"), depths = sorted("depth");
  const panels = [...groupBy(records, (r) => namer.full(r.configuration))].map(([name, group]) => ({
    name,
    mean: meanOf(group.map((r) => r.score)),
    cells: [...groupBy(group, (r) => `${r.length} ${r.depth}`)].map(([, same]) => ({
      x: lengths.indexOf(same[0].length as number),
      y: depths.indexOf(same[0].depth as number),
      mean: meanOf(same.map((r) => r.score)),
      records: same,
    })),
  }));
  return { lengths, depths, panels };
}

const short = (text: string) => (text.length > 90 ? `${text.slice(0, 89)}…` : text);
const escape = (text: string) => text.replace(/&/g, "&amp;").replace(/</g, "&lt;");

/** The score of a cell, at most three of its answers, and how many there are. */
export function cellTooltip(grid: Grid, panel: Panel, cell: Cell): string {
  const answers = cell.records.slice(0, 3).map((r) =>
    `“${short(escape(String(r.answer ?? "")).trim())}” (right: ${escape(short(((r.references ?? []) as string[]).join(", ")))})`);
  const more = cell.records.length > 3 ? [`… of ${count(cell.records.length)} answers`] : [];
  return [`<b>${percent(cell.mean)}</b> of ${plural(cell.records.length, "prompt")} · ${escape(panel.name)}`,
    `${plural(grid.lengths[cell.x], "token")}, fact at ${percent(grid.depths[cell.y])}`, ...answers, ...more].join("<br>");
}

const kTitle = 30, kBottom = 58, kKey = 34;

function columnsFor(width: number, n: number): number {
  return Math.max(1, Math.min(n, Math.floor(width / 360), 3));
}

/** `current` is called for every drawing, so that it may depend on a choice. */
export function needleGrid(current: () => Grid): Picture {
  const panelHeight = () => {
    const { depths } = current();
    return Math.max(90, depths.length * Math.max(14, Math.min(26, 260 / depths.length)));
  };
  const rowHeight = () => panelHeight() + kTitle + kBottom;
  return {
    name: "needle-grid",
    title: "Needle grid",
    caption: () => "Mean score by the length of the prompt (to the right) and the depth of the fact in it (downwards), " +
      "one panel per cache. Green: found, red: lost.",
    hint: "Hover over a cell for its answers.",
    height(width) {
      const n = current().panels.length;
      return Math.ceil(n / columnsFor(width, n)) * rowHeight() + kKey + 6;
    },
    option(frame: Frame) {
      const { look } = frame;
      const grid = current();
      const { lengths, depths, panels } = grid;
      const columns = columnsFor(frame.width, panels.length);
      const cellWidth = frame.width / columns;
      const place = (i: number) => {
        const left = (i % columns) * cellWidth + 74;
        const top = frame.top + kKey + Math.floor(i / columns) * rowHeight() + kTitle;
        return { left, top, width: cellWidth - 74 - 16, height: panelHeight() };
      };
      const labels = (cellWidth - 90) / lengths.length >= 34 && panelHeight() / depths.length >= 16;
      return {
        ...baseOption(frame),
        tooltip: {
          ...(baseOption(frame).tooltip as object),
          formatter: (p: { seriesIndex: number; dataIndex: number }) => {
            const panel = panels[p.seriesIndex];
            return cellTooltip(grid, panel, panel.cells[p.dataIndex]);
          },
        },
        grid: panels.map((_, i) => place(i)),
        xAxis: panels.map((_, i) => xAxis(frame, "tokens in the prompt", {
          type: "category", gridIndex: i, data: lengths.map(tokens), splitLine: { show: false },
          axisTick: { show: false } })),
        yAxis: panels.map((_, i) => yAxis(frame, "depth of the fact", 46, {
          type: "category", inverse: true, gridIndex: i, data: depths.map((d) => `${Math.round(100 * d)}%`), splitLine: { show: false },
          axisTick: { show: false } })),
        visualMap: {
          type: "continuous", min: 0, max: 1, dimension: 2, inRange: { color: kNeedleStops }, calculable: false,
          orient: "horizontal", right: 16, top: frame.top, itemWidth: 12, itemHeight: 130,
          text: ["100%", "score 0%"], textStyle: { color: look.soft }, seriesIndex: panels.map((_, i) => i),
        },
        series: [
          ...panels.map((panel, i) => ({
            type: "heatmap", name: panel.name, xAxisIndex: i, yAxisIndex: i,
            data: panel.cells.map((c) => [c.x, c.y, c.mean]),
            itemStyle: { borderColor: look.card, borderWidth: 1.5 },
            label: { show: labels, fontSize: 11, color: "#10161f",
              formatter: (p: { value: number[] }) => String(Math.round(100 * p.value[2])) },
            emphasis: { itemStyle: { borderColor: look.ink, borderWidth: 2 } },
          })),
          {
            type: "custom", coordinateSystem: "none", data: [0], silent: true, tooltip: { show: false },
            renderItem: () => ({ type: "group", children: panels.map((panel, i) => {
              const { left, top, width } = place(i);
              return { type: "text", silent: true, style: { x: left, y: top - 22, width, overflow: "truncate",
                text: `${panel.name}: ${percent(panel.mean)}`, fill: look.ink, fontSize: 13, fontWeight: 600 } };
            }) }),
          },
        ],
      };
    },
  };
}

