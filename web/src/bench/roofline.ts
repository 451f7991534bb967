// SPDX-License-Identifier: MIT
// The roofline of a machine, and how close a run came to it. Each test is a point at its operations
// per byte and its operations per second; the machine's read rate and its products form the roofs
// above. The terms are those of app/cli/bench/roofline.h.
import { seriesColours } from "../colour";
import type { BenchRecord } from "../data";
import { number, seconds, tokens } from "../format";
import { baseOption, legend, xAxis, yAxis, type Frame, type Picture } from "../picture";
import { groupBy } from "../stats";
import { seriesName, testName } from "./bench_lines";
import { placeNames, type Box, type Place } from "./label_places";

const kNarrow = 560; // pixels; on a narrower chart all points have the table's numbers instead of names

/** A record whose limits were measured. */
export type LimitRecord = BenchRecord & {
  percent_of_limit: number;
  limit: "compute" | "memory";
  limit_s: number;
  linear_products: string;
  attention_products: string;
  machine_read_gbps: number;
};

export function withLimits(records: BenchRecord[]): LimitRecord[] {
  return records.filter((r): r is LimitRecord => r.percent_of_limit !== null);
}

/** Operations per byte. */
export function intensity(r: BenchRecord): number {
  return r.work_gflop / r.work_gb;
}

/** The products whose rates a record holds. */
const kProducts = [
  ["f32", (r: BenchRecord) => r.machine_f32_gflops], ["bf16", (r: BenchRecord) => r.machine_bf16_gflops],
  ["int8", (r: BenchRecord) => r.machine_int8_gops]] as const;

export interface Roof {
  /** "bf16" */
  products: string;
  /** Operations per second, in 10^9. */
  rate: number;
}

/** The highest read and product rates of the machine: the best of all measurements before the tests. */
export function roofs(records: LimitRecord[]): { read: number; products: Roof[] } {
  const best = (of: (r: BenchRecord) => number | null) => Math.max(...records.map((r) => of(r) ?? 0));
  return {
    read: best((r) => r.machine_read_gbps),
    products: kProducts.map(([products, rate]) => ({ products, rate: best(rate) })).filter((roof) => roof.rate > 0),
  };
}

/** Axis ranges with room around all points and ridges; they begin at powers of ten. */
export function extent(records: LimitRecord[]): { x: [number, number]; y: [number, number] } {
  const { read, products } = roofs(records);
  const xs = [...records.map(intensity), ...products.map((p) => p.rate / read)];
  const ys = [...records.map((r) => r.gflops), ...products.map((p) => p.rate)];
  const below = (v: number[]) => 10 ** Math.floor(Math.log10(Math.min(...v) / 1.5));
  const x0 = below(xs);
  return { x: [x0, Math.max(...xs) * 4], y: [below([...ys, x0 * read]), Math.max(...ys) * 2.5] };
}

const escape = (text: string) => text.replace(/&/g, "&amp;").replace(/</g, "&lt;");

/** "memory", "bf16 products" */
export function limitName(r: LimitRecord): string {
  if (r.limit === "memory") return "memory";
  const both = r.linear_products === r.attention_products ? r.linear_products
    : `${r.linear_products} and ${r.attention_products}`;
  return `${both} products`;
}

export function pointTooltip(r: LimitRecord, name: string): string {
  return `${escape(name)}: ${testName(r)}<br><b>${number(r.percent_of_limit)}%</b> of the limit by ${limitName(r)}<br>` +
    `${number(r.gflops)} GFLOP/s, ${number(intensity(r))} operations per byte<br>` +
    `at least ${seconds(r.limit_s)}, took ${seconds(r.avg_ns / 1e9)}`;
}

/** A short name beside a point: "prompt 4k", "decode at 4k". */
export function pointLabel(r: BenchRecord): string {
  const depth = r.n_depth > 0 ? ` at ${tokens(r.n_depth)}` : "";
  const name = r.n_prompt > 0 ? `prompt ${tokens(r.n_prompt)}` : "decode";
  return `${name}${depth}${r.n_seq > 1 ? ` × ${r.n_seq}` : ""}`;
}

const rateText = (roof: Roof) => `${roof.products} products: ${number(roof.rate)} GFLOP/s`;

function roofSeries(records: LimitRecord[], frame: Frame): object[] {
  const { read, products } = roofs(records);
  const { x } = extent(records);
  const { look } = frame;
  const line = { color: look.soft, width: 1.6 };
  const text = { show: true, color: look.soft, fontSize: 12 };
  const highest = Math.max(...products.map((p) => p.rate)), lowest = Math.min(...products.map((p) => p.rate));
  const common = { type: "line", symbol: "none", silent: true, z: 2, lineStyle: line, tooltip: { show: false } };
  const words = (coord: [number, number], position: [number, number], formatter: string) => ({
    silent: true, symbol: "circle", symbolSize: 0, data: [{ coord }], label: { ...text, position, align: "right", formatter } });
  // the name of the lowest roof is below its line, so that names of close roofs do not overlap
  return [
    { ...common, name: "memory", data: [[x[0], x[0] * read], [highest / read, highest]],
      markPoint: words([highest / read, highest], [-10, -6], `${frame.width < kNarrow ? "" : "memory: "}${number(read)} GB/s`) },
    ...products.map((roof) => ({
      ...common, name: roof.products, data: [[roof.rate / read, roof.rate], [x[1], roof.rate]],
      markPoint: words([x[1], roof.rate], [-6, roof.rate === lowest ? 5 : -16], rateText(roof)),
    })),
  ];
}

const kGrid = { left: 78, right: 30, top: 50, bottom: 56 };
const kSymbol = 11;
const textWidth = (text: string) => 6.8 * text.length + 4; // pixels, of 12 pixels' height

/** Where the roofs' names are written: as words() in roofSeries() has them. */
function roofBoxes(records: LimitRecord[], x: (v: number) => number, y: (v: number) => number): Box[] {
  const { read, products } = roofs(records);
  const highest = Math.max(...products.map((p) => p.rate)), lowest = Math.min(...products.map((p) => p.rate));
  const right = x(extent(records).x[1]);
  const box = (end: number, top: number, text: string) => ({ x: end - textWidth(text), y: top, width: textWidth(text), height: 16 });
  return [box(x(highest / read) - 10, y(highest) - 8, `memory: ${number(read)} GB/s`),
    ...products.map((roof) => box(right - 6, y(roof.rate) + (roof.rate === lowest ? 3 : -18), rateText(roof)))];
}

/** The place of each record's name on a chart of this size; its number, or nothing, where there is no room for it. */
export function pointPlaces(records: LimitRecord[], frame: Frame, label: (r: LimitRecord) => string,
    short: (r: LimitRecord) => string): Map<LimitRecord, Place & { text: string; dx: number; dy: number }> {
  const chart = { x: kGrid.left, y: frame.top + kGrid.top, width: frame.width - kGrid.left - kGrid.right,
    height: frame.height - frame.top - kGrid.top - kGrid.bottom };
  const { x: [x0, x1], y: [y0, y1] } = extent(records);
  const x = (v: number) => chart.x + (chart.width * Math.log(v / x0)) / Math.log(x1 / x0);
  const y = (v: number) => chart.y + chart.height * (1 - Math.log(v / y0) / Math.log(y1 / y0));
  const named = records.map((r) => ({ x: x(intensity(r)), y: y(r.gflops), width: textWidth(label(r)), shortWidth: textWidth(short(r)) }));
  const places = placeNames(named, roofBoxes(records, x, y), chart);
  return new Map(records.map((r, i) => [r, { ...places[i], text: { name: label(r), short: short(r), nothing: "" }[places[i].shows],
    dx: places[i].x - named[i].x + kSymbol / 2, dy: places[i].y - named[i].y + kSymbol / 2 }]));
}

const kPrompt = "circle", kDecode = "triangle";

/** The cache of a record; the number of sequences belongs to the test's name instead. */
function cacheName(r: BenchRecord, all: BenchRecord[]): string {
  return seriesName({ ...r, n_seq: 1 }, all);
}

export function rooflinePicture(chosen: () => LimitRecord[], all: BenchRecord[]): Picture {
  const rows = withLimits(all);
  return {
    name: "roofline",
    title: "How near the machine's limits each test came",
    caption: () => "Each point is one test: circles are prompts, triangles are decoding. The slope is what this " +
      "machine reads from memory, the level lines are what its products compute, both measured for half a second " +
      "before each test (the best of them is drawn). A point on its line needs a faster machine; one below could " +
      "be faster here. Percent are of the rates before the test; where there is no room for a name, the point has its " +
      "number in the table.",
    height: (width) => (width < kNarrow ? 430 : 480),
    option(frame: Frame) {
      const records = chosen();
      const groups = groupBy(records, (r) => cacheName(r, all));
      const colours = seriesColours([...groups.keys()], frame.look);
      const { x, y } = extent(records);
      const short = (r: LimitRecord) => `${rows.indexOf(r) + 1}`;
      const places = pointPlaces(records, frame, frame.width < kNarrow ? short
        : (r) => `${pointLabel(r)}: ${number(Math.round(r.percent_of_limit))}%`, short);
      return {
        ...baseOption(frame),
        tooltip: {
          ...(baseOption(frame).tooltip as object), trigger: "item",
          formatter: ({ seriesName: name, dataIndex }: { seriesName: string; dataIndex: number }) => {
            const r = groups.get(name)?.[dataIndex];
            return r ? pointTooltip(r, name) : "";
          },
        },
        legend: legend(frame, [...groups.keys()]),
        grid: { ...kGrid, top: frame.top + kGrid.top },
        xAxis: xAxis(frame, "operations per byte of memory", { type: "log", min: x[0], max: x[1],
          axisLabel: { formatter: number, showMaxLabel: false }, splitLine: { show: false } }),
        yAxis: yAxis(frame, "GFLOP/s", 52, { type: "log", min: y[0], max: y[1],
          axisLabel: { formatter: number, showMaxLabel: false } }),
        series: [
          ...roofSeries(records, frame),
          ...[...groups].map(([name, group]) => ({
            type: "scatter", name, z: 4, symbolSize: kSymbol, itemStyle: { color: colours.get(name) },
            data: group.map((r) => {
              const { text, dx, dy } = places.get(r)!;
              return { value: [intensity(r), r.gflops], symbol: r.n_prompt > 0 ? kPrompt : kDecode,
                label: { position: [dx, dy], formatter: text } };
            }),
            label: { show: true, align: "left", verticalAlign: "top", color: frame.look.ink, fontSize: 12 },
            emphasis: { focus: "series" },
          })),
        ],
      };
    },
  };
}

/** A row for each test, with the values that its point shows. */
export function rooflineTable(records: LimitRecord[], all: BenchRecord[]): string[][] {
  return [
    ["", "cache", "test", "of the limit", "limit", "GFLOP/s", "GB/s", "operations/byte", "least time", "time"],
    ...records.map((r, i) => [
      `${i + 1}`, cacheName(r, all), testName(r), `${number(r.percent_of_limit)}%`, limitName(r), number(r.gflops),
      number(r.work_gb / (r.avg_ns / 1e9)), number(intensity(r)), seconds(r.limit_s), seconds(r.avg_ns / 1e9),
    ]),
  ];
}
