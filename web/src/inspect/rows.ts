// SPDX-License-Identifier: MIT
// The rows (layer x KV head) and columns (tokens) that the maps of an inspect page share.
import { columnBegin, columnOf, type InspectData } from "../data";
import { count, visible } from "../format";
import { yAxis, type Frame } from "../picture";

/** The part of an inspect page's data that the maps need. */
export type MapData = Pick<InspectData, "n_tokens" | "n_columns" | "rows" | "text">;

function span(what: string, begin: number, end: number): string {
  return end - begin === 1 ? `${what} ${begin}` : `${what}s ${begin} to ${end - 1}`;
}

/** "layer 3, KV head 1" */
export function rowName(data: MapData, r: number): string {
  const row = data.rows[r];
  return `${span("layer", row.layer_begin, row.layer_end)}, ` +
    span("KV head", row.head_begin, row.head_end);
}

/** Whether a layer ends with row r. */
export function endsLayer(data: MapData, r: number): boolean {
  return r + 1 === data.rows.length || data.rows[r + 1].layer_begin !== data.rows[r].layer_begin;
}

/** "token 17 “Rome”", "tokens 128 to 255" */
export function columnName(data: MapData, c: number): string {
  const begin = columnBegin(c, data.n_columns, data.n_tokens);
  const end = columnBegin(c + 1, data.n_columns, data.n_tokens);
  if (end - begin > 1) {
    const text = excerpt(data, begin, end);
    return `tokens ${count(begin)} to ${count(end - 1)}${text ? `: ${text}` : ""}`;
  }
  const text = excerpt(data, begin, end);
  return `token ${count(begin)}${text ? `: ${text}` : ""}`;
}

/** Text of tokens [begin, end), at most 60 characters; "" if the page has no text for them. */
export function excerpt(data: MapData, begin: number, end: number): string {
  const part = data.text.find((t) => t.begin <= begin && end <= t.begin + t.pieces.length);
  if (!part) return "";
  const text = visible(part.pieces.slice(begin - part.begin, end - part.begin).join(""));
  return `“${text.length > 60 ? `${text.slice(0, 59)}…` : text}”`;
}

export function columnAt(data: MapData, x: number): number {
  const token = Math.max(0, Math.min(data.n_tokens - 1, Math.floor(x)));
  return columnOf(token, data.n_columns, data.n_tokens);
}

/** An axis with one band per row. Each layer's name is at its middle; heads are named if there is room. */
export function rowAxis(frame: Frame, data: MapData, height: number, more = {}) {
  const n = data.rows.length;
  const first = (r: number) => data.rows.findIndex((x) => x.layer_begin === data.rows[r].layer_begin);
  const named = (r: number) => {
    let last = first(r);
    while (!endsLayer(data, last)) ++last;
    return r === (first(r) + last) >> 1;
  };
  const layers = data.rows.map((_, r) => r).filter(named);
  const step = Math.ceil((layers.length * 15) / height);
  return yAxis(frame, "layer · KV head", 54, {
    type: "category",
    inverse: true,
    data: data.rows.map((row) => String(row.layer_begin)),
    axisTick: { show: false },
    splitLine: { show: false },
    axisLabel: {
      hideOverlap: false,
      interval: (r: number) => n <= height / 15 || (named(r) && layers.indexOf(r) % step === 0),
      formatter: (_: string, r: number) => n <= height / 15
        ? `${data.rows[r].layer_begin} · ${data.rows[r].head_begin}`
        : String(data.rows[r].layer_begin),
    },
    ...more,
  });
}

/** The height of a map's rows. */
export function rowsHeight(data: MapData): number {
  return Math.max(110, Math.min(360, data.rows.length * 18));
}
