// SPDX-License-Identifier: MIT
// What the browser keeps for the page: conversation and settings in localStorage; the API key for as
// long as the tab is open only.

const name = (what: string) => `snapkv.${what}`;

/** False where there is no room, or the browser keeps nothing. */
export function keep(what: "settings" | "conversation", value: unknown): boolean {
  try {
    localStorage.setItem(name(what), JSON.stringify(value));
    return true;
  } catch {
    return false;
  }
}

/** null where nothing is kept that can be read. */
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
    // it is asked for again after a reload
  }
}

export function keptKey(): string {
  try {
    return sessionStorage.getItem(name("key")) ?? "";
  } catch {
    return "";
  }
}
