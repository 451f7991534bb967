// SPDX-License-Identifier: MIT
// The tooltip for images and shaded text: plain text at the pointer.

function element(): HTMLElement {
  const found = document.getElementById("tip");
  if (found) return found;
  const tip = document.createElement("div");
  tip.id = "tip";
  tip.hidden = true;
  document.body.append(tip);
  return tip;
}

export function showTip(text: string, x: number, y: number): void {
  const tip = element();
  tip.textContent = text;
  tip.hidden = false;
  const { width, height } = tip.getBoundingClientRect();
  const left = x + 14 + width < window.innerWidth ? x + 14 : x - 14 - width;
  const top = y + 16 + height < window.innerHeight ? y + 16 : y - 12 - height;
  tip.style.left = `${Math.max(4, left)}px`;
  tip.style.top = `${Math.max(4, top)}px`;
}

export function hideTip(): void {
  element().hidden = true;
}
