// SPDX-License-Identifier: MIT
// The chat: turns the user's actions into requests, and the responses into answers on the page.
import { count } from "../format";
import { el } from "../page";
import { download } from "../save";
import { Api, ApiError } from "./api";
import { composer, type Composer } from "./composer";
import { applyChunk, exportJson, messagesOf, newAnswer, type Answer, type Conversation, type TextDocument } from "./conversation";
import { keptData } from "./kept";
import { showKept, type Kept } from "./kept_view";
import { kvRequests, requestBody, snapshotBody, kFull, type Settings } from "./settings";
import { settingsView } from "./settings_view";
import { snapshotsView, type SnapshotsView } from "./snapshots_view";
import { keep } from "./store";
import { turnView, type TurnView } from "./turn_view";
import type { Props } from "./types";

export class App {
  private readonly log = el("div", { class: "log", role: "log", "aria-label": "Conversation", tabindex: "0", "aria-live": "off" });
  private readonly empty = el("div", { class: "empty" });
  private readonly status = el("p", { class: "spoken", role: "status" });
  private readonly notice = el("p", { class: "error notice", role: "alert" });
  private readonly composer: Composer;
  private readonly snapshots: SnapshotsView | null;
  private readonly compare = el("input", { type: "checkbox", id: "compare" });
  private readonly chosen = el("p", { class: "details chosen" });
  private readonly kept = new WeakMap<Answer, Kept>();
  private turns: TurnView[] = [];
  private running: AbortController | null = null;

  constructor(
    private readonly api: Api, private readonly props: Props, private readonly settings: Settings,
    private readonly conversation: Conversation, private readonly askForKey: (message: string) => void,
  ) {
    this.snapshots = props.has_snapshots ? snapshotsView(api, settings, () => this.changed()) : null;
    this.composer = composer({
      send: (text, documents) => void this.send(text, documents),
      stop: () => this.running?.abort(),
      countTokens: (text) => api.countTokens(text),
      makeSnapshot: props.has_snapshots ? (document, name) => this.makeSnapshot(document, name) : null,
    });
    this.compare.checked = settings.compare;
    this.compare.addEventListener("change", () => {
      settings.compare = this.compare.checked;
      this.changed();
    });
    this.composer.options.append(el("label", { for: "compare" }, this.compare, "Full cache beside it"));
  }

  mount(root: HTMLElement): void {
    const { model_alias, backend, build_info, default_generation_settings } = this.props;
    const button = (name: string, label: string, act: () => void) => {
      const b = el("button", { type: "button", "data-do": name }, label);
      b.addEventListener("click", act);
      return b;
    };
    const aside = el("aside", { id: "settings", "aria-label": "Settings" },
      ...(this.snapshots ? [this.snapshots.element] : []),
      ...settingsView(this.props, this.settings, () => this.changed()));
    const toggle = button("settings", "Settings", () => {
      const open = document.body.classList.toggle("settings-open");
      toggle.setAttribute("aria-expanded", String(open));
    });
    toggle.setAttribute("aria-controls", "settings");
    toggle.setAttribute("aria-expanded", String(window.innerWidth > 1000));
    document.body.classList.toggle("settings-open", window.innerWidth > 1000);
    root.replaceChildren(
      el("header", { class: "top" },
        el("div", {}, el("h1", {}, model_alias),
          el("p", {}, `${build_info} · ${count(default_generation_settings.n_ctx)} tokens of context`,
            el("span", { class: "backend" }, ` · ${backend}`))),
        el("nav", { "aria-label": "Conversation" }, button("new", "New", () => this.clear()),
          button("export", "Export", () => this.export()), toggle)),
      el("main", { class: "chat" }, this.log,
        el("div", { class: "bottom" }, this.notice, this.chosen, this.composer.element, this.status)),
      aside);
    this.notice.hidden = true;
    this.empty.append(el("h2", {}, "Long prompts, small caches"),
      el("p", {}, "Write a message or drop a document. Each answer shows what of the prompt was kept, and what it cost."));
    for (const turn of this.conversation.turns) this.addTurn(turnView(turn));
    this.draw();
    this.changed();
    void this.snapshots?.refresh();
    this.listen();
    this.log.scrollTop = this.log.scrollHeight;
    this.composer.focus();
  }

  private listen(): void {
    window.addEventListener("keydown", (event) => {
      if (event.key === "Escape" && this.running) this.running.abort();
    });
    const drags = (event: DragEvent) => event.dataTransfer?.types.includes("Files") ?? false;
    window.addEventListener("dragover", (event) => {
      if (!drags(event)) return;
      event.preventDefault();
      document.body.classList.add("dropping");
    });
    window.addEventListener("dragleave", (event) => {
      if (event.relatedTarget === null) document.body.classList.remove("dropping");
    });
    window.addEventListener("drop", (event) => {
      document.body.classList.remove("dropping");
      if (!drags(event)) return;
      event.preventDefault();
      void this.composer.addFiles([...event.dataTransfer!.files]);
    });
  }

  /** Called when a setting has changed. */
  private changed(): void {
    const { settings } = this;
    this.compare.disabled = settings.snapshot !== "" || settings.policy === kFull;
    this.compare.parentElement!.title = settings.snapshot
      ? "A snapshot holds one cache only: there is no full one to compare with"
      : settings.policy === kFull ? "The policy is full already" : "";
    this.chosen.textContent = settings.snapshot ? `The conversation is about the snapshot ${settings.snapshot}.` : "";
    this.chosen.hidden = !settings.snapshot;
    keep("settings", settings);
  }

  private addTurn(view: TurnView): void {
    this.turns.push(view);
    this.log.append(view.element);
  }

  /** Draws the parts that depend on the whole conversation. */
  private draw(): void {
    this.composer.setRunning(this.running !== null);
    if (this.turns.length === 0) this.log.append(this.empty);
    else this.empty.remove();
    this.turns.forEach((view, i) => {
      const last = i + 1 === this.turns.length && !this.running;
      if (!last) return view.actions.replaceChildren();
      const again = el("button", { type: "button", class: "quiet", "data-do": "regenerate" }, "Regenerate");
      again.addEventListener("click", () => void this.regenerate());
      view.actions.replaceChildren(again);
    });
  }

  private store(): void {
    if (!keep("conversation", this.conversation)) {
      this.say("The conversation is too large for this browser's storage: it is lost when the page is closed. Export saves it.");
    }
  }

  private say(message: string): void {
    this.notice.textContent = message;
    this.notice.hidden = message === "";
  }

  private clear(): void {
    this.running?.abort();
    this.conversation.turns = [];
    this.turns = [];
    this.log.replaceChildren();
    this.say("");
    this.store();
    this.draw();
    this.composer.focus();
  }

  private export(): void {
    download(new Blob([exportJson(this.conversation, this.settings, this.props)], { type: "application/json" }),
      "snapkv-conversation.json");
  }

  private async send(text: string, documents: TextDocument[]): Promise<void> {
    this.conversation.turns.push({ text, documents, system: this.settings.system, answers: [] });
    await this.answer();
  }

  private async regenerate(): Promise<void> {
    this.turns.pop()!.element.remove();
    await this.answer();
  }

  /** Computes the answers of the last turn one after another, so that their times can be compared. */
  private async answer(): Promise<void> {
    const index = this.conversation.turns.length - 1;
    const turn = this.conversation.turns[index];
    turn.answers = kvRequests(this.settings).map(newAnswer);
    const view = turnView(turn);
    this.addTurn(view);
    const abort = new AbortController();
    this.running = abort;
    this.say("");
    this.draw();
    this.log.scrollTop = this.log.scrollHeight;
    const messages = messagesOf(this.conversation, index);
    for (const [i, answer] of turn.answers.entries()) {
      if (abort.signal.aborted) answer.state = "stopped";
      else await this.compute(answer, messages, abort.signal, view);
      const kept = this.kept.get(answer);
      if (kept) view.answers[i].addKept((box) => void showKept(box, kept, this.api));
      view.update();
    }
    if (this.running === abort) {
      this.running = null;
      this.store();
      this.draw();
      this.follow(true);
    }
    const [first] = turn.answers;
    this.status.textContent = first.state === "done" ? "The answer is complete." : first.state === "failed" ? "" : "Stopped.";
  }

  private async compute(answer: Answer, messages: ReturnType<typeof messagesOf>, signal: AbortSignal, view: TurnView): Promise<void> {
    const began = performance.now();
    try {
      const body = requestBody(this.settings, answer.request, messages);
      for await (const chunk of this.api.chat(body, signal)) {
        const near = this.isNearEnd();
        applyChunk(answer, chunk, performance.now() - began);
        const positions = chunk.kv?.positions;
        if (positions && chunk.kv) {
          this.kept.set(answer, { data: keptData(positions, chunk.kv.tokens_before), positions, messages,
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
      if (error instanceof ApiError && error.status === 401) this.askForKey(answer.error);
    }
  }

  private isNearEnd(): boolean {
    return this.log.scrollHeight - this.log.scrollTop - this.log.clientHeight < 80;
  }

  /** Keeps the end in view if it was in view before. */
  private follow(near: boolean): void {
    if (near) requestAnimationFrame(() => (this.log.scrollTop = this.log.scrollHeight));
  }

  private async makeSnapshot(document: TextDocument, name: string): Promise<void> {
    const { settings } = this;
    await this.api.makeSnapshot(snapshotBody(settings, name, document.text));
    settings.snapshot = name;
    this.changed();
    await this.snapshots!.refresh();
    this.status.textContent = `The snapshot ${name} is made and in use.`;
  }
}
