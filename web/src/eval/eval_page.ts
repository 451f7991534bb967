// SPDX-License-Identifier: MIT
// The page of `snapkv eval`: the records of a run as charts and a table.
import type { EvalData, EvalRecord } from "../data";
import { count, plural } from "../format";
import { linesPicture, type LinesSpec } from "../lines";
import { addCard, addChartCard, addChoice, addFooter, addHeader, addTiles, table } from "../page";
import { distinct, groupBy } from "../stats";
import { lengthOf, taskName } from "./configurations";
import { fidelityBudgetSpec, fidelityChoices, fidelityRecords, fidelitySpec, hasBudgets, kFidelityMeasures } from "./fidelity";
import { gridChoices, hasGrid, makeGrid, needleGrid } from "./needle_grid";
import { generationSpec, kMeasures, overlapGroups, overlapRecords, questionsSpec, windowsSpec,
  type Measure } from "./overlap";
import { hasTaskMap, makeTaskMap, taskMap } from "./task_map";
import { qualitySpec, qualityTable, selections, type Scored } from "./quality";

function addQuality(records: Scored[]): void {
  const choices = selections(records, taskName);
  let chosen = choices[0];
  const { card, redraw } = addChartCard(linesPicture(() => qualitySpec(chosen)));
  if (choices.length < 2) return;
  addChoice(card, { label: "Of", options: choices.map((c) => c.label), chosen: 0, choose: (i) => {
    chosen = choices[i];
    redraw();
  } });
}

// Adds a grid for each task that varies lengths and depths.
function addGrids(records: Scored[]): void {
  const tasks = groupBy(records.filter(hasGrid), taskName);
  for (const [task, group] of tasks) {
    const { choices, chosen } = gridChoices(group);
    let grid = makeGrid(choices[chosen].records);
    const picture = needleGrid(() => grid);
    if (tasks.size > 1) {
      picture.title += `: ${task}`;
      picture.name += `-${task.replace(/[^a-z0-9]+/gi, "-")}`;
    }
    const { card, redraw } = addChartCard(picture);
    if (choices.length < 2) continue;
    addChoice(card, { label: "Show", options: choices.map((c) => c.label), chosen, choose: (i) => {
      grid = makeGrid(choices[i].records);
      redraw();
    } });
  }
}

function addTaskMap(records: Scored[]): void {
  const lengths = distinct(records.map(lengthOf).filter((n) => n !== undefined)).sort((a, b) => a! - b!);
  let map = makeTaskMap(records);
  const { card, redraw } = addChartCard(taskMap(() => map));
  if (lengths.length < 2) return;
  const options = ["all lengths", ...lengths.map((n) => `prompts of ${plural(n!, "token")}`)];
  addChoice(card, { label: "Of", options, chosen: 0, choose: (i) => {
    map = makeTaskMap(i === 0 ? records : records.filter((r) => lengthOf(r) === lengths[i - 1]));
    redraw();
  } });
}

function addTable(records: Scored[]): void {
  const card = addCard("quality-table", "All configurations", null);
  const several = distinct(records.map(taskName)).length > 1;
  const column = (r: Scored) => {
    const length = lengthOf(r);
    return several || length === undefined ? taskName(r) : plural(length, "token");
  };
  card.body.append(table(qualityTable(records, column), "All configurations"));
  card.setCaption("Mean score and its 95% Wilson interval; the last column is the size of the kept entries as a " +
    "share of a full cache.");
}

function addOverlap(records: EvalRecord[]): void {
  const add = (group: EvalRecord[], make: (r: EvalRecord[], m: Measure) => LinesSpec) => {
    let { measure } = kMeasures[0];
    const { card, redraw } = addChartCard(linesPicture(() => make(group, measure)));
    addChoice(card, { label: "Measure", options: kMeasures.map((m) => m.label), chosen: 0, choose: (i) => {
      measure = kMeasures[i].measure;
      redraw();
    } });
  };
  for (const group of overlapGroups(overlapRecords(records, "windows"))) {
    add(group.records, windowsSpec);
    add(group.records, generationSpec);
  }
  for (const group of overlapGroups(overlapRecords(records, "questions"))) add(group.records, questionsSpec);
}

function addFidelity(all: EvalRecord[]): void {
  const records = fidelityRecords(all);
  if (records.length === 0) return;
  const choices = fidelityChoices(records);
  const add = (make: typeof fidelitySpec) => {
    let chosen = choices[0], measure = 0;
    const { card, redraw } = addChartCard(linesPicture(() => make(chosen, measure)));
    addChoice(card, { label: "Measure", options: kFidelityMeasures.map((m) => m.label), chosen: 0, choose: (i) => {
      measure = i;
      redraw();
    } });
    if (choices.length < 2) return;
    addChoice(card, { label: "Of", options: choices.map((c) => c.label), chosen: 0, choose: (i) => {
      chosen = choices[i];
      redraw();
    } });
  };
  if (hasBudgets(records)) add(fidelityBudgetSpec);
  add(fidelitySpec);
}

// Overlap measures attention with the full cache; nothing is compressed there.
function titleOf(records: EvalRecord[]): string {
  return records.every((r) => r.task === "overlap") ? "What the attention of a prompt tells of its answer"
    : "Quality of the compressed cache";
}

export function evalPage(data: EvalData): void {
  const { records } = data;
  if (records.length === 0) throw new Error("the run has no records");
  const scored = records.filter((r): r is Scored => typeof r.score === "number");
  const models = distinct(records.map((r) => r.model.replace(/^.*\//, "")));
  addHeader(titleOf(records), `${distinct(records.map(taskName)).join("; ")} on ${models.join(", ")}.`);
  const lengths = records.map((r) => r.n_prompt).filter((n) => typeof n === "number");
  const counted = (n: number, noun: string) => ({ value: count(n), label: n === 1 ? noun : `${noun}s` });
  addTiles([
    counted(distinct(records.map((r) => r.id)).length, "prompt"),
    counted(distinct(records.map((r) => JSON.stringify(r.configuration))).length, "cache configuration"),
    { value: count(lengths.reduce((a, b) => Math.max(a, b), 0)), label: "tokens in the longest prompt" },
  ]);
  if (scored.length > 0) {
    if (scored.some((r) => r.configuration.policy !== "full")) addQuality(scored);
    if (hasTaskMap(scored)) addTaskMap(scored);
    addGrids(scored);
    addTable(scored);
  }
  addFidelity(records);
  addOverlap(records);
  addFooter(`snapkv ${data.version} · ${models.join(", ")} · ${distinct(records.map((r) => String(r.backend))).join("; ")}`);
}
