// SPDX-License-Identifier: MIT
// Helpers that the browser tests share.
import type { Page } from "playwright-core";

/** Returns an environment variable that ctest sets (tests/web/CMakeLists.txt). */
export function required(name: string): string {
  const value = process.env[name];
  if (!value) throw new Error(`${name} is not set`);
  return value;
}

/** The number of different colours in an image of the page or in a screenshot. */
export function coloursIn(page: Page, image: Buffer): Promise<number> {
  return page.evaluate(async (url) => {
    const img = new Image();
    img.src = url;
    await img.decode();
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [img.width, img.height];
    const g = canvas.getContext("2d")!;
    g.drawImage(img, 0, 0);
    const pixels = new Uint32Array(g.getImageData(0, 0, img.width, img.height).data.buffer);
    return new Set(pixels).size;
  }, `data:image/png;base64,${image.toString("base64")}`);
}

/** Accessibility problems for users of keyboards or screen readers, or with poor sight: one line each. */
export function accessibilityProblems(page: Page): Promise<string[]> {
  return page.evaluate(() => {
    const problems: string[] = [];
    const name = (e: Element) => `${e.tagName.toLowerCase()} ${e.outerHTML.slice(0, 90)}`;
    const shown = (e: Element) => (e as HTMLElement).checkVisibility({ visibilityProperty: true });
    const all = [...document.querySelectorAll("body *")].filter(shown);
    const ids = new Set<string>();
    for (const { id } of document.querySelectorAll("[id]")) {
      if (ids.has(id)) problems.push(`the id ${id} is there twice`);
      ids.add(id);
    }
    if (!document.documentElement.lang) problems.push("the page has no language");
    if (document.querySelectorAll("h1").length !== 1) problems.push("there is not exactly one h1");
    if (document.querySelectorAll("main").length !== 1) problems.push("there is not exactly one main");
    for (const e of all) {
      const label = e.getAttribute("aria-label") ?? "";
      const labels = [...((e as HTMLInputElement).labels ?? [])].map((l) => l.textContent).join(" ");
      const text = e.matches("select, textarea") ? "" : e.textContent ?? "";
      const needsName = "button, input, select, textarea, summary, progress, [tabindex='0'], [role=img], [role=region], form, nav, aside";
      if (e.matches(needsName) && !(label + labels + text).trim()) problems.push(`no name: ${name(e)}`);
      for (const attribute of ["for", "aria-describedby", "aria-controls"]) {
        for (const id of e.getAttribute(attribute)?.split(/\s+/).filter((one) => one) ?? []) {
          if (!document.getElementById(id)) problems.push(`${attribute} names nothing: ${name(e)}`);
        }
      }
      if (e.scrollHeight > e.clientHeight + 2 && /auto|scroll/.test(getComputedStyle(e).overflowY) &&
        !e.matches("[tabindex], textarea, aside")) problems.push(`scrolls, but not by keyboard: ${name(e)}`);
    }
    const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true })!;
    const rgba = (colour: string) => {
      canvas.clearRect(0, 0, 1, 1);
      canvas.fillStyle = colour;
      canvas.fillRect(0, 0, 1, 1);
      return [...canvas.getImageData(0, 0, 1, 1).data];
    };
    const light = (c: number[]) => {
      const [r, g, b] = c.map((v) => (v / 255 <= 0.04045 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4));
      return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    for (const e of all) {
      const own = [...e.childNodes].some((n) => n.nodeType === Node.TEXT_NODE && n.textContent!.trim() !== "");
      if (!own || e.closest(".text, button:disabled, .spoken, option")) continue; // shaded by values
      let at: Element | null = e;
      while (at && rgba(getComputedStyle(at).backgroundColor)[3] < 255) at = at.parentElement;
      const [a, b] = [light(rgba(getComputedStyle(e).color)), light(rgba(at ? getComputedStyle(at).backgroundColor : "white"))];
      const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
      if (contrast < 4.5) problems.push(`contrast ${contrast.toFixed(2)}: ${name(e)}`);
    }
    return problems;
  });
}
