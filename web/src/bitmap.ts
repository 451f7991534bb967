// SPDX-License-Identifier: MIT
// Draws matrices as images. A map of 256 x 1024 cells would be a quarter of a million shapes, slow
// to draw and huge in an SVG file; as an image it is a single shape. Pixels are computed at the
// size at which they are shown, so that edges stay sharp.
import type { Rgb } from "./colour";

/** How cells that fall into the same pixel are combined. */
export type Combine = "max" | "mean";

/** The cells under one of n pixels that show cells [begin, end), which may be fractions. */
function cellsOf(pixel: number, n: number, begin: number, end: number, nCells: number): [number, number] {
  const first = Math.floor(begin + ((end - begin) * pixel) / n + 1e-9);
  const last = Math.ceil(begin + ((end - begin) * (pixel + 1)) / n - 1e-9);
  return [Math.max(0, Math.min(nCells - 1, first)), Math.min(nCells, Math.max(first + 1, last))];
}

/** Columns [begin, end) of one row of values, resampled to `width` pixels. */
export function resample(
  row: ArrayLike<number>, width: number, begin: number, end: number, combine: Combine,
): Float64Array {
  const result = new Float64Array(width);
  for (let x = 0; x < width; ++x) {
    const [from, to] = cellsOf(x, width, begin, end, row.length);
    let value = combine === "max" ? -Infinity : 0;
    for (let c = from; c < to; ++c) {
      value = combine === "max" ? Math.max(value, row[c]) : value + row[c] / (to - from);
    }
    result[x] = value;
  }
  return result;
}

/**
 * Turns rows of RGB pixels into RGBA bytes; each row is repeated to fill its share of `height`.
 * `paint(r)(x)` gives the colour of pixel x of row r; rows are separated by a transparent line
 * where there is room.
 */
export function paintRows(
  nRows: number, width: number, height: number, gap: (r: number) => boolean,
  paint: (r: number) => (x: number) => Rgb | null,
): Uint8ClampedArray {
  const pixels = new Uint8ClampedArray(width * height * 4);
  for (let r = 0; r < nRows; ++r) {
    const top = Math.round((r * height) / nRows);
    const bottom = Math.round(((r + 1) * height) / nRows);
    const colour = paint(r);
    const last = bottom - (gap(r) && bottom - top > 3 ? 1 : 0);
    for (let x = 0; x < width; ++x) {
      const rgb = colour(x);
      if (!rgb) continue;
      for (let y = top; y < last; ++y) pixels.set([...rgb, 255], (y * width + x) * 4);
    }
  }
  return pixels;
}

/** A canvas with these pixels; ECharts draws it as an image and embeds it in SVG files. */
export function toCanvas(pixels: Uint8ClampedArray, width: number, height: number): HTMLCanvasElement {
  const canvas = document.createElement("canvas");
  canvas.width = width;
  canvas.height = height;
  canvas.getContext("2d")!.putImageData(new ImageData(new Uint8ClampedArray(pixels), width, height), 0, 0);
  return canvas;
}

/** An image that fills a rectangle of the chart, with `density` pixels per unit. */
export function imageShape(
  rect: { x: number; y: number; width: number; height: number },
  draw: (width: number, height: number) => Uint8ClampedArray,
) {
  const density = Math.max(2, Math.ceil(globalThis.devicePixelRatio ?? 1));
  const width = Math.max(1, Math.round(rect.width * density));
  const height = Math.max(1, Math.round(rect.height * density));
  return {
    type: "image" as const,
    silent: true,
    style: { ...rect, image: toCanvas(draw(width, height), width, height) },
  };
}
