// SPDX-License-Identifier: MIT
// Pictures of lines with points and intervals, for the quality, memory, latency, overlap and
// fidelity charts.
import { seriesColours } from "./colour";
import { distinct } from "./stats";
import { baseOption, legend, xAxis, yAxis, type Frame, type Picture } from "./picture";

export interface Point {
  x: number;
  y: number;
  low?: number;
  high?: number;
  /** Follows the value in the tooltip: "of 40 prompts". */
  note?: string;
}

export interface Line {
  name: string;
  points: Point[];
  /** Lines of one family share a colour; the dash tells them apart. */
  family?: string;
  dash?: "solid" | "dashed" | "dotted";
  /** Whether there is a mark at every point; true by default. */
  symbols?: boolean;
  /** Replaces the palette's colour; "ink": the colour of the text. */
  colour?: string;
  width?: number;
  /** One value for the whole width: a dashed line at the only point's y, and a band from its low to its high. */
  band?: boolean;
}

export interface LinesSpec {
  name: string;
  title: string;
  caption: string;
  xName: string;
  yName: string;
  /** Logarithmic, base 2: for budgets and lengths that double. */
  xLog?: boolean;
  yLog?: boolean;
  yMin?: number;
  yMax?: number;
  xText(x: number): string;
  yText(y: number): string;
  /** Labels of the axis, if they differ from yText. */
  yTick?(y: number): string;
  /** Distance between ticks, for axes that are not logarithmic. */
  xStep?: number;
  yStep?: number;
  /** Shifts the points of different lines slightly apart, so that equal ones can be seen. */
  dodge?: boolean;
  lines: Line[];
}

interface TipParam {
  seriesType: string;
  seriesName: string;
  dataIndex: number;
  color: string;
}

const kTogether = 12; // lines; with more, a tooltip shows only the one under the pointer

/** The tick distance for at most n ticks up to `max`, as a power of two: for bytes and tokens. */
export function binaryStep(max: number, n: number): number {
  return 2 ** Math.max(0, Math.ceil(Math.log2(Math.max(1, max) / n)));
}

const escape = (text: string) => text.replace(/&/g, "&amp;").replace(/</g, "&lt;");

/** The shifted x of a line's points, if the picture dodges. */
export function dodged(spec: LinesSpec, line: Line, x: number): number {
  const placed = spec.lines.filter((l) => !l.band);
  if (!spec.dodge || placed.length < 2) return x;
  // in all a tenth of a doubling or, on other axes, a hundredth of the visible range
  const place = placed.indexOf(line) / (placed.length - 1) - 0.5;
  if (spec.xLog) return x * 2 ** (0.1 * place);
  const xs = placed.flatMap((l) => l.points.map((p) => p.x));
  return x + 0.01 * place * (Math.max(...xs) - Math.min(...xs));
}

function tipRow(spec: LinesSpec, line: Line, index: number, colours: Map<string, string>): string {
  const { y, low, high, note } = line.points[index];
  const interval = low !== undefined && high !== undefined ? ` [${spec.yText(low)}, ${spec.yText(high)}]` : "";
  const dot = `<span style="color:${line.colour === "ink" ? "inherit" : line.colour ?? colours.get(line.family ?? line.name)}">●</span>`;
  return `${dot} ${escape(line.name)}: <b>${spec.yText(y)}</b>${interval}${note ? ` ${escape(note)}` : ""}`;
}

/** All series at one x, and the values that hold at every x. */
export function lineTooltip(spec: LinesSpec, params: TipParam[], colours: Map<string, string>): string {
  const rows = params.filter((p) => p.seriesType === "line").map((p) =>
    tipRow(spec, spec.lines.find((l) => l.name === p.seriesName)!, p.dataIndex, colours));
  if (rows.length === 0) return "";
  rows.push(...spec.lines.filter((line) => line.band).map((line) => tipRow(spec, line, 0, colours)));
  const first = params.find((p) => p.seriesType === "line")!;
  const { x } = spec.lines.find((l) => l.name === first.seriesName)!.points[first.dataIndex];
  return `${spec.xText(x)} · ${escape(spec.xName)}<br>${rows.join("<br>")}`;
}

// Vertical bars with caps. They are a custom series, because ECharts has none for them.
function intervals(spec: LinesSpec, line: Line, colour: string) {
  const data = line.points.filter((p) => p.low !== undefined).map((p) => [dodged(spec, line, p.x), p.low, p.high]);
  return {
    type: "custom", name: line.name, silent: true, clip: true, data, z: 3,
    itemStyle: { color: colour },
    encode: { x: 0, y: [1, 2] },
    tooltip: { show: false },
    renderItem: (_: unknown, api: { value(i: number): number; coord(v: number[]): number[] }) => {
      const [x, low] = api.coord([api.value(0), api.value(1)]);
      const high = api.coord([api.value(0), api.value(2)])[1];
      const part = (x1: number, y1: number, x2: number, y2: number) => ({
        type: "line", shape: { x1, y1, x2, y2 }, style: { stroke: colour, lineWidth: 1.5, opacity: 0.55 } });
      return { type: "group",
        children: [part(x, low, x, high), part(x - 4, low, x + 4, low), part(x - 4, high, x + 4, high)] };
    },
  };
}

// A line across the whole width, with a band around it if its value is uncertain.
function acrossAll(line: Line, colour: string) {
  const [{ y, low, high }] = line.points;
  return {
    type: "custom", name: line.name, silent: true, clip: true, data: [[0, y]], z: 2, itemStyle: { color: colour },
    tooltip: { show: false }, encode: { x: -1, y: -1 },
    renderItem: (params: { coordSys: { x: number; width: number; y: number; height: number } },
      api: { coord(v: number[]): number[]; value(i: number): number }) => {
      const { x, width } = params.coordSys;
      const at = (value: number) => api.coord([0, value])[1];
      const band = low === undefined || high === undefined ? [] : [{ type: "rect",
        shape: { x, y: at(high), width, height: Math.max(1, at(low) - at(high)) },
        style: { fill: colour, opacity: 0.13 } }];
      return { type: "group", children: [...band, { type: "line", shape: { x1: x, x2: x + width, y1: at(y), y2: at(y) },
        style: { stroke: colour, lineWidth: line.width ?? 2.2, lineDash: line.dash === "dotted" ? [2, 4] : [7, 5] } }] };
    },
  };
}

const kSymbols = ["circle", "rect", "triangle", "diamond", "roundRect"];

export function linesOption(spec: LinesSpec, frame: Frame) {
  const families = distinct(spec.lines.filter((l) => !l.colour).map((l) => l.family ?? l.name));
  const colours = seriesColours(families, frame.look);
  const top = frame.top + 50;
  const colourOf = (line: Line) =>
    (line.colour === "ink" ? frame.look.ink : line.colour) ?? colours.get(line.family ?? line.name)!;
  const many = spec.lines.length > kTogether;
  const placed = spec.lines.filter((l) => !l.band);
  const xs = distinct(placed.flatMap((l) => l.points.map((p) => p.x))).sort((a, b) => a - b);
  const places = ticksOf(spec, xs);
  return {
    ...baseOption(frame),
    tooltip: {
      ...(baseOption(frame).tooltip as object),
      trigger: many ? "item" : "axis",
      axisPointer: { type: "line", lineStyle: { color: frame.look.soft, type: "dashed" } },
      formatter: (params: TipParam | TipParam[]) => lineTooltip(spec, [params].flat(), colours),
    },
    legend: legend(frame, spec.lines.map((l) => l.name)),
    grid: { left: 78, right: 30, top, bottom: 56 },
    xAxis: xAxis(frame, spec.xName, {
      type: spec.xLog ? "log" : "value", logBase: 2, min: padded(xs, spec.xLog, -1),
      max: padded(xs, spec.xLog, 1), splitLine: { show: false },
      axisTick: { lineStyle: { color: frame.look.line }, ...places },
      axisLabel: { formatter: (x: number) => spec.xText(x), ...places,
        ...(spec.xLog || spec.xStep ? {} : { showMinLabel: xs[0] === 0, showMaxLabel: false }) },
    }),
    yAxis: yAxis(frame, spec.yName, 58, {
      type: spec.yLog ? "log" : "value", min: spec.yMin, max: spec.yMax,
      interval: spec.yLog ? undefined : spec.yStep,
      axisLabel: { formatter: (y: number) => (spec.yTick ?? spec.yText)(y) },
    }),
    series: spec.lines.flatMap((line): object[] => {
      const colour = colourOf(line);
      if (line.band) return [acrossAll(line, colour)];
      const style = { width: line.width ?? 2.2, type: line.dash ?? "solid", color: colour };
      const symbol = kSymbols[Math.max(0, families.indexOf(line.family ?? line.name)) % kSymbols.length];
      return [
        { type: "line", name: line.name, data: line.points.map((p) => [dodged(spec, line, p.x), p.y]), lineStyle: style,
          itemStyle: { color: colour }, symbol, symbolSize: 8, showSymbol: line.symbols ?? true, z: 4,
          emphasis: { focus: "series" } },
        ...(line.points.some((p) => p.low !== undefined) ? [intervals(spec, line, colour)] : []),
      ];
    }),
  };
}

// The places of ticks: every x of a logarithmic axis with few of them, multiples of the step on
// other axes (which would count from their padded end); otherwise ECharts chooses.
function ticksOf(spec: LinesSpec, xs: number[]): { customValues?: number[] } {
  if (spec.xLog) return xs.length <= 14 ? { customValues: xs } : {};
  if (!spec.xStep) return {};
  const first = Math.ceil(xs[0] / spec.xStep), last = Math.floor(xs[xs.length - 1] / spec.xStep);
  return { customValues: Array.from({ length: last - first + 1 }, (_, i) => (first + i) * spec.xStep!) };
}

// Adds room beside the first and the last point.
function padded(xs: number[], log: boolean | undefined, side: -1 | 1): number | undefined {
  const low = xs[0], high = xs[xs.length - 1];
  if (log) return side < 0 ? low / 1.3 : high * 1.3;
  const room = high > low ? (high - low) * 0.03 : 1;
  return side < 0 ? (low >= 0 ? Math.max(0, low - room) : low - room) : high + room;
}

/** `spec` is called for every drawing, so that it may depend on choices. */
export function linesPicture(spec: () => LinesSpec, height = 400): Picture {
  const { name, title } = spec();
  return {
    name,
    title,
    caption: () => spec().caption,
    height: () => height,
    option: (frame) => linesOption(spec(), frame),
  };
}
