// SPDX-License-Identifier: MIT
// What the browser keeps for the page beside the conversations (history.ts): settings in
// localStorage; the API key, which conversation is open, and what has been written of a message for as
// long as the tab is open.

const name = (what: string) => `snapkv.${what}`;

/** Forgotten where there is no room, or the browser keeps nothing. */
export function keepSettings(settings: unknown): void {
  try {
    localStorage.setItem(name("settings"), JSON.stringify(settings));
  } catch {
    // the settings are the server's own after a reload
  }
}

/** null where nothing is kept that can be read. */
export function keptSettings(): unknown {
  try {
    return JSON.parse(localStorage.getItem(name("settings")) ?? "null");
  } catch {
    return null;
  }
}

/** The conversation that an earlier version of the page kept here; it is asked for once. */
export function takeOldConversation(): object {
  try {
    const old = JSON.parse(localStorage.getItem(name("conversation")) ?? "{}") as object;
    localStorage.removeItem(name("conversation"));
    return old;
  } catch {
    return {};
  }
}

/** For as long as the tab is open; "" where there is none. */
export function keepInTab(what: "key" | "conversation" | "draft", text: string): void {
  try {
    sessionStorage.setItem(name(what), text);
  } catch {
    // the page asks for it again after a reload
  }
}

export function keptInTab(what: "key" | "conversation" | "draft"): string {
  try {
    return sessionStorage.getItem(name(what)) ?? "";
  } catch {
    return "";
  }
}
