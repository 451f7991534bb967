// SPDX-License-Identifier: MIT
// Where the user writes: the message, the documents that go with it, send and stop. What does not
// fit into the context is told when it is added, and is not sent.
import { count } from "../format";
import { el } from "../page";
import { snapshotName, type TextDocument } from "./conversation";
import { documentChip } from "./document_chip";
import { listed, type FitReport } from "./fit";
import { keepInTab, keptInTab } from "./store";

/** Pasted text of at least this length becomes a document. */
const kLongPaste = 2000;

export interface ComposerActions {
  send(text: string, documents: TextDocument[]): void;
  stop(): void;
  /** Text of a file, or an error in the user's words. */
  readFile(file: File): Promise<TextDocument>;
  countTokens(text: string): Promise<number>;
  /** Whether the message fits; `editing` as edit() was told. */
  check(text: string, documents: TextDocument[]): Promise<FitReport>;
  /** The first `n` tokens of a document. */
  firstPart(document: TextDocument, n: number): Promise<TextDocument>;
  /** null: the server keeps no snapshots. */
  makeSnapshot: ((document: TextDocument, name: string) => Promise<void>) | null;
  /** An earlier message is not edited after all. */
  cancelEdit(): void;
}

export interface Composer {
  element: HTMLElement;
  /** The choices beside the send button. */
  options: HTMLElement;
  setRunning(running: boolean): void;
  /** On the send button while nothing runs, and what the empty box says. */
  setWords(send: string, placeholder: string): void;
  addFiles(files: Iterable<File>): Promise<void>;
  /** A message that comes back: in front of what has been written since. */
  restore(text: string, documents: TextDocument[]): void;
  /** An earlier message, to be sent again; "" ends it. */
  edit(words: string, text?: string, documents?: TextDocument[]): void;
  focus(): void;
}

export function composer(actions: ComposerActions): Composer {
  let documents: TextDocument[] = [];
  let running = false;
  let checking = false;
  let sendWord = "Send";
  const area = el("textarea", { rows: "2", "aria-label": "Message" });
  const chips = el("ul", { class: "chips", "aria-label": "Documents of the message" });
  const problem = el("p", { class: "error", role: "alert" });
  const note = el("p", { class: "details", role: "status" });
  const editing = el("p", { class: "details editing" });
  const file = el("input", { type: "file", multiple: "", "aria-label": "Documents to attach", tabindex: "-1" });
  const attach = el("button", { type: "button", "data-do": "attach", "aria-label": "Attach a document" }, "Attach");
  const send = el("button", { type: "submit", class: "primary", "data-do": "send" }, sendWord);
  const options = el("div", { class: "options" });
  const element = el("form", { class: "composer", "aria-label": "New message" }, editing, chips, problem, note, area,
    el("div", { class: "row" }, attach, file, options, send));
  file.hidden = problem.hidden = note.hidden = editing.hidden = true;

  const say = (message: string, hint = "") => {
    problem.textContent = message;
    problem.hidden = message === "";
    note.textContent = hint;
    note.hidden = hint === "";
  };
  const report = ({ problem: words, note: hint, keep }: FitReport) => {
    say(words, hint);
    const last = documents[documents.length - 1];
    if (!words || keep <= 0 || !last) return;
    const cut = el("button", { type: "button", "data-do": "cut" }, `Take the first ${count(keep)} tokens`);
    cut.addEventListener("click", () => {
      cut.disabled = true;
      actions.firstPart(last, keep).then((part) => {
        if (documents.includes(last)) replace(documents.map((d) => (d === last ? part : d)));
        area.focus();
      }, (error: Error) => say(error.message));
    });
    problem.append(" ", cut);
  };
  let checks = 0; // the answer to an older one is of no use
  /** `before`: what is said already. */
  const check = async (before: string) => {
    const mine = ++checks;
    for (const document of documents) {
      if (document.tokens !== undefined) continue;
      document.tokens = await actions.countTokens(document.text).catch(() => undefined); // its bytes are shown then
      draw();
    }
    if (documents.length === 0) return;
    try {
      const answer = await actions.check(area.value.trim(), documents);
      if (mine === checks) report({ ...answer, problem: listed(before, answer.problem) });
    } catch (error) {
      if (mine === checks) say(listed(before, (error as Error).message));
    }
  };
  const draw = () => {
    chips.replaceChildren(...documents.map((document) => documentChip(document, {
      remove: () => {
        replace(documents.filter((d) => d !== document));
        area.focus();
      },
      makeSnapshot: actions.makeSnapshot && (async () => {
        await actions.makeSnapshot!(document, snapshotName(document.name));
        replace(documents.filter((d) => d !== document));
      }),
      failed: say,
    })));
    chips.hidden = documents.length === 0;
  };
  const replace = (others: TextDocument[], problems = "") => {
    documents = others;
    draw();
    say(problems);
    void check(problems);
  };
  const fit = () => {
    area.style.height = "auto";
    area.style.height = `${Math.min(240, area.scrollHeight + 2)}px`;
  };
  const written = () => {
    fit();
    keepInTab("draft", area.value);
  };
  const write = (text: string) => {
    area.value = text;
    written();
  };
  const endEdit = () => {
    editing.replaceChildren();
    editing.hidden = true;
  };
  const submit = async () => {
    if (running) return actions.stop();
    const text = area.value.trim();
    if (checking || (text === "" && documents.length === 0)) return;
    checking = area.readOnly = true;
    ++checks;
    try {
      const answer = await actions.check(text, documents);
      if (answer.problem !== "") return report(answer);
    } catch (error) {
      return say((error as Error).message);
    } finally {
      checking = area.readOnly = false;
    }
    say("");
    const sent = documents;
    documents = [];
    write("");
    draw();
    endEdit();
    actions.send(text, sent);
  };
  const addFiles = async (files: Iterable<File>) => {
    const read: TextDocument[] = [];
    const problems: string[] = [];
    for (const each of files) {
      await actions.readFile(each).then((document) => read.push(document),
        (error: Error) => problems.push(error.message));
    }
    replace([...documents, ...read], listed(...problems));
    area.focus();
  };
  draw();
  area.value = keptInTab("draft"); // what was not sent when the page was loaded again
  requestAnimationFrame(fit);
  area.addEventListener("input", written);
  area.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    if (!running) void submit();
  });
  area.addEventListener("paste", (event) => {
    const text = event.clipboardData?.getData("text/plain") ?? "";
    if (text.length < kLongPaste) return;
    event.preventDefault();
    replace([...documents, { name: "Pasted text", text }]);
  });
  attach.addEventListener("click", () => file.click());
  file.addEventListener("change", () => {
    void addFiles([...(file.files ?? [])]);
    file.value = "";
  });
  element.addEventListener("submit", (event) => {
    event.preventDefault();
    void submit();
  });
  return {
    element, options, addFiles,
    focus: () => area.focus(),
    setRunning: (now) => {
      running = now;
      send.textContent = now ? "Stop" : sendWord;
      send.classList.toggle("stop", now);
      send.dataset.do = now ? "stop" : "send";
    },
    setWords: (word, placeholder) => {
      sendWord = word;
      if (!running) send.textContent = word;
      area.placeholder = placeholder;
    },
    restore: (text, returned) => {
      write([text, area.value].filter((s) => s !== "").join("\n\n"));
      documents = [...returned, ...documents];
      draw();
      area.focus();
    },
    edit: (words, text = "", own = []) => {
      endEdit();
      if (words === "") return;
      const before = { text: area.value, documents };
      const cancel = el("button", { type: "button", class: "quiet", "data-do": "cancel-edit" }, "Cancel");
      cancel.addEventListener("click", () => {
        endEdit();
        write(before.text);
        replace(before.documents);
        actions.cancelEdit();
      });
      editing.append(words, " ", cancel);
      editing.hidden = false;
      write(text);
      documents = [...own];
      draw();
      say("");
      area.focus();
    },
  };
}
