// SPDX-License-Identifier: MIT
// Formats numbers for people.

/** "12,345" */
export function count(n: number): string {
  return Math.round(n).toLocaleString("en-US");
}

/** "1 token", "2,000 tokens" */
export function plural(n: number, noun: string): string {
  return `${count(n)} ${noun}${n === 1 ? "" : "s"}`;
}

/** Three significant digits without an exponent: "0.0123", "4.56", "789", "12,300". */
export function number(x: number): string {
  if (!Number.isFinite(x)) return "-";
  if (x === 0) return "0";
  const magnitude = Math.floor(Math.log10(Math.abs(x)));
  const decimals = Math.max(0, Math.min(12, 2 - magnitude));
  return x.toLocaleString("en-US", { maximumFractionDigits: decimals });
}

/** A share in [0, 1] as "12.3%". */
export function percent(share: number): string {
  return `${number(share * 100)}%`;
}

/** "512 B", "3.75 MiB" */
export function bytes(n: number): string {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let i = 0;
  while (n >= 1024 && i + 1 < units.length) {
    n /= 1024;
    ++i;
  }
  return `${number(n)} ${units[i]}`;
}

/** "0.31 ms", "612 ms", "3.21 s", "2 min 5 s" */
export function seconds(s: number): string {
  if (s < 1) return `${number(s * 1000)} ms`;
  if (s < 120) return `${number(s)} s`;
  return `${Math.floor(s / 60)} min ${Math.round(s % 60)} s`;
}

/** Token counts on an axis: "512", "4,096", "4k", "1.5M"; k is always 1000, as in the commands' tables. */
export function tokens(n: number): string {
  for (const [unit, name] of [[1e6, "M"], [1000, "k"]] as const) {
    if (n >= unit && n % (unit / 10) === 0) return `${n / unit}${name}`;
  }
  return count(n);
}

/** A token's text in a tooltip, with visible white space. */
export function visible(text: string): string {
  return text.replace(/\n/g, "⏎").replace(/\t/g, "⇥").replace(/^ +| +$/g, (s) => "␣".repeat(s.length));
}

/** Breaks a text into lines of at most n characters. */
export function wrap(text: string, n: number): string[] {
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(/\s+/)) {
    if (line && line.length + 1 + word.length > n) {
      lines.push(line);
      line = word;
    } else {
      line += (line ? " " : "") + word;
    }
  }
  return line ? [...lines, line] : lines;
}
