// SPDX-License-Identifier: MIT
// The charts of an inspect page and the data they show.
import assert from "node:assert/strict";
import { test } from "node:test";
import { resample, paintRows } from "../src/bitmap";
import { columnBegin, columnOf, parseData } from "../src/data";
import { cacheMatrix, keptRange, origins, shape } from "../src/inspect/cache_matrix";
import { keptMap } from "../src/inspect/kept_map";
import { columnsOf, rowChoices, scores, scoreTop } from "../src/inspect/scores";
import { brightest, brightestToken, shading, shares, spotlightChart, spotlightName, tokenValues } from "../src/inspect/spotlight";
import { blockEnds, runsOf } from "../src/inspect/text_runs";
import { frame, sample } from "./sample";

test("a block of an unknown kind is an error", () => {
  assert.throws(() => parseData('{"kind": "other"}'), /kind "other"/);
  assert.throws(() => parseData("not JSON"));
  assert.equal(parseData('{"kind": "eval", "records": []}').kind, "eval");
});

test("columns hold every token once", () => {
  for (const [n, columns] of [[1000, 7], [5, 5], [131072, 1024], [1025, 1024]]) {
    assert.equal(columnBegin(0, columns, n), 0);
    assert.equal(columnBegin(columns, columns, n), n);
    for (let token = 0; token < n; token += Math.max(1, Math.floor(n / 997))) {
      const c = columnOf(token, columns, n);
      assert.ok(columnBegin(c, columns, n) <= token && token < columnBegin(c + 1, columns, n));
    }
  }
});

test("resampling keeps spikes and means, zoomed or not", () => {
  const row = [0, 0, 8, 0];
  assert.deepEqual([...resample(row, 2, 0, 4, "max")], [0, 8]);
  assert.deepEqual([...resample(row, 2, 0, 4, "mean")], [0, 4]);
  assert.deepEqual([...resample(row, 4, 2, 4, "max")], [8, 8, 0, 0]);
});

test("rows of a map become rows of pixels", () => {
  const pixels = paintRows(2, 3, 4, () => false, (r) => (x) => (r === 1 && x === 2 ? [1, 2, 3] : null));
  const at = (x: number, y: number) => [...pixels.slice((y * 3 + x) * 4, (y * 3 + x) * 4 + 4)];
  assert.deepEqual(at(2, 3), [1, 2, 3, 255]);
  assert.deepEqual(at(2, 2), [1, 2, 3, 255]);
  assert.deepEqual(at(2, 1), [0, 0, 0, 0]);
  assert.deepEqual(at(0, 3), [0, 0, 0, 0]);
});

test("the kept map names the cell under the pointer", () => {
  const picture = keptMap(sample());
  assert.equal(picture.describe!(10.5, 0), "layer 0, KV head 0\ntoken 10: “␣w10”\nkept");
  assert.equal(picture.describe!(5, 3), "layer 1, KV head 1\ntoken 5: “␣w5”\nnot kept");
  const option = picture.option(frame) as { xAxis: { max: number; name: string }; yAxis: { data: unknown[] } };
  assert.equal(option.xAxis.max, 40);
  assert.match(option.xAxis.name, /tokens/);
  assert.equal(option.yAxis.data.length, 4);
});

test("the cache matrix tells shapes, bytes and where entries come from", () => {
  const data = sample();
  assert.equal(shape(data, "40"), "[2, 2, 40, 64]");
  assert.deepEqual(keptRange(data), [8, 8]);
  assert.match(cacheMatrix(data).caption(), /40 KiB.*8 KiB.*5x smaller/s);
  // row 0 keeps 10 to 13 and 36 to 39: the first half of its entries comes from a quarter of the way
  const from = origins(data.kept[0], 40, 8, 8);
  assert.deepEqual([...from].map((x) => Math.floor(x * 40)), [10, 11, 12, 13, 36, 37, 38, 39]);
  assert.equal(origins(data.kept[0], 40, 16, 16)[8], -1, "nothing behind the last entry");
});

test("scores are the highest of the chosen heads", () => {
  const data = sample();
  const choices = rowChoices(data);
  assert.deepEqual(choices.map((c) => c.label).slice(0, 3),
    ["all layers and heads", "layer 0, all heads", "layer 0, KV head 0"]);
  const all = columnsOf(data, choices[0].rows);
  assert.equal(all.score[12], 0.1);
  assert.equal(all.kept[11], 0.5, "two of four rows keep token 11");
  const one = columnsOf(data, [0]);
  assert.equal(one.score[12], 0.001);
  assert.equal(one.kept[11], 1);
});

test("a first token that takes most attention does not flatten the rest", () => {
  assert.deepEqual(scoreTop([0.5, 0.1, 0.05, 0.3], 3), { top: 0.1 * 1.15, cut: true });
  assert.equal(scoreTop([0.1, 0.09, 0.1], 2).cut, false);
  const data = sample();
  const picture = scores(data, rowChoices(data)[0]);
  assert.match(picture.caption(), /axis ends above/);
  assert.match(picture.describe!(0, 0)!, /50% of the attention/);
});

test("a spotlight's shares add up", () => {
  const data = sample();
  const [s] = data.spotlights;
  const { first, own, rest } = shares(data, s);
  assert.ok(Math.abs(first - 0.4) < 1e-9 && Math.abs(own - 0.4) < 1e-9 && Math.abs(rest - 0.2) < 1e-9);
  assert.equal(brightest(data, s), 0.2);
  assert.equal(brightestToken(data, s), 12);
  assert.equal(shading(data, s, 12, 13)[0], 0.2);
  assert.match(spotlightName(data, s), /last 4 tokens/);
  assert.match(spotlightChart(data, s).caption(), /40% goes to the first token/);
});

test("binned attention is spread over the tokens that are not known alone", () => {
  const data = { ...sample(), n_columns: 4 };
  const s = { ...data.spotlights[0], columns: [100_000, 500_000, 0, 400_000], positions: [12], values: [320_000] };
  assert.equal(tokenValues(data, s).get(12), 0.32);
  const levels = shading(data, s, 10, 20);
  assert.equal(levels[2], 0.32);
  assert.ok(Math.abs(levels[3] - 0.18 / 9) < 1e-12);
  assert.ok(Math.abs(levels.reduce((a, b) => a + b) - 0.5) < 1e-9);
});

test("text is cut into blocks and runs without losing a token", () => {
  const pieces = Array.from({ length: 5000 }, (_, i) => (i % 100 === 99 ? "\n" : "x"));
  const ends = blockEnds(pieces);
  assert.equal(ends[ends.length - 1], pieces.length);
  assert.ok(ends.slice(0, -1).every((end) => pieces[end - 1] === "\n"));
  const unbroken = blockEnds(new Array(10_000).fill("x"));
  assert.equal(unbroken[unbroken.length - 1], 10_000);
  const levels = Float64Array.from([0, 0, 1, 0.5, 0, 0]);
  const runs = runsOf(levels, 0, 6, (i) => i === 5);
  assert.deepEqual(runs.map((r) => [r.begin, r.end]), [[0, 2], [2, 3], [3, 4], [4, 5], [5, 6]]);
});
