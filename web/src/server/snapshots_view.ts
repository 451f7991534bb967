// SPDX-License-Identifier: MIT
// The document snapshots on the server, with buttons to use and delete them.
import { bytes } from "../format";
import { el } from "../page";
import type { Api } from "./api";
import type { Settings } from "./settings";
import type { Snapshot } from "./types";

export interface SnapshotsView {
  element: HTMLElement;
  refresh(): Promise<void>;
}

export function snapshotsView(api: Api, settings: Settings, changed: () => void): SnapshotsView {
  const list = el("ul", { class: "snapshots" });
  const note = el("p", { class: "details", role: "status" });
  const keeps = el("select", {},
    el("option", { value: "" }, "what matters without a question"),
    el("option", { value: "full" }, "everything; each question chooses"));
  keeps.value = settings.keep_full ? "full" : "";
  keeps.addEventListener("change", () => {
    settings.keep_full = keeps.value === "full";
    changed();
  });
  const element = el("details", { class: "section", "data-section": "Snapshots", open: "" },
    el("summary", {}, "Document snapshots"), list, note, el("label", { class: "keeps" }, "A new one keeps", keeps));

  const row = ({ name, bytes: size, created }: Snapshot): HTMLElement => {
    const used = settings.snapshot === name;
    const use = el("button", { type: "button", "aria-pressed": String(used), "aria-label": `Use ${name}` }, used ? "In use" : "Use");
    use.addEventListener("click", () => {
      settings.snapshot = used ? "" : name;
      changed();
      void refresh();
    });
    const erase = el("button", { type: "button", class: "quiet", "aria-label": `Delete ${name}` }, "Delete");
    erase.addEventListener("click", () => {
      if (erase.dataset.sure !== "yes") { // only the second press deletes
        erase.dataset.sure = "yes";
        erase.textContent = "Really delete?";
        erase.setAttribute("aria-label", `Really delete ${name}?`);
        return;
      }
      api.eraseSnapshot(name).then(() => {
        if (settings.snapshot === name) settings.snapshot = "";
        changed();
        return refresh();
      }, (error: Error) => (note.textContent = error.message));
    });
    const date = new Date(created * 1000).toLocaleDateString(undefined, { dateStyle: "medium" });
    return el("li", { "data-snapshot": name }, el("div", {}, el("b", {}, name), el("span", {}, `${bytes(size)} · ${date}`)), use, erase);
  };

  const refresh = async () => {
    try {
      const all = await api.snapshots();
      list.replaceChildren(...all.map(row));
      note.textContent = all.length > 0
        ? "A snapshot's document comes before the conversation; it is not read again."
        : "None yet. Drop a document and choose “Make a snapshot”: it is read once, and then answers about it begin at once.";
    } catch (error) {
      note.textContent = (error as Error).message;
    }
  };
  return { element, refresh };
}
