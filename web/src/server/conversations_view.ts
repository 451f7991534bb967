// SPDX-License-Identifier: MIT
// The list of conversations: open one, delete one.
import { el } from "../page";
import type { Entry, History } from "./history";

export interface ConversationsView {
  element: HTMLElement;
  refresh(): Promise<void>;
}

export interface ConversationsActions {
  /** The id of the conversation on the page. */
  current(): string;
  open(id: string): void;
  deleted(id: string): void;
}

function dateText(ms: number): string {
  const date = new Date(ms);
  return date.toDateString() === new Date().toDateString()
    ? date.toLocaleTimeString(undefined, { timeStyle: "short" }) : date.toLocaleDateString(undefined, { dateStyle: "medium" });
}

export function conversationsView(history: History, actions: ConversationsActions): ConversationsView {
  const list = el("ul", {});
  const note = el("p", { class: "details", role: "status" });
  const element = el("nav", { id: "conversations", "aria-label": "Conversations" }, el("h2", {}, "Conversations"), list, note);

  const row = (entry: Entry): HTMLElement => {
    const { id, title, model, changed } = entry;
    const open = el("button", { type: "button", class: "open", "aria-label": `Open ${title}` },
      el("b", {}, title), el("span", {}, `${dateText(changed)} · ${model}`));
    if (id === actions.current()) open.setAttribute("aria-current", "true");
    open.addEventListener("click", () => actions.open(id));
    const erase = el("button", { type: "button", class: "quiet", "aria-label": `Delete ${title}` }, "✕");
    erase.addEventListener("click", () => {
      if (erase.dataset.sure !== "yes") { // the second press deletes
        erase.dataset.sure = "yes";
        erase.textContent = "Delete?";
        erase.setAttribute("aria-label", `Really delete ${title}?`);
        return;
      }
      history.remove(id).then(() => {
        actions.deleted(id);
        return refresh();
      }, (error: Error) => (note.textContent = error.message));
    });
    return el("li", { "data-conversation": id }, open, erase);
  };

  const refresh = async () => {
    try {
      const all = await history.list();
      list.replaceChildren(...all.map(row));
      note.textContent = !history.lasts ? "This browser keeps nothing: they are gone when the page is closed."
        : all.length === 0 ? "None yet." : "Kept in this browser.";
    } catch (error) {
      note.textContent = `The conversations can't be listed: ${(error as Error).message}`;
    }
  };
  return { element, refresh };
}
