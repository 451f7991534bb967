// SPDX-License-Identifier: MIT
// What the cache kept of an answer's prompt: the map of layers and positions, and the shaded text.
// It is built when the user opens it; the text comes from the server's own template and tokenizer.
import { look, mountChart } from "../chart";
import { keptColour } from "../colour";
import { count, percent } from "../format";
import { keptMap, type KeptData } from "../inspect/kept_map";
import { shadedText, type ShadedText } from "../inspect/shaded_text";
import { el, saveButtons } from "../page";
import { savePicture } from "../save";
import type { Api } from "./api";
import { densestPassage, keptBy, pieceTexts } from "./kept";
import type { Message } from "./types";

export interface Kept {
  data: KeptData;
  positions: number[][][];
  /** What the request was made of: a conversation, or the text that was continued. */
  input: Message[] | string;
  /** The prompt continues a snapshot, whose text only its maker knows. */
  snapshot: boolean;
}

/** Texts of the prompt's tokens; null if they are not the tokens that the answer was made from. */
async function promptPieces(api: Api, kept: Kept): Promise<string[] | null> {
  const { input } = kept;
  const prompt = typeof input === "string" ? input : await api.applyTemplate(input);
  for (const special of [true, false]) {
    const { tokens } = await api.tokenize(prompt, special);
    if (tokens.length === kept.data.n_tokens) return pieceTexts(tokens);
  }
  return null;
}

function shaded(kept: Kept, pieces: string[], counts: Uint32Array): ShadedText {
  const heads = kept.data.model.n_layer * kept.data.model.n_head_kv;
  const text = [{ begin: 0, pieces, kept_by: [] }];
  return shadedText({ n_tokens: pieces.length, text_limit: pieces.length, text }, {
    // the square root makes a few of many heads visible beside none
    levels: () => Float64Array.from(counts, (n) => Math.sqrt(n / heads)),
    colour: () => keptColour(look()),
    describe: (token) => `token ${count(token)}\nkept by ${counts[token]} of ${heads} pairs of layer and KV head` +
      ` (${percent(counts[token] / heads)})`,
  });
}

/** Fills `box`, which must be on the page, because charts need its width. */
export async function showKept(box: HTMLElement, kept: Kept, api: Api): Promise<void> {
  const picture = keptMap(kept.data);
  const chart = el("div", { class: "chart", "data-chart": "kept-map", role: "img",
    "aria-label": `${picture.title}. ${picture.caption()}` });
  const note = el("p", { class: "caption" }, "Asking for the prompt's tokens …");
  box.replaceChildren(
    el("div", { class: "head" }, el("h4", {}, picture.title),
      saveButtons(picture.title, (format) => savePicture(picture, format))),
    chart, el("h4", {}, "The prompt, shaded by how many heads kept each token"), note);
  mountChart(chart, picture);
  if (kept.snapshot) {
    note.textContent = "The prompt continues a snapshot, which holds no text to show.";
    return;
  }
  try {
    const pieces = await promptPieces(api, kept);
    if (pieces === null) {
      note.textContent = "The prompt's text splits into other tokens than the conversation had, so it can't be shaded.";
    } else {
      const counts = keptBy(kept.positions, kept.data.n_tokens);
      const passage = densestPassage(counts, kept.data.model.n_layer * kept.data.model.n_head_kv);
      note.textContent = "The stronger the colour, the more of the heads still have the token." +
        (passage > 0 ? ` The text begins at token ${count(passage)}, where most is kept; scroll for the rest.` : "");
      const text = shaded(kept, pieces, counts);
      box.append(text.element);
      if (passage > 0) text.show(passage);
    }
  } catch (error) {
    note.textContent = `The prompt can't be shown: ${(error as Error).message}`;
  }
}
