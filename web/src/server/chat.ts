// SPDX-License-Identifier: MIT
// One conversation: what the user does becomes requests, and what comes back becomes answers on the
// page. A message that nothing comes of goes back to where it was written.
import { count } from "../format";
import { el } from "../page";
import { ApiError, type Api } from "./api";
import type { Composer } from "./composer";
import { applyChunk, inputOf, newAnswer, newConversation, type Answer, type Conversation, type TextDocument, type Turn } from "./conversation";
import { firstPart, fitReport, type FitReport } from "./fit";
import { keptData, pieceTexts } from "./kept";
import { showKept, type Kept } from "./kept_view";
import { waitText } from "./numbers";
import { isBaseModel, kvRequests, requestBody, type Settings } from "./settings";
import { turnView, type TurnAction, type TurnView } from "./turn_view";
import type { Props, Snapshot } from "./types";

/** What the page does for the chat. */
export interface ChatHost {
  api: Api;
  props: Props;
  settings: Settings;
  composer: Composer;
  /** The snapshot in use. */
  inUse(): Snapshot | null;
  store(conversation: Conversation): void;
  /** A line above the composer; "" for none. */
  say(message: string): void;
  /** For screen readers alone. */
  tell(message: string): void;
  askForKey(message: string): void;
}

/** Milliseconds between two looks at what a request waits for. */
const kQueueMs = 1000;

const hasNothing = (answer: Answer, written: string) =>
  (answer.state === "failed" || answer.state === "stopped") && answer.text === written && answer.reasoning === "";

export class Chat {
  readonly element = el("div", { class: "log", role: "log", "aria-label": "Conversation", tabindex: "0", "aria-live": "off" });
  conversation: Conversation;
  private readonly empty: HTMLElement;
  private readonly kept = new WeakMap<Answer, Kept>();
  private views: TurnView[] = [];
  private running: AbortController | null = null;
  /** The turn that the message in the composer replaces. */
  private editing: number | null = null;

  constructor(private readonly host: ChatHost) {
    this.conversation = newConversation(host.props.model_alias);
    this.empty = isBaseModel(host.props)
      ? el("div", { class: "empty" }, el("h2", {}, "A base model: it continues texts"),
        el("p", {}, `${host.props.model_alias} has no chat template, so it answers no questions. Write the beginning of a text, or drop a ` +
          "document and write how to go on. A server started with --chat-template NAME offers a chat instead."))
      : el("div", { class: "empty" }, el("h2", {}, "Long prompts, small caches"),
        el("p", {}, "Write a message or drop a document. Each answer shows what of the prompt was kept, and what it cost."));
    this.drawAll();
  }

  /** Another conversation instead of this one, whose answer is stopped. */
  open(conversation: Conversation): void {
    this.stop();
    this.running = null;
    this.conversation = conversation;
    this.endEdit();
    this.drawAll();
    this.element.scrollTop = this.element.scrollHeight;
  }

  stop(): void {
    this.running?.abort();
  }

  get isRunning(): boolean {
    return this.running !== null;
  }

  endEdit(): void {
    this.editing = null;
    this.host.composer.edit("");
  }

  /** Whether a message fits with what comes before it, and with what is written of its answer. */
  async check(text: string, documents: TextDocument[], index = this.editing ?? this.conversation.turns.length,
      written = ""): Promise<FitReport> {
    const { api, settings } = this.host;
    const turn = this.newTurn(text, documents);
    const before = this.conversation.turns.slice(0, index);
    const input = inputOf({ ...this.conversation, turns: [...before, turn] }, index, written);
    let report: FitReport = { problem: "", note: "", keep: 0 };
    try {
      for (const { request } of turn.answers) {
        const fit = await api.fit(requestBody(settings, request, input));
        report = fitReport(fit, documents, index === 0 || turn.completes === true);
        if (report.problem !== "") break;
      }
    } catch (error) {
      this.checkKey(error);
      throw error;
    }
    return report;
  }

  async firstPart(document: TextDocument, n: number): Promise<TextDocument> {
    const { tokens } = await this.host.api.tokenize(document.text, false);
    return firstPart(document, pieceTexts(tokens), n);
  }

  async send(text: string, documents: TextDocument[]): Promise<void> {
    const { turns } = this.conversation;
    const index = this.editing ?? turns.length;
    const replaced = turns.splice(index);
    this.editing = null;
    turns.push(this.newTurn(text, documents));
    this.drawAll();
    await this.answer("", () => {
      turns.splice(index, turns.length, ...replaced);
      if (replaced.length > 0) this.edit(index, text, documents);
      else this.host.composer.restore(text, documents);
    });
  }

  private newTurn(text: string, documents: TextDocument[]): Turn {
    const { props, settings, inUse } = this.host;
    const answers = kvRequests(settings, inUse()?.kv !== undefined).map(newAnswer);
    return { text, documents, system: settings.system, answers, ...(isBaseModel(props) ? { completes: true } : {}) };
  }

  /** The last turn anew; with `written` the answer goes on from there. */
  private async again(written = ""): Promise<void> {
    const { turns } = this.conversation;
    const last = turns[turns.length - 1];
    const { problem } = await this.check(last.text, last.documents, turns.length - 1, written);
    if (problem !== "") return this.host.say(problem);
    const fresh = this.newTurn(last.text, last.documents);
    if (written !== "") {
      fresh.answers.splice(1);
      fresh.answers[0].text = written;
    }
    turns[turns.length - 1] = fresh;
    this.drawAll();
    await this.answer(written, () => (turns[turns.length - 1] = last));
  }

  /** Computes the answers of the last turn, one after the other: their times can be compared. `undo`:
   *  makes the conversation what it was, where nothing comes of it. */
  private async answer(written: string, undo: () => void): Promise<void> {
    const { conversation, host } = this;
    const { answers } = conversation.turns[conversation.turns.length - 1];
    const input = inputOf(conversation, conversation.turns.length - 1, written);
    const view = this.views[this.views.length - 1];
    const abort = new AbortController();
    this.running = abort;
    host.say("");
    host.store(conversation);
    this.drawState();
    this.element.scrollTop = this.element.scrollHeight;
    const [first] = answers;
    for (const [i, answer] of answers.entries()) {
      if (abort.signal.aborted) answer.state = "stopped";
      else await this.compute(answer, input, abort.signal, view);
      this.addKept(view, i, answer);
      view.update();
      if (hasNothing(first, written)) break;
    }
    if (this.running !== abort) return; // another conversation is on the page
    this.running = null;
    if (hasNothing(first, written)) {
      undo();
      this.drawAll();
      host.say(first.error ?? "Stopped before the answer began: nothing was added to the conversation.");
    }
    host.store(conversation);
    this.drawState();
    this.follow(true);
    host.tell(first.state === "done" ? "The answer is complete." : first.state === "failed" ? "" : "Stopped.");
  }

  private async compute(answer: Answer, input: ReturnType<typeof inputOf>, signal: AbortSignal, view: TurnView): Promise<void> {
    const began = performance.now();
    const { api, settings } = this.host;
    const watch = setInterval(() => void this.watchQueue(answer, view), kQueueMs);
    try {
      for await (const chunk of api.generate(requestBody(settings, answer.request, input), signal)) {
        const near = this.isNearEnd();
        applyChunk(answer, chunk, performance.now() - began);
        const positions = chunk.kv?.positions;
        if (positions && chunk.kv) {
          this.kept.set(answer, { data: keptData(positions, chunk.kv.tokens_before), positions, input,
            snapshot: answer.request.snapshot !== undefined });
        }
        view.update();
        this.follow(near);
      }
      if (answer.state !== "done") answer.state = "done";
    } catch (error) {
      if (signal.aborted) {
        answer.state = "stopped";
        return;
      }
      answer.state = "failed";
      answer.error = (error as Error).message;
      this.checkKey(error);
    } finally {
      clearInterval(watch);
      delete answer.waits;
    }
  }

  /** Says what an answer waits for that the server has not begun with. */
  private async watchQueue(answer: Answer, view: TurnView): Promise<void> {
    if (answer.state !== "waiting") return;
    const load = await this.host.api.load().catch(() => null); // the request itself will tell what is wrong
    if (!load || answer.state !== "waiting") return;
    answer.waits = waitText(load);
    view.update();
  }

  private checkKey(error: unknown): void {
    if (error instanceof ApiError && error.status === 401) this.host.askForKey(error.message);
  }

  private showSource(passage: string): void {
    if (!this.views.some((view) => view.showPassage(passage))) {
      this.host.say("This passage is part of a message, not of a document.");
    }
  }

  private addKept(view: TurnView, i: number, answer: Answer): void {
    const kept = this.kept.get(answer);
    if (kept) view.answers[i].addKept((box) => void showKept(box, kept, this.host.api));
  }

  private drawAll(): void {
    const { turns } = this.conversation;
    this.views = turns.map((turn) => {
      const view = turnView(turn, (passage) => this.showSource(passage));
      turn.answers.forEach((answer, i) => this.addKept(view, i, answer));
      return view;
    });
    this.element.replaceChildren(...(turns.length === 0 ? [this.empty] : this.views.map((view) => view.element)));
    this.drawState();
  }

  /** What depends on whether an answer is computed. */
  private drawState(): void {
    this.host.composer.setRunning(this.isRunning);
    this.drawActions();
  }

  private drawActions(): void {
    this.views.forEach((view, i) => view.setActions(this.running ? [] : this.actionsOf(i)));
  }

  private actionsOf(i: number): TurnAction[] {
    const { turns } = this.conversation;
    const { completes, answers } = turns[i];
    const last = i + 1 === turns.length;
    const more: TurnAction = { name: "more", label: "Go on", act: () => void this.again(answers[0].text) };
    return [
      ...(last && completes ? [more] : []),
      ...(last ? [{ name: "regenerate", label: "Regenerate", act: () => void this.again() }] : []),
      { name: "edit", label: "Edit", act: () => this.edit(i) },
      { name: "delete", label: "Delete", sure: "Really delete?", act: () => this.erase(i) },
    ];
  }

  private edit(i: number, text = this.conversation.turns[i].text, documents = this.conversation.turns[i].documents): void {
    const { turns } = this.conversation;
    const after = turns.length - 1 - i;
    this.editing = i;
    const what = after === 0 ? "its answer" : `its answer and the ${after === 1 ? "message" : `${count(after)} messages`} after it`;
    this.host.composer.edit(`Message ${i + 1}: sending it again replaces ${what}.`, text, documents);
  }

  private erase(i: number): void {
    this.conversation.turns.splice(i, 1);
    this.endEdit();
    this.drawAll();
    this.host.store(this.conversation);
    this.host.tell("The message and its answer are deleted.");
    this.host.composer.focus();
  }

  private isNearEnd(): boolean {
    const { scrollHeight, scrollTop, clientHeight } = this.element;
    return scrollHeight - scrollTop - clientHeight < 80;
  }

  /** Keeps the end in view for whoever was there. */
  private follow(near: boolean): void {
    if (near) requestAnimationFrame(() => (this.element.scrollTop = this.element.scrollHeight));
  }
}
