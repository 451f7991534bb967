// SPDX-License-Identifier: MIT
// node compare.mjs RENDER TEMPLATES CONVERSATIONS DIFFERENCES: renders every template with every
// conversation with @huggingface/jinja and compares the texts with those of RENDER
// (render_all.cpp). Texts must be equal, or both must be errors. The pairs that DIFFERENCES lists,
// by reason, must differ.
import { execFileSync } from "node:child_process";
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { Template } from "@huggingface/jinja";

const [render, templates, conversationsFile, differencesFile] = process.argv.slice(2);
const conversations = JSON.parse(readFileSync(conversationsFile, "utf8"));
const ours = JSON.parse(execFileSync(render, [templates, conversationsFile], { maxBuffer: 1 << 28 }));
const reasons = JSON.parse(readFileSync(differencesFile, "utf8"));
const known = new Map(Object.entries(reasons).flatMap(([reason, cases]) => cases.map((name) => [name, reason])));

/** What the oracle makes of a template: { text } or { error }. */
function expected(source, variables) {
  try {
    return { text: new Template(source).render(structuredClone(variables)) };
  } catch (e) {
    return { error: String(e.message ?? e) };
  }
}

const counts = { equal: 0, "errors in both": 0, "errors of the oracle alone": 0, "known differences": 0 };
const problems = [];
for (const file of readdirSync(templates).sort()) {
  const source = readFileSync(join(templates, file), "utf8");
  for (const [conversation, variables] of Object.entries(conversations)) {
    const name = `${file} ${conversation}`;
    const want = expected(source, variables);
    const got = ours[file][conversation];
    let outcome = "equal";
    if (want.error !== undefined) {
      // @huggingface/jinja lacks the construct; templates_test compares such texts with
      // transformers.
      outcome = got.error !== undefined ? "errors in both" : "errors of the oracle alone";
    } else if (got.text !== want.text) {
      outcome = "known differences";
      if (!known.has(name)) {
        problems.push(`${name}:\n  expected ${JSON.stringify(want)}\n  got      ${JSON.stringify(got)}`);
      }
    }
    if (known.has(name) && outcome !== "known differences") {
      problems.push(`${name} is listed as different (${known.get(name)}), but is not`);
    }
    counts[outcome] += 1;
    known.delete(name);
  }
}
for (const name of known.keys()) problems.push(`${name} is listed as different, but was not tried`);
console.log(Object.entries(counts).map(([outcome, n]) => `${n} ${outcome}`).join(", "));
if (problems.length > 0) {
  console.error(problems.join("\n"));
  process.exit(1);
}
