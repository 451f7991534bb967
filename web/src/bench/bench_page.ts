// SPDX-License-Identifier: MIT
// The page of `snapkv bench`: memory and latency against the length of the context.
import type { BenchData, BenchRecord } from "../data";
import { bytes, number, plural, seconds, tokens } from "../format";
import { linesPicture } from "../lines";
import { addChartCard, addChoice, addCard, addFooter, addHeader, addTiles, table } from "../page";
import { distinct } from "../stats";
import { comparison, gainText, latencySpec, memorySpec, promptSpec, seriesName, testName } from "./bench_lines";
import { prefillParts } from "./prefill_parts";
import { rooflinePicture, rooflineTable, withLimits, type LimitRecord } from "./roofline";

type Spec = typeof memorySpec;

function addLines(records: BenchRecord[], make: Spec): void {
  if (make(records, false).lines.every((line) => line.points.length === 0)) return;
  let log = false;
  const { card, redraw } = addChartCard(linesPicture(() => make(records, log)));
  const positive = make(records, false).lines.every((line) => line.points.every((p) => p.x > 0));
  if (!positive) return;
  addChoice(card, { label: "Context axis", options: ["linear", "logarithmic"], chosen: 0, choose: (i) => {
    log = i === 1;
    redraw();
  } });
}

function addTable(records: BenchRecord[]): void {
  const card = addCard("bench-table", "All results", null);
  card.body.append(table([
    ["cache", "test", "tokens/s", "time", "KV peak", "KV after", "full cache", "process"],
    ...records.map((r) => [
      seriesName(r, records),
      testName(r),
      `${number(r.avg_ts)} ± ${number(r.stddev_ts)}`,
      seconds(r.avg_ns / 1e9),
      ...[r.kv_mib_peak, r.kv_mib, r.kv_mib_full, r.peak_rss_mib].map((m) => `${number(m)} MiB`),
    ]),
  ], "All results"));
  card.setCaption("One row per test: the mean of its repetitions and their standard deviation.");
}

// The machine's limits depend on the number of threads, so each number is a choice of its own.
function addRoofline(all: BenchRecord[]): void {
  const records = withLimits(all);
  if (records.length === 0) return;
  const threads = distinct(records.map((r) => r.n_threads));
  let chosen = 0;
  const current = (): LimitRecord[] => records.filter((r) => r.n_threads === threads[chosen]);
  const { card, redraw } = addChartCard(rooflinePicture(current, all));
  if (threads.length > 1) {
    addChoice(card, { label: "Threads", options: threads.map((n) => plural(n, "thread")), chosen, choose: (i) => {
      chosen = i;
      redraw();
    } });
  }
  const rows = addCard("roofline-table", "Percent of the machine's limits", null);
  rows.body.append(table(rooflineTable(records, all), "Percent of the machine's limits"));
  rows.setCaption("The least time is what the counted operations and bytes of a test take at the rates that were " +
    "measured just before it: the longer of computing and reading.");
}

function addComparison(records: BenchRecord[]): void {
  const tile = (make: Spec, text: (y: number) => string, what: string, better: string, worse: string) => {
    const c = comparison(make(records, false));
    if (!c) return [];
    const range = c.high > c.low ? ` (${number(c.low)}x to ${number(c.high)}x between repetitions)` : "";
    const gain = gainText(c, better, worse);
    if (!gain && text(c.full) === text(c.compressed)) {
      return [{ value: text(c.full), label: `${what} at ${tokens(c.x)} tokens, the same with full and ${c.name}` }];
    }
    return [{ value: `${text(c.full)} → ${text(c.compressed)}`,
      label: `${what} at ${tokens(c.x)} tokens, full → ${c.name}: ${gain || "no clear difference"}${range}` }];
  };
  addTiles([...tile(memorySpec, bytes, "KV cache", "smaller", "larger"),
    ...tile(latencySpec, seconds, "time per token", "faster", "slower")]);
}

export function benchPage(data: BenchData): void {
  const { records } = data;
  if (records.length === 0) throw new Error("the run has no results");
  const [first] = records;
  addHeader("Memory and time against the length of the context",
    `${distinct(records.map((r) => r.model_type)).join(", ")} on ${first.cpu_info || "this machine"}: ` +
      `${distinct(records.map((r) => r.backends)).join("; ")}.`);
  addComparison(records);
  addLines(records, memorySpec);
  addLines(records, latencySpec);
  addLines(records, promptSpec);
  if (records.some((r) => r.prefill_s !== null)) addChartCard(prefillParts(records));
  addRoofline(records);
  addTable(records);
  addFooter(`snapkv ${data.version} · ${distinct(records.map((r) => r.model_filename.replace(/^.*\//, ""))).join(", ")}`);
}
