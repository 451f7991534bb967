// SPDX-License-Identifier: MIT
// What the browser stores for the page: conversation and settings in localStorage, and the API key
// only while the tab is open.

const name = (what: string) => `snapkv.${what}`;

/** False if there is no room, or the browser stores nothing. */
export function keep(what: "settings" | "conversation", value: unknown): boolean {
  try {
    localStorage.setItem(name(what), JSON.stringify(value));
    return true;
  } catch {
    return false;
  }
}

/** null if nothing readable is stored. */
export function kept(what: "settings" | "conversation"): unknown {
  try {
    return JSON.parse(localStorage.getItem(name(what)) ?? "null");
  } catch {
    return null;
  }
}

export function keepKey(key: string): void {
  try {
    sessionStorage.setItem(name("key"), key);
  } catch {
    // the page asks for it again after a reload
  }
}

export function keptKey(): string {
  try {
    return sessionStorage.getItem(name("key")) ?? "";
  } catch {
    return "";
  }
}
