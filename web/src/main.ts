// SPDX-License-Identifier: MIT
// Reads the data block and builds the page of its kind.
import { benchPage } from "./bench/bench_page";
import { parseData } from "./data";
import { evalPage } from "./eval/eval_page";
import { inspectPage } from "./inspect/inspect_page";
import { el } from "./page";
import "./styles.css";

try {
  const data = parseData(document.getElementById("data")!.textContent ?? "");
  if (data.kind === "inspect") inspectPage(data);
  else if (data.kind === "eval") evalPage(data);
  else benchPage(data);
} catch (error) {
  document.getElementById("page")!.append(
    el("p", { class: "failure" }, `This page can't be drawn: ${(error as Error).message}`));
  throw error;
}
