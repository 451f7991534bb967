// SPDX-License-Identifier: MIT
// The snapshots of documents that the server keeps: use one, delete one.
import { bytes, count } from "../format";
import { el } from "../page";
import type { Api } from "./api";
import { kKeeps, type Keeps, type Settings } from "./settings";
import { ownPolicy } from "./settings_view";
import type { Snapshot } from "./types";

export interface SnapshotsView {
  element: HTMLElement;
  /** The one in use, as far as the server has said what it is. */
  inUse(): Snapshot | null;
  refresh(): Promise<void>;
}

/** What it holds, in a few words. */
function contentText(snapshot: Snapshot): string {
  if (snapshot.problem !== undefined) return snapshot.problem;
  return snapshot.keep_full ? `every row of ${count(snapshot.tokens ?? 0)}` : ownPolicy(snapshot);
}

export function snapshotsView(api: Api, settings: Settings, changed: () => void): SnapshotsView {
  const list = el("ul", { class: "snapshots" });
  const note = el("p", { class: "details", role: "status" });
  const keeps = el("select", {}, ...Object.entries(kKeeps).map(([value, words]) => el("option", { value }, words)));
  keeps.value = settings.keeps;
  keeps.addEventListener("change", () => {
    settings.keeps = keeps.value as Keeps;
    changed();
  });
  const element = el("details", { class: "section", "data-section": "Snapshots", open: "" },
    el("summary", {}, "Document snapshots"), list, note, el("label", { class: "keeps" }, "A new one keeps", keeps),
    el("small", { class: "details" }, "The server keeps every row, unless the document is very long."));

  let all: Snapshot[] = [];
  const row = (snapshot: Snapshot): HTMLElement => {
    const { name, bytes: size, created } = snapshot;
    const used = settings.snapshot === name;
    const use = el("button", { type: "button", "aria-pressed": String(used), "aria-label": `Use ${name}` }, used ? "In use" : "Use");
    use.hidden = snapshot.problem !== undefined;
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
    return el("li", { "data-snapshot": name }, el("div", {}, el("b", {}, name), el("span", {}, contentText(snapshot)),
      el("span", {}, `${bytes(size)} · ${date}`)), use, erase);
  };

  const refresh = async () => {
    try {
      all = await api.snapshots();
      const used = all.find(({ name }) => name === settings.snapshot);
      if (!used || used.problem !== undefined) settings.snapshot = ""; // it is gone, or another model's
      list.replaceChildren(...all.map(row));
      note.textContent = all.length > 0
        ? "A snapshot's document comes before the conversation; it is not read again."
        : "None yet. Drop a document and choose “Make a snapshot”: it is read once, and then answers about it begin at once.";
      changed();
    } catch (error) {
      note.textContent = (error as Error).message;
    }
  };
  return { element, refresh, inUse: () => all.find(({ name }) => name === settings.snapshot) ?? null };
}
