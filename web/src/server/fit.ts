// SPDX-License-Identifier: MIT
// Whether a message fits into the context, in the user's words: told before anything is sent.
import { count } from "../format";
import type { TextDocument } from "./conversation";
import type { Fit } from "./types";

/** What is said of a message; `keep`: tokens of its last document that would fit, 0 for none. */
export interface FitReport {
  problem: string;
  note: string;
  keep: number;
}

/** Tokens that are left for the question and the answer when a document is cut to what fits. */
export function room(fit: Fit): number {
  return Math.min(256, Math.floor(fit.n_ctx / 8));
}

function limitText(fit: Fit): string {
  return fit.limit === "memory"
    ? `the server's memory for caches holds prompts of ${count(fit.most_prompt_tokens)}`
    : `the context holds ${count(fit.n_ctx)}, the answer included`;
}

/** What would make room, beside a shorter text. */
function advice(fit: Fit): string {
  if (fit.limit === "memory") return "A server with a larger --kv-memory could read it.";
  return fit.n_ctx_train > fit.n_ctx
    ? `A server started with -c ${fit.n_ctx_train} could read ${count(fit.n_ctx_train)}, which this model was trained for.`
    : "";
}

/** Those that say something, as one text. */
export const joined = (...sentences: string[]) => sentences.filter((s) => s !== "").join(" ");

/** The problems that there are, each in a line of its own: server and browser end theirs without a full stop. */
export const listed = (...problems: string[]) => problems.filter((s) => s !== "").join("\n");

/** `documents`: those of the message, of which the last one was added last; `isFirst`: no turn comes before. */
export function fitReport(fit: Fit, documents: TextDocument[], isFirst: boolean): FitReport {
  const report: FitReport = { problem: "", note: "", keep: 0 };
  const left = fit.most_prompt_tokens - fit.prompt_tokens;
  const last = documents[documents.length - 1];
  if (fit.fits) {
    if (last && left < room(fit)) report.note = `${count(left)} tokens are left for the question and its answer.`;
    return report;
  }
  if (!last) {
    report.problem = joined(`This message does not fit: with ${isFirst ? "what comes before it" : "the conversation before it"} ` +
      `it has ${count(fit.prompt_tokens)} tokens, and ${limitText(fit)}.`,
    isFirst ? "Shorten it." : "Shorten it, delete earlier messages, or begin a new conversation.", advice(fit));
    return report;
  }
  const own = last.tokens ?? 0;
  report.keep = Math.max(0, Math.min(own - 1, own + left - room(fit)));
  report.problem = joined(`“${last.name}” does not fit: it has ${count(own)} tokens, ${count(fit.prompt_tokens)} with the rest of ` +
    `the message${isFirst ? "" : " and the conversation"}, and ${limitText(fit)}.`,
  report.keep > 0 ? `${count(report.keep)} of its tokens would fit, with ${count(room(fit))} left for the question and the answer.`
    : isFirst ? "Remove another document." : "A new conversation has more room.",
  advice(fit));
  return report;
}

/** The beginning of a document: the texts of its first `n` tokens. */
export function firstPart(document: TextDocument, pieces: string[], n: number): TextDocument {
  const text = pieces.slice(0, n).join("").trimEnd();
  return { name: `${document.name}, first ${count(n)} tokens`, text };
}
