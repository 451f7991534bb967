// SPDX-License-Identifier: MIT
// Where the time of a prompt went, for each test.
import { kNeedleStops } from "../colour";
import type { BenchRecord } from "../data";
import { percent, seconds, tokens } from "../format";
import { axis, baseOption, legend, type Frame, type Picture } from "../picture";
import { afterDepth, seriesName } from "./bench_lines";

/** The parts of a test in seconds; the remainder is norms, rotations and the like. */
export function partsOf(r: BenchRecord): [string, number][] {
  const parts: [string, number][] = [
    ["matrix products", r.linear_s ?? 0], ["attention", r.attention_s ?? 0],
    ["expanding weights", r.pack_s ?? 0], ["votes and selection", r.score_s ?? 0],
    ["gathering", r.gather_s ?? 0]];
  const known = parts.reduce((sum, [, s]) => sum + s, 0);
  return [...parts, ["everything else", Math.max(0, (r.prefill_s ?? 0) - known)]];
}

export function prefillParts(all: BenchRecord[]): Picture {
  const records = all.filter((r) => r.prefill_s !== null);
  const labels = records.map((r) => `${tokens(r.n_prompt)}${afterDepth(r)} · ${seriesName(r, all)}`);
  const names = partsOf(records[0]).map(([name]) => name);
  return {
    name: "prefill-parts",
    title: "Where the time of a prompt goes",
    caption: () => "Each bar is one test, named by its tokens and cache; its parts are shares of the time. What " +
      "compression adds is “votes and selection” and “gathering”.",
    height: () => 120 + 34 * records.length,
    option(frame: Frame) {
      const dark = frame.look.dark;
      const colours = [dark ? "#6ea4ff" : "#2f6bd8", dark ? "#b295ff" : "#7a4fd0",
        dark ? "#5b6b80" : "#a9b4c2", kNeedleStops[2], kNeedleStops[0], dark ? "#38465a" : "#d5dbe3"];
      const room = Math.min(0.4 * frame.width, 20 + 7.2 * Math.max(...labels.map((l) => l.length)));
      return {
        ...baseOption(frame),
        tooltip: {
          ...(baseOption(frame).tooltip as object),
          trigger: "axis",
          axisPointer: { type: "shadow" },
          formatter: (params: { dataIndex: number }[]) => {
            const r = records[params[0].dataIndex];
            const total = r.prefill_s ?? 0;
            return `${labels[params[0].dataIndex]}: <b>${seconds(total)}</b><br>` + partsOf(r).map(([name, s], i) =>
              `<span style="color:${colours[i]}">●</span> ${name}: <b>${seconds(s)}</b> (${percent(s / total)})`)
              .join("<br>");
          },
        },
        legend: legend(frame, names),
        grid: { left: room, right: 26, top: frame.top + 44, bottom: 50 },
        xAxis: axis(frame, "share of the time", { type: "value", min: 0, max: 1, nameLocation: "middle",
          nameGap: 28, axisLabel: { formatter: percent } }),
        yAxis: axis(frame, "", { type: "category", inverse: true, data: labels, axisTick: { show: false },
          axisLabel: { width: room - 14, overflow: "truncate" } }),
        series: names.map((name, i) => ({
          type: "bar", name, stack: "all", barMaxWidth: 20, itemStyle: { color: colours[i] },
          data: records.map((r) => partsOf(r)[i][1] / (r.prefill_s || 1)),
        })),
      };
    },
  };
}
