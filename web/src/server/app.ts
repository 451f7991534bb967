// SPDX-License-Identifier: MIT
// The page around the chat: its header, the list of conversations, the composer and the settings.
import { count } from "../format";
import { el } from "../page";
import { download } from "../save";
import type { Api } from "./api";
import { Chat } from "./chat";
import { composer, type Composer } from "./composer";
import { exportJson, newConversation, readDocument, type Conversation, type TextDocument } from "./conversation";
import { conversationsView, type ConversationsView } from "./conversations_view";
import type { History } from "./history";
import { isBaseModel, kFull, snapshotBody, type Settings } from "./settings";
import { settingsView, type SettingsView } from "./settings_view";
import { snapshotsView, type SnapshotsView } from "./snapshots_view";
import { keepInTab, keepSettings, keptInTab } from "./store";
import type { Props } from "./types";

const kWide = 1000; // pixels; on a narrower page a panel takes the chat's place
const kWideEnough = 1400; // for both panels and the chat
/** Milliseconds after which the text of an answer that is being written is kept again. */
const kKeepMs = 2000;

export class App {
  private readonly status = el("p", { class: "spoken", role: "status" });
  private readonly notice = el("p", { class: "error notice", role: "alert" });
  private readonly chosen = el("p", { class: "details chosen" });
  private readonly compare = el("input", { type: "checkbox", id: "compare" });
  private readonly composer: Composer;
  private readonly chat: Chat;
  private readonly conversations: ConversationsView;
  private readonly snapshots: SnapshotsView | null;
  private readonly settingsView: SettingsView;
  private width = window.innerWidth;
  /** The panels that were open before the window became narrow. */
  private openBefore: string[] = [];
  /** When each conversation was changed last, as far as this tab knows. */
  private readonly seen = new Map<string, number>();
  /** The last writing of a conversation; the next one waits for it. */
  private keeping: Promise<void> = Promise.resolve();
  private readonly panels: { name: string; button: HTMLElement }[] = [];

  constructor(
    private readonly api: Api, private readonly props: Props, private readonly settings: Settings,
    private readonly history: History, askForKey: (message: string) => void,
  ) {
    this.composer = composer({
      send: (text, documents) => void this.chat.send(text, documents),
      stop: () => this.chat.stop(),
      readFile: async (file) => readDocument(file.name, new Uint8Array(await file.arrayBuffer()),
        (name, bytes) => api.documentText(name, bytes)),
      countTokens: (text) => api.countTokens(text),
      check: (text, documents) => this.chat.check(text, documents),
      firstPart: (document, n) => this.chat.firstPart(document, n),
      makeSnapshot: props.has_snapshots ? (document, name) => this.makeSnapshot(document, name) : null,
      cancelEdit: () => this.chat.endEdit(),
    });
    if (isBaseModel(props)) this.composer.setWords("Complete", "Write the beginning of a text, or drop a document here");
    else this.composer.setWords("Send", "Ask something, or drop a document here");
    this.snapshots = props.has_snapshots ? snapshotsView(api, settings, () => {
      this.changed();
      this.settingsView.refresh();
    }) : null;
    const inUse = () => this.snapshots?.inUse() ?? null;
    this.settingsView = settingsView(props, settings, inUse, () => this.changed());
    this.chat = new Chat({
      api, props, settings, composer: this.composer, inUse, askForKey,
      store: (conversation) => void this.store(conversation),
      say: (message) => this.say(message),
      tell: (message) => (this.status.textContent = message),
    });
    this.conversations = conversationsView(history, {
      current: () => this.chat.conversation.id,
      open: (id) => void this.open(id),
      deleted: (id) => {
        if (id === this.chat.conversation.id) this.show(newConversation(props.model_alias));
      },
    });
    this.addCompare();
  }

  async mount(root: HTMLElement): Promise<void> {
    const { model_alias, backend, build_info, default_generation_settings } = this.props;
    const button = (name: string, label: string, act: () => void) => {
      const b = el("button", { type: "button", "data-do": name }, label);
      b.addEventListener("click", act);
      return b;
    };
    const aside = el("aside", { id: "settings", "aria-label": "Settings" },
      ...(this.snapshots ? [this.snapshots.element] : []), ...this.settingsView.sections);
    const panel = (name: string, label: string) => {
      const b = button(name, label, () => this.toggle(name));
      b.setAttribute("aria-controls", name);
      this.panels.push({ name, button: b });
      return b;
    };
    root.replaceChildren(
      el("header", { class: "top" },
        el("div", {}, el("h1", {}, model_alias),
          el("p", {}, `${build_info} · ${count(default_generation_settings.n_ctx)} tokens of context`,
            ...(isBaseModel(this.props) ? [" · base model"] : []), el("span", { class: "backend" }, ` · ${backend}`))),
        el("div", { class: "buttons" }, panel("conversations", "Chats"),
          button("new", "New", () => this.begin()), button("export", "Export", () => this.export()),
          panel("settings", "Settings"))),
      this.conversations.element,
      el("main", { class: "chat" }, this.chat.element,
        el("div", { class: "bottom" }, this.notice, this.chosen, this.composer.element, this.status)),
      aside);
    this.setOpen("settings", window.innerWidth > kWide);
    this.setOpen("conversations", window.innerWidth > kWideEnough);
    this.notice.hidden = true;
    this.changed();
    void this.snapshots?.refresh();
    this.listen();
    const stored = await this.history.read(keptInTab("conversation")).catch(() => null);
    if (stored) this.show(stored);
    else void this.conversations.refresh();
    this.composer.focus();
  }

  private isOpen(name: string): boolean {
    return document.body.classList.contains(`${name}-open`);
  }

  private setOpen(name: string, open: boolean): void {
    document.body.classList.toggle(`${name}-open`, open);
    this.panels.find((p) => p.name === name)!.button.setAttribute("aria-expanded", String(open));
  }

  private toggle(name: string): void {
    const open = !this.isOpen(name);
    if (open && window.innerWidth <= kWideEnough) for (const other of this.panels) this.setOpen(other.name, false);
    this.setOpen(name, open);
  }

  /** A panel beside the chat must not take its place when the window becomes narrow, and comes back with the room. */
  private resized(): void {
    const [before, now] = [this.width, window.innerWidth];
    this.width = now;
    if (before > kWide && now <= kWide) {
      this.openBefore = this.panels.map(({ name }) => name).filter((name) => this.isOpen(name));
      for (const name of this.openBefore) this.setOpen(name, false);
    } else if (before <= kWide && now > kWide) {
      const open = this.openBefore.length > 0 ? this.openBefore : this.panels.map(({ name }) => name).filter((name) => this.isOpen(name));
      for (const { name } of this.panels) this.setOpen(name, open.includes(name));
      this.openBefore = [];
    }
    if (now <= kWideEnough && this.panels.every(({ name }) => this.isOpen(name))) this.setOpen("conversations", false);
  }

  private addCompare(): void {
    this.compare.checked = this.settings.compare;
    this.compare.addEventListener("change", () => {
      this.settings.compare = this.compare.checked;
      this.changed();
    });
    this.composer.options.append(el("label", { for: "compare" }, this.compare, "Full cache beside it"));
  }

  private listen(): void {
    window.addEventListener("resize", () => this.resized());
    window.addEventListener("keydown", (event) => {
      if (event.key === "Escape") this.chat.stop();
    });
    setInterval(() => {
      if (this.chat.isRunning) void this.keep(this.chat.conversation);
    }, kKeepMs);
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
    keepSettings(settings);
  }

  private async store(conversation: Conversation): Promise<void> {
    await this.keep(conversation);
    await this.conversations.refresh();
  }

  private keep(conversation: Conversation): Promise<void> {
    this.keeping = this.keeping.then(() => this.write(conversation));
    return this.keeping;
  }

  /** Where another tab has changed the conversation since, both stay: this one under another id. */
  private async write(conversation: Conversation): Promise<void> {
    try {
      const stored = (await this.history.list()).find(({ id }) => id === conversation.id);
      if (stored && stored.changed > (this.seen.get(conversation.id) ?? stored.changed)) {
        conversation.id = newConversation(this.props.model_alias).id;
        this.say("Another tab has gone on with this conversation: it is kept as it is there, and beside it as it is here.");
      }
      conversation.changed = Date.now();
      conversation.model = this.props.model_alias;
      this.seen.set(conversation.id, conversation.changed);
      if (conversation.id === this.chat.conversation.id) keepInTab("conversation", conversation.id);
      if (conversation.turns.length === 0) await this.history.remove(conversation.id);
      else await this.history.write(conversation);
    } catch (error) {
      this.say(`The conversation can't be kept in this browser: ${(error as Error).message}. Export saves it.`);
    }
  }

  private say(message: string): void {
    this.notice.textContent = message;
    this.notice.hidden = message === "";
  }

  private show(conversation: Conversation): void {
    this.say("");
    this.seen.set(conversation.id, conversation.changed);
    this.chat.open(conversation);
    keepInTab("conversation", conversation.id);
    void this.conversations.refresh();
    this.composer.focus();
  }

  /** A conversation without messages. */
  private begin(): void {
    if (this.chat.isRunning) void this.store(this.chat.conversation); // with what there is of the answer
    this.show(newConversation(this.props.model_alias));
    if (window.innerWidth <= kWide) for (const { name } of this.panels) this.setOpen(name, false);
  }

  private async open(id: string): Promise<void> {
    if (this.chat.isRunning) void this.store(this.chat.conversation);
    try {
      const conversation = await this.history.read(id);
      if (!conversation) return this.say("This conversation can't be read.");
      this.show(conversation);
      if (window.innerWidth <= kWide) this.setOpen("conversations", false);
    } catch (error) {
      this.say((error as Error).message);
    }
  }

  private export(): void {
    download(new Blob([exportJson(this.chat.conversation, this.settings, this.props)], { type: "application/json" }),
      "snapkv-conversation.json");
  }

  private async makeSnapshot(document: TextDocument, name: string): Promise<void> {
    await this.api.makeSnapshot(snapshotBody(this.settings, name, document.text));
    this.settings.snapshot = name;
    await this.snapshots!.refresh();
    this.status.textContent = `The snapshot ${name} is made and in use.`;
  }
}
