// SPDX-License-Identifier: MIT
// A series that is one image of rows x columns, redrawn for the part that is zoomed in on.
import { imageShape, paintRows } from "../bitmap";
import type { Rgb } from "../colour";

interface RenderApi {
  coord(value: [number, number]): [number, number];
}
interface RenderParams {
  coordSys: { x: number; y: number; width: number; height: number };
}

/**
 * Fills the whole grid. `paint(begin, end, width)` gives the colours of `width` pixels of each row
 * for the visible tokens [begin, end).
 */
export function mapSeries(
  axis: number, nTokens: number, nRows: number, endsGroup: (r: number) => boolean,
  paint: (begin: number, end: number, width: number) => (r: number) => (x: number) => Rgb | null,
) {
  return {
    type: "custom",
    xAxisIndex: axis,
    yAxisIndex: axis,
    data: [[0, 0]],
    clip: true,
    silent: true,
    tooltip: { show: false },
    renderItem: (params: RenderParams, api: RenderApi) => {
      const { coordSys: rect } = params;
      const zero = api.coord([0, 0])[0];
      const unit = (api.coord([nTokens, 0])[0] - zero) / nTokens;
      const begin = Math.max(0, (rect.x - zero) / unit);
      const end = Math.min(nTokens, (rect.x + rect.width - zero) / unit);
      return imageShape(rect, (width, height) =>
        paintRows(nRows, width, height, endsGroup, paint(begin, end, width)));
    },
  };
}
