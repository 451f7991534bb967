// SPDX-License-Identifier: MIT
// Buttons that copy a text.
import { el } from "../page";

/** Browsers offer no clipboard to pages that come over plain HTTP from another machine, but copy what is selected. */
function copySelected(text: string): boolean {
  const area = el("textarea", { readonly: "", "aria-hidden": "true", class: "spoken" });
  area.value = text;
  const before = document.activeElement;
  document.body.append(area);
  area.select();
  const copied = document.execCommand("copy");
  area.remove();
  if (before instanceof HTMLElement) before.focus();
  return copied;
}

async function copy(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copySelected(text);
  }
}

/** `name`: for tests, and `label` for screen readers. `text` is asked for when the button is pressed. */
export function copyButton(name: string, label: string, text: () => string): HTMLElement {
  const button = el("button", { type: "button", class: "quiet", "data-do": name, "aria-label": label }, "Copy");
  button.addEventListener("click", () => void copy(text()).then((copied) => {
    button.textContent = copied ? "Copied" : "Can't copy here";
    setTimeout(() => (button.textContent = "Copy"), 1500);
  }));
  return button;
}
