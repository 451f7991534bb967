// SPDX-License-Identifier: MIT
// Tasks from left to right, caches from top to bottom, a cell for each mean score: RULER's and
// LongBench's tables.
import { kNeedleStops } from "../colour";
import { percent, plural } from "../format";
import { axis, baseOption, type Frame, type Picture } from "../picture";
import { distinct, groupBy, meanOf, wilson, type Interval } from "../stats";
import { Namer, taskName } from "./configurations";
import type { Scored } from "./quality";

export interface TaskCell extends Interval {
  x: number; // index of the task; the last column is the mean of all prompts
  y: number; // index of the cache
}

export interface TaskMap {
  tasks: string[];
  caches: string[];
  cells: TaskCell[];
}

/** With fewer tasks, the table is easier to read. */
const kFewest = 3;

export function hasTaskMap(records: Scored[]): boolean {
  return distinct(records.map(taskName)).length >= kFewest;
}

/** The beginning that all names share, up to a comma: "ruler, ". */
function commonStart(names: string[]): string {
  const start = /^[^,]*, /.exec(names[0])?.[0] ?? "";
  return names.every((name) => name.startsWith(start)) ? start : "";
}

export function makeTaskMap(records: Scored[]): TaskMap {
  const namer = new Namer(records);
  const names = distinct(records.map(taskName));
  const start = commonStart(names);
  const caches = [...groupBy(records, (r) => namer.full(r.configuration))];
  const cells = caches.flatMap(([, group], y) => [...names, null].flatMap((name, x) => {
    const same = name === null ? group : group.filter((r) => taskName(r) === name);
    return same.length > 0 ? [{ x, y, ...wilson(meanOf(same.map((r) => r.score)), same.length) }] : [];
  }));
  return { tasks: [...names.map((name) => name.slice(start.length)), "all"], caches: caches.map(([name]) => name), cells };
}

const kRow = 30, kBottom = 118;

/** `current` is called for every drawing, so that it may depend on a choice. */
export function taskMap(current: () => TaskMap): Picture {
  return {
    name: "task-map",
    title: "Score by task and cache",
    caption: () => "Mean score of each task (to the right; last, of all prompts) with each cache (downwards). Green: " +
      "right, red: wrong.",
    hint: "Hover over a cell for its interval.",
    height: () => current().caches.length * kRow + kBottom,
    option(frame: Frame) {
      const { look } = frame;
      const { tasks, caches, cells } = current();
      const room = Math.min(0.35 * frame.width, 20 + 7.2 * Math.max(...caches.map((c) => c.length)));
      const cellWidth = (frame.width - room - 20) / tasks.length;
      return {
        ...baseOption(frame),
        tooltip: {
          ...(baseOption(frame).tooltip as object),
          formatter: (p: { dataIndex: number }) => {
            const c = cells[p.dataIndex];
            return `<b>${percent(c.mean)}</b> [${percent(c.low)}, ${percent(c.high)}] of ${plural(c.n, "prompt")}<br>` +
              `${tasks[c.x]} · ${caches[c.y]}`;
          },
        },
        grid: { left: room, right: 20, top: frame.top + 8, bottom: kBottom - 16 },
        xAxis: axis(frame, "", { type: "category", data: tasks, splitLine: { show: false }, axisTick: { show: false },
          axisLabel: { rotate: 40, interval: 0, hideOverlap: false } }),
        yAxis: axis(frame, "", { type: "category", inverse: true, data: caches, splitLine: { show: false },
          axisTick: { show: false }, axisLabel: { width: room - 14, overflow: "truncate" } }),
        visualMap: { type: "continuous", min: 0, max: 1, dimension: 2, inRange: { color: kNeedleStops }, show: false },
        series: [{
          type: "heatmap", data: cells.map((c) => [c.x, c.y, c.mean]),
          itemStyle: { borderColor: look.card, borderWidth: 1.5 },
          label: { show: cellWidth >= 28, fontSize: 11, color: "#10161f",
            formatter: (p: { value: number[] }) => String(Math.round(100 * p.value[2])) },
          emphasis: { itemStyle: { borderColor: look.ink, borderWidth: 2 } },
        }],
      };
    },
  };
}
