// SPDX-License-Identifier: MIT
// One message of the user, with its answer or with two answers side by side.
import { bytes, count } from "../format";
import { el } from "../page";
import { answerView, type AnswerView } from "./answer_view";
import type { Answer, TextDocument, Turn } from "./conversation";
import { comparison } from "./numbers";
import { kFull } from "./settings";
import { showPassage } from "./sources_view";

export interface TurnView {
  element: HTMLElement;
  answers: AnswerView[];
  /** What can be done with the turn; nothing while an answer is computed. */
  setActions(actions: TurnAction[]): void;
  update(): void;
  /** Opens the document that has this passage, and marks it; false if none has. */
  showPassage(passage: string): boolean;
}

export interface TurnAction {
  /** Of the button, for tests and styles. */
  name: string;
  label: string;
  act(): void;
  /** What the button says before the second press, which acts. */
  sure?: string;
}

function actionButton({ name, label, act, sure }: TurnAction): HTMLElement {
  const button = el("button", { type: "button", class: "quiet", "data-do": name }, label);
  button.addEventListener("click", () => {
    if (!sure || button.dataset.sure === "yes") return act();
    button.dataset.sure = "yes";
    button.textContent = sure;
  });
  return button;
}

export function documentSize(document: TextDocument): string {
  return document.tokens === undefined ? bytes(new Blob([document.text]).size) : `${count(document.tokens)} tokens`;
}

function titleOf({ request }: Answer): string {
  if (request.snapshot) return `Snapshot ${request.snapshot}`;
  return request.policy === kFull ? "Full cache" : `${request.policy ?? "Answer"}`;
}

const kShown = 20_000; // characters of a document

function shownDocument(document: TextDocument): HTMLElement {
  const cut = document.text.length > kShown ? `${document.text.slice(0, kShown)} …` : document.text;
  return el("details", { class: "document" },
    el("summary", {}, `${document.name} `, el("span", {}, documentSize(document))),
    el("div", { class: "document-text", tabindex: "0", role: "region", "aria-label": document.name }, cut));
}

/** `showSource` gets the text of a passage that an answer was taken from. */
export function turnView(turn: Turn, showSource: (passage: string) => void): TurnView {
  const documents = turn.documents.map(shownDocument);
  const user = el("div", { class: "user" }, ...documents,
    ...(turn.text ? [el("p", {}, turn.text)] : []));
  const answers = turn.answers.map((answer) => answerView(answer, titleOf(answer), turn.completes === true, showSource));
  const line = el("p", { class: "comparison" });
  const actions = el("div", { class: "actions" });
  const element = el("section", { class: "turn", "aria-label": "Message and answer" }, user, line,
    el("div", { class: answers.length > 1 ? "answers both" : "answers" }, ...answers.map((a) => a.element)), actions);
  const update = () => {
    answers.forEach((a) => a.update());
    line.textContent = turn.answers.length > 1 ? comparison(turn.answers[0], turn.answers[1]) : "";
    line.hidden = line.textContent === "";
  };
  update();
  const showPassageHere = (passage: string) => documents.some((details, i) => {
    if (!turn.documents[i].text.includes(passage)) return false;
    (details as HTMLDetailsElement).open = true;
    return showPassage(details.querySelector(".document-text")!, turn.documents[i].text, passage, kShown);
  });
  return { element, answers, update, showPassage: showPassageHere,
    setActions: (all) => actions.replaceChildren(...all.map(actionButton)) };
}
