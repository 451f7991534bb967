// SPDX-License-Identifier: MIT
// The part of Markdown that answers use: paragraphs, headings, lists, code, bold and italics. It is
// parsed into plain data, from which markdown_view.ts makes elements. Everything else, including
// HTML markup, remains text.

export type Inline = { kind: "text" | "code" | "strong" | "em"; text: string };
export type Block =
  | { kind: "paragraph"; content: Inline[] }
  | { kind: "heading"; level: number; content: Inline[] }
  | { kind: "code"; language: string; text: string }
  | { kind: "list"; ordered: boolean; start: number; items: Inline[][] };

const kFence = /^ {0,3}(`{3,}|~{3,})\s*([^\s`]*).*$/;
const kItem = /^\s{0,8}(?:([-*+])|(\d{1,9})[.)])\s+(.*)$/;
const kHeading = /^(#{1,6})\s+(.*?)\s*#*$/;

// no nested quantifiers, so that time grows only linearly with the text's length
const kInline = /`([^`\n]+)`|\*\*([^*\n]+)\*\*|__([^_\n]+)__|(?<![*\w])\*([^*\s][^*\n]*)\*(?![*\w])/g;

export function parseInline(text: string): Inline[] {
  const parts: Inline[] = [];
  let end = 0;
  for (const match of text.matchAll(kInline)) {
    if (match.index > end) parts.push({ kind: "text", text: text.slice(end, match.index) });
    const [, code, strong, strong2, em] = match;
    if (code !== undefined) parts.push({ kind: "code", text: code });
    else if (em !== undefined) parts.push({ kind: "em", text: em });
    else parts.push({ kind: "strong", text: strong ?? strong2 });
    end = match.index + match[0].length;
  }
  if (end < text.length) parts.push({ kind: "text", text: text.slice(end) });
  return parts;
}

export function parseMarkdown(text: string): Block[] {
  const blocks: Block[] = [];
  const lines = text.replace(/\r\n?/g, "\n").split("\n");
  let paragraph: string[] = [];
  const flush = () => {
    if (paragraph.length > 0) blocks.push({ kind: "paragraph", content: parseInline(paragraph.join("\n")) });
    paragraph = [];
  };
  for (let i = 0; i < lines.length; ++i) {
    const line = lines[i];
    const fence = kFence.exec(line);
    if (fence) {
      flush();
      const code: string[] = [];
      const closes = (l: string) => {
        const mark = l.trim();
        return mark.length >= fence[1].length && mark === fence[1][0].repeat(mark.length);
      };
      for (++i; i < lines.length && !closes(lines[i]); ++i) code.push(lines[i]);
      blocks.push({ kind: "code", language: fence[2], text: code.join("\n") });
      continue;
    }
    const heading = kHeading.exec(line);
    if (heading) {
      flush();
      blocks.push({ kind: "heading", level: heading[1].length, content: parseInline(heading[2]) });
      continue;
    }
    const item = kItem.exec(line);
    if (item) {
      flush();
      const ordered = item[1] === undefined;
      const last = blocks[blocks.length - 1];
      const content = parseInline(item[3]);
      const joins = last?.kind === "list" && last.ordered === ordered;
      if (joins) last.items.push(content);
      else blocks.push({ kind: "list", ordered, start: ordered ? Number(item[2]) : 1, items: [content] });
      continue;
    }
    if (line.trim() === "") flush();
    else paragraph.push(line.trim());
  }
  flush();
  return blocks;
}
