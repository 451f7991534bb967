// SPDX-License-Identifier: MIT
// The input area: the message, its documents, and the buttons to send and stop.
import { el } from "../page";
import { decodeDocument, snapshotName, type TextDocument } from "./conversation";
import { documentSize } from "./turn_view";

/** Pasted text of at least this length becomes a document. */
const kLongPaste = 2000;

export interface ComposerActions {
  send(text: string, documents: TextDocument[]): void;
  stop(): void;
  countTokens(text: string): Promise<number>;
  /** null if the server keeps no snapshots. */
  makeSnapshot: ((document: TextDocument, name: string) => Promise<void>) | null;
}

export interface Composer {
  element: HTMLElement;
  /** The choices beside the send button. */
  options: HTMLElement;
  setRunning(running: boolean): void;
  addFiles(files: Iterable<File>): Promise<void>;
  focus(): void;
}

export function composer(actions: ComposerActions): Composer {
  const documents: TextDocument[] = [];
  let running = false;
  const area = el("textarea", { rows: "2", "aria-label": "Message", placeholder: "Ask something, or drop a document here" });
  const chips = el("ul", { class: "chips", "aria-label": "Documents of the message" });
  const problem = el("p", { class: "error", role: "alert" });
  const file = el("input", { type: "file", multiple: "", "aria-label": "Documents to attach", tabindex: "-1" });
  const attach = el("button", { type: "button", "data-do": "attach", "aria-label": "Attach a document" }, "Attach");
  const send = el("button", { type: "submit", class: "primary", "data-do": "send" }, "Send");
  const options = el("div", { class: "options" });
  const element = el("form", { class: "composer", "aria-label": "New message" }, chips, problem, area,
    el("div", { class: "row" }, attach, file, options, send));
  file.hidden = true;
  problem.hidden = true;

  const fail = (message: string) => {
    problem.textContent = message;
    problem.hidden = message === "";
  };
  const chip = (document: TextDocument): HTMLElement => {
    const size = el("span", {}, documentSize(document));
    const remove = el("button", { type: "button", class: "quiet", "aria-label": `Remove ${document.name}` }, "✕");
    const item = el("li", {}, el("b", {}, document.name), size);
    remove.addEventListener("click", () => {
      documents.splice(documents.indexOf(document), 1);
      draw();
      area.focus();
    });
    const { makeSnapshot } = actions;
    if (makeSnapshot) {
      const make = el("button", { type: "button", class: "quiet", "data-do": "snapshot" }, "Make a snapshot");
      make.addEventListener("click", () => {
        make.disabled = true;
        make.textContent = "Reading …";
        fail("");
        makeSnapshot(document, snapshotName(document.name)).then(() => {
          documents.splice(documents.indexOf(document), 1);
          draw();
        }, (error: Error) => {
          make.disabled = false;
          make.textContent = "Make a snapshot";
          fail(error.message);
        });
      });
      item.append(make);
    }
    item.append(remove);
    if (document.tokens === undefined) {
      actions.countTokens(document.text).then((n) => {
        document.tokens = n;
        size.textContent = documentSize(document);
      }, () => undefined); // its size in bytes is shown instead
    }
    return item;
  };
  const draw = () => {
    chips.replaceChildren(...documents.map(chip));
    chips.hidden = documents.length === 0;
  };
  const add = (document: TextDocument) => {
    documents.push(document);
    draw();
  };
  const submit = () => {
    if (running) return actions.stop();
    const text = area.value.trim();
    if (text === "" && documents.length === 0) return;
    fail("");
    const sent = documents.splice(0);
    area.value = "";
    draw();
    fit();
    actions.send(text, sent);
  };
  const fit = () => {
    area.style.height = "auto";
    area.style.height = `${Math.min(240, area.scrollHeight + 2)}px`;
  };
  const addFiles = async (files: Iterable<File>) => {
    fail("");
    for (const each of files) {
      try {
        add(decodeDocument(each.name, new Uint8Array(await each.arrayBuffer())));
      } catch (error) {
        fail((error as Error).message);
      }
    }
    area.focus();
  };
  draw();
  area.addEventListener("input", fit);
  area.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    if (!running) submit();
  });
  area.addEventListener("paste", (event) => {
    const text = event.clipboardData?.getData("text/plain") ?? "";
    if (text.length < kLongPaste) return;
    event.preventDefault();
    add({ name: "Pasted text", text });
  });
  attach.addEventListener("click", () => file.click());
  file.addEventListener("change", () => {
    void addFiles([...(file.files ?? [])]);
    file.value = "";
  });
  element.addEventListener("submit", (event) => {
    event.preventDefault();
    submit();
  });
  return {
    element, options, addFiles,
    focus: () => area.focus(),
    setRunning: (now) => {
      running = now;
      send.textContent = now ? "Stop" : "Send";
      send.classList.toggle("stop", now);
      send.dataset.do = now ? "stop" : "send";
    },
  };
}
