// SPDX-License-Identifier: MIT
// The Markdown of answers: CommonMark with tables and strikethrough.
import MarkdownIt from "markdown-it";

/**
 * HTML, links and pictures stay text: a document that was made to do harm can't make an answer load
 * or lead anywhere.
 */
export const kMarkdown = new MarkdownIt({ html: false, linkify: false })
  .disable(["link", "image", "autolink", "reference", "html_block", "html_inline"]);
