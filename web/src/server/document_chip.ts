// SPDX-License-Identifier: MIT
// A document of the message that is being written: its name and size, and what can be done with it.
import { el } from "../page";
import type { TextDocument } from "./conversation";
import { documentSize } from "./turn_view";

export interface ChipActions {
  remove(): void;
  /** null: the server keeps no snapshots. */
  makeSnapshot: (() => Promise<void>) | null;
  failed(message: string): void;
}

export function documentChip(document: TextDocument, actions: ChipActions): HTMLElement {
  const remove = el("button", { type: "button", class: "quiet", "aria-label": `Remove ${document.name}` }, "✕");
  remove.addEventListener("click", actions.remove);
  const item = el("li", {}, el("b", {}, document.name), el("span", {}, documentSize(document)));
  const { makeSnapshot } = actions;
  if (makeSnapshot) {
    const make = el("button", { type: "button", class: "quiet", "data-do": "snapshot" }, "Make a snapshot");
    make.addEventListener("click", () => {
      make.disabled = true;
      make.textContent = "Reading …";
      actions.failed("");
      makeSnapshot().catch((error: Error) => {
        make.disabled = false;
        make.textContent = "Make a snapshot";
        actions.failed(error.message);
      });
    });
    item.append(make);
  }
  item.append(remove);
  return item;
}
