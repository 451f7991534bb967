// SPDX-License-Identifier: MIT
// Saves the visible part of a shaded text as SVG or PNG. The positions of the glyphs are read from
// the page, so that the file looks like it.
import { look } from "../chart";
import { wrap } from "../format";
import { download, type Format } from "../save";

interface Piece {
  x: number;
  y: number;
  width: number;
  height: number;
  text: string;
  fill: string; // "" for none
  ink: string;
}

// A span may be broken across lines; its part on each line is a separate piece.
function piecesOf(span: HTMLElement, view: DOMRect): Piece[] {
  const node = span.firstChild;
  if (!(node instanceof Text)) return [];
  const computed = getComputedStyle(span);
  const fill = computed.backgroundColor === "rgba(0, 0, 0, 0)" ? "" : computed.backgroundColor;
  const pieces: Piece[] = [];
  const range = document.createRange();
  const text = node.data;
  for (let i = 0; i < text.length; ++i) {
    if (text[i] === "\n") continue;
    range.setStart(node, i);
    range.setEnd(node, i + 1);
    const r = range.getBoundingClientRect();
    if (r.width === 0 || r.bottom < view.top + 2 || r.top > view.bottom - 2) continue;
    const last = pieces[pieces.length - 1];
    if (last && Math.abs(last.y + view.top - r.top) < 2) {
      last.text += text[i];
      last.width = r.right - view.left - last.x;
    } else {
      pieces.push({ x: r.left - view.left, y: r.top - view.top, width: r.width, height: r.height,
        text: text[i], fill, ink: computed.color });
    }
  }
  return pieces;
}

const escape = (text: string) =>
  text.replace(/[&<>]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;" })[c]!);

interface Sheet {
  width: number;
  height: number;
  top: number;
  title: string;
  caption: string[];
  font: string;
  pieces: Piece[];
}

function sheetOf(box: HTMLElement, title: string, caption: string): Sheet {
  const view = box.getBoundingClientRect();
  const lines = wrap(caption, Math.max(40, Math.floor(view.width / 7)));
  const pieces = [...box.querySelectorAll<HTMLElement>("span[data-i]")]
    .filter((span) => {
      const r = span.getBoundingClientRect();
      return r.bottom > view.top && r.top < view.bottom;
    })
    .flatMap((span) => piecesOf(span, view));
  const top = 52 + 18 * lines.length;
  return { width: Math.ceil(view.width), height: Math.ceil(view.height) + top, top, title,
    caption: lines, font: getComputedStyle(box).fontFamily, pieces };
}

export function textSvg(sheet: Sheet): string {
  const { card, ink, soft } = look();
  const words = (text: string, y: number, size: number, fill: string, weight = 400) =>
    `<text x="16" y="${y}" font-size="${size}" font-weight="${weight}" fill="${fill}" ` +
    `font-family="system-ui, sans-serif">${escape(text)}</text>`;
  const body = sheet.pieces.map((p) =>
    (p.fill ? `<rect x="${p.x}" y="${p.y}" width="${p.width}" height="${p.height}" rx="2" fill="${p.fill}"/>` : "") +
    `<text x="${p.x}" y="${p.y + p.height * 0.78}" fill="${p.ink}" xml:space="preserve">${escape(p.text)}</text>`);
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${sheet.width}" height="${sheet.height}" ` +
    `viewBox="0 0 ${sheet.width} ${sheet.height}"><rect width="100%" height="100%" fill="${card}"/>` +
    words(sheet.title, 30, 19, ink, 600) +
    sheet.caption.map((line, i) => words(line, 52 + 18 * i, 13, soft)).join("") +
    `<g transform="translate(0 ${sheet.top})" font-size="13.5" font-family="${escape(sheet.font).replace(/"/g, "'")}">` +
    `${body.join("")}</g></svg>`;
}

function textPng(sheet: Sheet): Promise<Blob> {
  const { card, ink, soft } = look();
  const canvas = document.createElement("canvas");
  canvas.width = sheet.width * 2;
  canvas.height = sheet.height * 2;
  const g = canvas.getContext("2d")!;
  g.scale(2, 2);
  g.fillStyle = card;
  g.fillRect(0, 0, sheet.width, sheet.height);
  const words = (text: string, y: number, font: string, fill: string) => {
    g.font = `${font} system-ui, sans-serif`;
    g.fillStyle = fill;
    g.fillText(text, 16, y);
  };
  words(sheet.title, 30, "600 19px", ink);
  sheet.caption.forEach((line, i) => words(line, 52 + 18 * i, "13px", soft));
  g.translate(0, sheet.top);
  g.font = `13.5px ${sheet.font}`;
  for (const p of sheet.pieces) {
    if (p.fill) {
      g.fillStyle = p.fill;
      g.fillRect(p.x, p.y, p.width, p.height);
    }
    g.fillStyle = p.ink;
    g.fillText(p.text, p.x, p.y + p.height * 0.78);
  }
  return new Promise((resolve) => canvas.toBlob((blob) => resolve(blob!), "image/png"));
}

/** Saves what `box` shows now. */
export async function saveText(
  box: HTMLElement, name: string, title: string, caption: string, format: Format,
): Promise<void> {
  const sheet = sheetOf(box, title, caption);
  const content = format === "svg" ? new Blob([textSvg(sheet)], { type: "image/svg+xml" })
    : await textPng(sheet);
  download(content, `snapkv-${name}.${format}`);
}
