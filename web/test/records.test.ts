// SPDX-License-Identifier: MIT
// The charts of eval and bench pages and the records they show.
import assert from "node:assert/strict";
import { test } from "node:test";
import { comparison, contextOf, gainText, latencySpec, memorySpec, promptSpec, seriesName } from "../src/bench/bench_lines";
import { partsOf, prefillParts } from "../src/bench/prefill_parts";
import type { Box } from "../src/bench/label_places";
import { extent, intensity, limitName, pointLabel, pointPlaces, pointTooltip, rooflinePicture, rooflineTable, roofs, withLimits }
  from "../src/bench/roofline";
import { lookOf, seriesColours } from "../src/colour";
import { echarts } from "../src/echarts";
import { lengthOf, Namer, taskName } from "../src/eval/configurations";
import { cellTooltip, gridChoices, makeGrid, needleGrid } from "../src/eval/needle_grid";
import { curve, fidelityBudgetSpec, fidelityChoices, fidelityRecords, fidelitySpec, hasBudgets } from "../src/eval/fidelity";
import { generationSpec, overlapGroups, questionsSpec, windowsSpec } from "../src/eval/overlap";
import { qualitySpec, qualityTable, selections } from "../src/eval/quality";
import { hasTaskMap, makeTaskMap, taskMap } from "../src/eval/task_map";
import { bytes, number, percent, seconds, tokens, visible, wrap } from "../src/format";
import { dodged, linesOption, lineTooltip } from "../src/lines";
import { wilson } from "../src/stats";
import { bench, frame, scored } from "./sample";

function svg(option: Record<string, unknown>): string {
  const chart = echarts.init(null, null, { renderer: "svg", ssr: true, width: 900, height: 400 });
  chart.setOption(option);
  const text = chart.renderToSVGString();
  chart.dispose();
  return text;
}

test("numbers read well", () => {
  assert.equal(number(0.012345), "0.0123");
  assert.equal(number(12345), "12,345");
  assert.equal(percent(0.5), "50%");
  assert.equal(bytes(3.75 * 1024 * 1024), "3.75 MiB");
  assert.equal(seconds(0.00031), "0.31 ms");
  assert.equal(seconds(125), "2 min 5 s");
  assert.deepEqual([512, 4096, 131072, 1000, 2500, 1 << 20].map(tokens), ["512", "4,096", "131,072", "1k", "2.5k", "1,048,576"]);
  assert.equal(visible(" a\n"), "␣a⏎");
  assert.deepEqual(wrap("one two three", 8), ["one two", "three"]);
});

test("intervals are the printed table's", () => {
  // eval/common/metrics.cpp, tests/eval/metrics_test.cpp: 8 of 10
  const { low, high } = wilson(0.8, 10);
  assert.ok(Math.abs(low - 0.4902) < 1e-4 && Math.abs(high - 0.9433) < 1e-4);
});

test("names hold what differs, and only that", () => {
  const records = [scored("full", 0, 1), scored("snapkv", 64, 1), scored("snapkv", 64, 1)];
  assert.equal(new Namer(records).full(records[1].configuration), "snapkv 64");
  records[2].configuration.kernel = 15;
  assert.equal(new Namer(records).full(records[2].configuration), "snapkv 64, kernel 15");
  assert.equal(new Namer(records).full(records[0].configuration), "full");
});

test("an automatic budget stands at the rows that it keeps", () => {
  const fixed = scored("snapkv-max", 64, 1), auto = [0, 1].map((score) => scored("snapkv-max", 1024, score));
  Object.assign(fixed.configuration, { least_attention: 0 });
  for (const [i, record] of auto.entries()) {
    Object.assign(record.configuration, { least_attention: 0.05 });
    Object.assign(record, { n_prompt: 1000, kv_bytes: 8 + 4 * i, kv_bytes_full: 100 });
  }
  const records = [fixed, ...auto];
  assert.equal(new Namer(records).full(auto[0].configuration), "snapkv-max, automatic budget");
  assert.equal(new Namer(records).full(fixed.configuration), "snapkv-max 64");
  const spec = qualitySpec(selections(records, () => "qa")[0]);
  assert.deepEqual(spec.lines.map(({ name, points }) => [name, points.map(({ x }) => x)]),
    [["snapkv-max", [64]], ["snapkv-max, automatic budget", [100]]]);
});

test("names take a policy's own parameters as the record has them", () => {
  const records = ["snapkv", "snapkv", "other", "other"].map((policy) => scored(policy, 64, 1));
  Object.assign(records[0].configuration, { critical: true, pooling: "avg", sinks: 0 });
  Object.assign(records[1].configuration, { critical: false, pooling: "max", sinks: 0 });
  Object.assign(records[2].configuration, { lag_size: 128, sinks: 4 });
  Object.assign(records[3].configuration, { lag_size: 64, sinks: 4 });
  const namer = new Namer(records);
  assert.deepEqual(records.map((r) => namer.full(r.configuration)), [
    "snapkv 64, critical, avg pooling", "snapkv 64, max pooling",
    "other 64, lag size 128", "other 64, lag size 64"]);
});

test("budgets made of bytes are points of one line", () => {
  const records = [64, 128].map((budget) => scored("snapkv", budget, 1));
  records.forEach((r, i) => (r.configuration.kv_memory = (i + 1) << 20));
  const spec = qualitySpec(selections(records, () => "needle")[0]);
  assert.deepEqual(spec.lines.map((l) => [l.name, l.points.map((p) => p.x)]), [["snapkv", [64, 128]]]);
  assert.equal(new Namer(records).full(records[1].configuration), "snapkv 128, 2 MiB at most");
});

test("equal points of different lines stand beside each other", () => {
  const records = ["snapkv", "tova", "knorm"].map((policy) => scored(policy, 64, 1));
  const spec = qualitySpec(selections(records, () => "needle")[0]);
  const xs = spec.lines.map((l) => dodged(spec, l, 64));
  assert.equal(xs[1], 64);
  assert.ok(xs[0] < 64 && xs[2] > 64 && xs[2] / xs[0] < 1.1);
  assert.equal(dodged({ ...spec, dodge: false }, spec.lines[0], 64), 64);
});

test("tasks and lengths of records are told apart", () => {
  const ruler = scored("full", 0, 1, { task: "ruler", kind: undefined, ruler_task: "vt", length_wanted: 4096, length: 4001 });
  assert.equal(taskName(ruler), "ruler, vt");
  assert.equal(lengthOf(ruler), 4096);
  assert.equal(taskName(scored("full", 0, 1, { question: "agnostic" })), "needle, single, asked after compression");
  assert.equal(lengthOf(scored("full", 0, 1, { task: "longbench", length: 1234 })), undefined, "counted in words");
  const records = [ruler, { ...ruler, ruler_task: "cwe", length_wanted: 8192 }];
  assert.deepEqual(selections(records, taskName).map((s) => s.label),
    ["all prompts", "ruler, vt", "ruler, cwe", "prompts of 4,096 tokens", "prompts of 8,192 tokens"]);
});

test("quality: a line per policy, the full cache as a band", () => {
  const records = [64, 128].flatMap((budget) => [1, 0].map((score) => scored("snapkv", budget, score)));
  records.push(scored("full", 0, 1));
  const spec = qualitySpec(selections(records, () => "needle")[0]);
  assert.deepEqual(spec.lines.map((l) => l.name), ["snapkv", "full"]);
  assert.deepEqual(spec.lines[0].points.map((p) => [p.x, p.y]), [[64, 0.5], [128, 0.5]]);
  assert.equal(spec.lines[1].band, true);
  assert.deepEqual(spec.lines[1].points.map((p) => p.y), [1]);
  assert.ok(spec.lines[1].points[0].low! < 1);
  assert.ok(spec.lines[0].points[0].low! < 0.5 && spec.lines[0].points[0].high! > 0.5);
  const picture = svg(linesOption(spec, frame));
  for (const words of ["budget (entries kept per layer and KV head)", "mean score", "snapkv", "full", "100%", "64"]) {
    assert.ok(picture.includes(words), words);
  }
});

test("a tooltip lists every line at its place", () => {
  const records = [scored("snapkv", 64, 1), scored("full", 0, 1)];
  const spec = qualitySpec(selections(records, () => "needle")[0]);
  const tip = lineTooltip(spec, [
    { seriesType: "line", seriesName: "snapkv", dataIndex: 0, color: "" },
    { seriesType: "custom", seriesName: "snapkv", dataIndex: 0, color: "" },
  ], seriesColours(["snapkv", "full"], lookOf(false)));
  assert.match(tip, /^64 · budget/);
  assert.match(tip, /snapkv: <b>100%<\/b> \[20\.7%, 100%\] of 1 prompt/);
  assert.match(tip, /full: <b>100%<\/b> \[20\.7%, 100%\] of 1 prompt$/, "what holds at every budget is there too");
});

test("the table has a row per configuration and a column per length", () => {
  const records = [400, 800].map((length) => scored("snapkv", 64, 1, { length, kv_bytes: 1, kv_bytes_full: 10 }));
  const rows = qualityTable(records, (r) => String(r.length));
  assert.deepEqual(rows[0], ["cache", "400 (1 prompt)", "800 (1 prompt)", "all (2 prompts)", "size"]);
  assert.deepEqual(rows[1], ["snapkv 64", "100.0% [20.7, 100.0]", "100.0% [20.7, 100.0]",
    "100.0% [34.2, 100.0]", "10%"]);
  const uneven = qualityTable([...records, scored("full", 0, 1, { length: 400 })], (r) => String(r.length));
  assert.deepEqual(uneven[0].slice(0, 3), ["cache", "400 (1 prompt)", "800"]);
  assert.deepEqual(uneven[2], ["full", "100.0% [20.7, 100.0]", "-", "100.0% [20.7, 100.0] of 1", "-"]);
});

test("the needle grid: panels, cells, colours, answers", () => {
  const records = [400, 800].flatMap((length) => [0, 1].flatMap((depth) =>
    ["full", "snapkv"].map((policy) => scored(policy, 64, policy === "full" || depth === 1 ? 1 : 0, { length, depth }))));
  const grid = makeGrid(records);
  assert.deepEqual(grid.lengths, [400, 800]);
  assert.deepEqual(grid.depths, [0, 1]);
  assert.deepEqual(grid.panels.map((p) => [p.name, p.mean]), [["full", 1], ["snapkv 64", 0.5]]);
  const cell = grid.panels[1].cells.find((c) => c.x === 0 && c.y === 0)!;
  assert.equal(cell.mean, 0);
  assert.match(cellTooltip(grid, grid.panels[1], cell), /0%.*400 tokens, fact at 0%.*“12345” \(right: 12345\)/s);
  const picture = svg(needleGrid(() => grid).option(frame));
  assert.ok(/#f0496e|rgb\(240,73,110\)/i.test(picture), "lost is red");
  assert.ok(/#0cd79f|rgb\(12,215,159\)/i.test(picture), "found is green");
  assert.ok(picture.includes("depth of the fact") && picture.includes("snapkv 64: 50%"));
});

test("many panels are shown policy by policy", () => {
  const few = ["full", "snapkv"].map((policy) => scored(policy, 64, 1));
  assert.deepEqual(gridChoices(few).choices.map((c) => c.label), ["all caches"]);
  const many = ["full", "h2o", "snapkv"].flatMap((policy) => [1, 2, 3, 4].map((budget) => scored(policy, budget, 1)));
  const { choices, chosen } = gridChoices(many);
  assert.deepEqual(choices.map((c) => c.label), ["all caches", "full and h2o", "full and snapkv"]);
  assert.equal(chosen, 2);
  assert.equal(choices[2].records.length, 8);
});

test("an answer can't break a tooltip", () => {
  const grid = makeGrid([scored("full", 0, 0, { length: 1, depth: 0, answer: "<img src=x>" })]);
  assert.ok(!cellTooltip(grid, grid.panels[0], grid.panels[0].cells[0]).includes("<img"));
});

test("overlap: a line per layer and their mean, over samples", () => {
  const layer = (a: number) => ({ windows: [{ overlap: a, hit: a / 2 }, { overlap: 1, hit: null }],
    generation: [{ overlap: a, hit: null }] });
  const records = [0.2, 0.4].map((a, sample) => ({ ...scored("full", 0, 0), id: `overlap sample ${sample}`, task: "overlap",
    part: "windows", p: 0.1, theta: 0.001, n_windows: 2, window_length: 16, layers: [layer(a), layer(a + 0.2)] }));
  assert.equal(overlapGroups(records).length, 1);
  const spec = windowsSpec(records, "overlap");
  const points = spec.lines.map((l) => l.points.map((p) => [p.x, Number(p.y.toFixed(6))]));
  assert.deepEqual(points, [[[-2, 0.3], [-1, 1]], [[-2, 0.5], [-1, 1]], [[-2, 0.4], [-1, 1]], [[0, 0.1]]]);
  assert.deepEqual([spec.lines[3].name, spec.lines[3].band], ["by chance", true]);
  assert.deepEqual(windowsSpec(records, "hit").lines[0].points.map((p) => p.x), [-2], "null is no point");
  assert.deepEqual(generationSpec(records, "hit").lines[0].points, []);
  assert.ok(svg(linesOption(spec, frame)).includes("mean of layers"));
});

test("overlap: questions by layer", () => {
  const layer = { other_question: { overlap: 0.1, hit: 0.2 }, question_last: { overlap: 0.9, hit: 0.8 },
    question_first: { overlap: 0.5, hit: null } };
  const records = [{ ...scored("full", 0, 0), task: "overlap", part: "questions", p: 0.1, theta: 0.001, layers: [layer, layer] }];
  const spec = questionsSpec(records, "overlap");
  assert.deepEqual(spec.lines.map((l) => [l.name, l.points.map((p) => p.y)]),
    [["question last", [0.9, 0.9]], ["question first", [0.5, 0.5]], ["another question", [0.1, 0.1]], ["by chance", [0.1]]]);
});

test("fidelity: means over passages, in at most 64 stretches", () => {
  const record = (policy: string, kl: number[]) => ({ ...scored(policy, 64, 0), task: "fidelity", length: 100, kl,
    agreement: kl.map(() => 1), nll: kl.map(() => 2) });
  const records = [record("full", [0, 0]), record("snapkv", [0.1, 0.3]), record("snapkv", [0.3, 0.5])];
  const [choice] = fidelityChoices(fidelityRecords(records));
  assert.deepEqual(fidelitySpec(choice, 0).lines.map((l) => [l.name, l.points.map((p) => [p.x, p.y])]),
    [["snapkv 64", [[1, 0.2], [2, 0.4]]]]);
  assert.deepEqual(fidelitySpec(choice, 2).lines.map((l) => l.name), ["full", "snapkv 64"]);
  const long = curve([record("snapkv", Array.from({ length: 1000 }, (_, i) => (i < 500 ? 0 : 1)))], "kl");
  assert.equal(long.length, 64);
  assert.equal(long[0].y + 2 * long[63].y, 2);
});

test("fidelity against budget: passages are the sample", () => {
  const record = (policy: string, budget: number, kl: number[]) => ({ ...scored(policy, budget, 0), task: "fidelity",
    length: 100, kl, agreement: kl.map(() => 1), nll: kl.map(() => 2) });
  const records = [record("full", 0, [0, 0]), record("snapkv", 64, [0.1, 0.3]), record("snapkv", 64, [0.3, 0.5]),
    record("snapkv", 128, [0.1, 0.1])];
  assert.ok(hasBudgets(records) && !hasBudgets(records.slice(0, 1)));
  const [choice] = fidelityChoices(fidelityRecords(records));
  const spec = fidelityBudgetSpec(choice, 0);
  assert.deepEqual(spec.lines.map((l) => l.name), ["snapkv"], "the full cache does not differ from itself");
  const [first, second] = spec.lines[0].points;
  assert.deepEqual([first.x, second.x], [64, 128]);
  assert.ok(Math.abs(first.y - 0.3) < 1e-12 && first.low === 0, "a divergence is not negative");
  assert.ok(Math.abs(first.high! - (0.3 + 12.706 * 0.1)) < 1e-3);
  assert.equal(second.low, undefined, "one passage has no interval");
  assert.deepEqual(fidelityBudgetSpec(choice, 2).lines.map((l) => [l.name, l.band ?? false]), [["full", true], ["snapkv", false]]);
});

test("a map of tasks and caches where there are many tasks", () => {
  const records = ["vt", "cwe", "fwe"].flatMap((ruler_task, i) => ["full", "snapkv"].map((policy) =>
    scored(policy, 64, policy === "full" || i === 0 ? 1 : 0, { task: "ruler", kind: undefined, ruler_task })));
  assert.ok(hasTaskMap(records) && !hasTaskMap(records.slice(0, 4)));
  const map = makeTaskMap(records);
  assert.deepEqual(map.tasks, ["vt", "cwe", "fwe", "all"]);
  assert.deepEqual(map.caches, ["full", "snapkv 64"]);
  const at = (x: number, y: number) => map.cells.find((c) => c.x === x && c.y === y)!;
  assert.deepEqual([at(1, 0).mean, at(1, 1).mean, at(3, 1).n], [1, 0, 3]);
  assert.ok(Math.abs(at(3, 1).mean - 1 / 3) < 1e-12);
  const picture = svg(taskMap(() => map).option(frame));
  for (const words of ["cwe", "snapkv 64", "33"]) assert.ok(picture.includes(words), words);
});

const results = [
  bench("full", { n_gen: 100, n_depth: 0, kv_mib: 1, kv_mib_peak: 1 }),
  bench("full", { n_gen: 100, n_depth: 4096, kv_mib: 8, kv_mib_peak: 8 }),
  bench("snapkv", { n_gen: 100, n_depth: 4096 }),
  bench("snapkv", { n_prompt: 4096, prefill_s: 2, linear_s: 1, attention_s: 0.5, pack_s: 0.1, score_s: 0.02, gather_s: 0.01 }),
];

test("bench: memory and latency by context, full beside snapkv", () => {
  assert.equal(seriesName(results[2], results), "snapkv 128");
  assert.equal(contextOf(results[2]), 4196);
  const memory = memorySpec(results, false);
  assert.deepEqual(memory.lines.map((l) => l.name), ["full", "snapkv 128: kept", "snapkv 128: peak while reading"]);
  assert.deepEqual(memory.lines[0].points.map((p) => [p.x, p.y]), [[100, 1 << 20], [4196, 8 << 20]]);
  assert.deepEqual(comparison(memory), { name: "snapkv 128", x: 4196, full: 8 << 20, compressed: 2 << 20,
    ratio: 4, low: 4, high: 4 });
  const times = comparison(latencySpec(results, false))!;
  assert.deepEqual([times.ratio, times.low.toFixed(4), times.high.toFixed(4)], [1, "0.3333", "3.0000"]);
  assert.equal(gainText(comparison(memory)!, "smaller", "larger"), "4x smaller");
  assert.equal(gainText(times, "faster", "slower"), "", "equal, and within the repetitions' range");
  assert.equal(gainText({ ...times, ratio: 0.5, low: 0.4, high: 0.6 }, "faster", "slower"), "2x slower");
  assert.equal(gainText({ ...times, ratio: 1.0004, low: 1.0004, high: 1.0004 }, "smaller", "larger"), "");
  assert.equal(comparison(promptSpec(results, false)), null, "no full cache to compare with");
  const latency = latencySpec(results, false);
  assert.deepEqual(latency.lines[0].points.map((p) => [p.x, p.y]), [[0, 0.02], [4096, 0.02]]);
  assert.deepEqual([latency.lines[0].points[0].low, latency.lines[0].points[0].high!.toFixed(6)], [0.01, "0.030000"]);
  assert.deepEqual(promptSpec(results, false).lines.map((l) => l.name), ["snapkv 128"]);
  const picture = svg(linesOption(latency, frame));
  for (const words of ["tokens in the context before", "time per token", "snapkv 128"]) {
    assert.ok(picture.includes(words), words);
  }
});

test("bench: prompts after others stand apart", () => {
  const turn = bench("snapkv", { n_prompt: 256, n_depth: 4096, kv_mib: 7 });
  const names = promptSpec([...results, turn], false).lines.map((l) => l.name);
  assert.deepEqual(names, ["snapkv 128", "snapkv 128, after 4,096"]);
  const kept = memorySpec([...results, turn], false).lines.flatMap((l) => l.points.map((p) => p.y));
  assert.ok(!kept.includes(7 << 20));
  assert.equal(memorySpec([turn], false).lines[0].points.length, 1, "where there is nothing else they are shown");
});

test("the parts of a prompt's time add up", () => {
  const parts = partsOf(results[3]);
  assert.ok(Math.abs(parts.reduce((sum, [, s]) => sum + s, 0) - 2) < 1e-12);
  assert.ok(svg(prefillParts(results).option(frame)).includes("everything else"));
});

// A prompt of 400 GFLOP/s at 1000 operations per byte, a decode of 20 GB/s at 2.
const measured = { machine_read_gbps: 40, machine_f32_gflops: 200, machine_bf16_gflops: 500, machine_int8_gops: 2000 };
const limited = [
  bench("snapkv", { ...measured, n_prompt: 4096, avg_ns: 10e9, gflops: 400, work_gflop: 4000, work_gb: 4,
    percent_of_limit: 80, limit: "compute", limit_s: 8, linear_products: "bf16", attention_products: "bf16" }),
  bench("full", { ...measured, n_gen: 32, n_depth: 4096, n_seq: 2, avg_ns: 2e9, gflops: 40, work_gflop: 80, work_gb: 40,
    machine_read_gbps: 50, percent_of_limit: 40, limit: "memory", limit_s: 0.8, linear_products: "int8",
    attention_products: "f32" }),
  bench("full", { n_gen: 32 }), // not measured
];

test("roofline: a point is a test, roofs are the machine's best", () => {
  const records = withLimits(limited);
  assert.equal(records.length, 2);
  assert.deepEqual(records.map(intensity), [1000, 2]);
  assert.deepEqual(roofs(records), { read: 50, products: [{ products: "f32", rate: 200 }, { products: "bf16", rate: 500 },
    { products: "int8", rate: 2000 }] });
  const without = records.map((r) => ({ ...r, machine_bf16_gflops: null }));
  assert.deepEqual(roofs(without).products.map((p) => p.products), ["f32", "int8"]);
  const { x, y } = extent(records);
  assert.ok(x[0] <= 2 / 1.5 && x[1] >= 1000 && y[0] <= 40 / 1.5 && y[1] > 2000);
  assert.ok(x[0] * 50 >= y[0], "the slope begins inside");
  assert.deepEqual(records.map(limitName), ["bf16 products", "memory"]);
  assert.equal(limitName({ ...records[0], linear_products: "int8" }), "int8 and bf16 products");
  assert.deepEqual(records.map(pointLabel), ["prompt 4,096", "decode at 4,096 × 2"]);
  assert.match(pointTooltip(records[1], "<full>"), /^&lt;full>: 32 tokens after 4,096 × 2<br><b>40%<\/b> of the limit by memory/);
});

test("roofline: no name covers another, a point, or a roof's name", () => {
  const wide = { ...frame, width: 1160, height: 480 };
  const many = [128, 256, 512, 1024, 2048].flatMap((n) => [0, 512].map((n_depth, i) =>
    ({ ...withLimits(limited)[0], n_prompt: n, n_depth, work_gflop: n * (4 + i), work_gb: 4, gflops: 180 + n / 100 + 8 * i })));
  for (const records of [many, [...many, ...many.map((r) => ({ ...r, gflops: r.gflops * 1.05 }))]]) {
    const places = [...pointPlaces(records, wide, (r) => `${pointLabel(r)}: 80%`, (r) => `${records.indexOf(r) + 1}`).values()];
    assert.equal(places.length, records.length);
    const shown = places.filter((p) => p.shows !== "nothing");
    assert.ok(shown.length >= 0.5 * records.length);
    const boxes = shown.map(({ x, y, text }) => ({ x, y, width: 6.8 * text.length, height: 15 }));
    const apart = (a: Box, b: Box) => a.x >= b.x + b.width || b.x >= a.x + a.width || a.y >= b.y + b.height || b.y >= a.y + a.height;
    boxes.forEach((a, i) => boxes.forEach((b, j) => assert.ok(i === j || apart(a, b), `${shown[i].text} meets ${shown[j].text}`)));
    assert.ok(boxes.every((box) => box.x >= 78 && box.x + box.width <= wide.width - 30), "inside the chart");
  }
  assert.ok([...pointPlaces(many, wide, pointLabel, () => "1").values()].filter((p) => p.shows === "name").length > 5, "most have their names");
});

test("roofline: the chart and its table say the same", () => {
  const records = withLimits(limited);
  const picture = svg(rooflinePicture(() => records, limited).option(frame));
  for (const words of ["prompt 4,096: 80%", "decode at 4,096 × 2: 40%", "memory: 50 GB/s", "bf16 products: 500 GFLOP/s",
    "int8 products: 2,000 GFLOP/s", "operations per byte of memory", "snapkv 128", "full"]) {
    assert.ok(picture.includes(words), words);
  }
  const narrow = svg(rooflinePicture(() => records, limited).option({ ...frame, width: 370 }));
  assert.ok(!narrow.includes("prompt 4,096: 80%") && />2<\/text>/.test(narrow), "points are numbered");
  const rows = rooflineTable(records, limited);
  assert.deepEqual(rows[1], ["1", "snapkv 128", "prompt of 4,096", "80%", "bf16 products", "400", "0.4", "1,000", "8 s", "10 s"]);
  assert.deepEqual(rows[2], ["2", "full", "32 tokens after 4,096 × 2", "40%", "memory", "40", "20", "2", "800 ms", "2 s"]);
});
