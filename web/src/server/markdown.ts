// SPDX-License-Identifier: MIT
// The Markdown of answers: CommonMark with tables and strikethrough.
import MarkdownIt from "markdown-it";

/**
 * HTML, links and pictures stay text: a document that was made to do harm can't make an answer load
 * or lead anywhere.
 */
export const kMarkdown = new MarkdownIt({ html: false, linkify: false })
  .disable(["link", "image", "autolink", "reference", "html_block", "html_inline"]);

/** A number with a period is an answer, and not an item of a list without content, which would have no text. */
kMarkdown.block.ruler.before("list", "number", (state, line, _end, silent) => {
  const text = state.src.slice(state.bMarks[line] + state.tShift[line], state.eMarks[line]).trim();
  if (silent || !/^\d{1,9}[.)]$/.test(text)) return false;
  state.push("paragraph_open", "p", 1);
  const inline = state.push("inline", "", 0);
  inline.content = text;
  inline.children = [];
  state.push("paragraph_close", "p", -1);
  state.line = line + 1;
  return true;
});
