// SPDX-License-Identifier: MIT
// Saves a picture as PNG or SVG: redraws it at a fixed size outside the page, with title and
// caption, in the page's colours.
import { look } from "./chart";
import type { Look } from "./colour";
import { echarts } from "./echarts";
import { wrap } from "./format";
import type { Picture } from "./picture";

export type Format = "png" | "svg";
const kWidth = 1200;

export function download(content: Blob, name: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(content);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

function dataUrlToBlob(url: string): Blob {
  const bytes = atob(url.slice(url.indexOf(",") + 1));
  return new Blob([Uint8Array.from(bytes, (c) => c.charCodeAt(0))], { type: "image/png" });
}

function titleOption(picture: Picture, colours: Look, caption: string[]) {
  return {
    text: picture.title,
    subtext: caption.join("\n"),
    left: 20,
    top: 14,
    itemGap: 6,
    textStyle: { color: colours.ink, fontSize: 20, fontWeight: 600 },
    subtextStyle: { color: colours.soft, fontSize: 13, lineHeight: 18 },
  };
}

/** The content of the file. */
export function render(picture: Picture, format: Format): Blob {
  const caption = wrap(picture.caption(), 165);
  const top = 56 + 18 * caption.length;
  const height = picture.height(kWidth) + top;
  const frame = { look: look(), width: kWidth, height, top, saving: true };
  const option = { ...picture.option(frame), title: titleOption(picture, frame.look, caption) };
  if (format === "svg") {
    const chart = echarts.init(null, null, { renderer: "svg", ssr: true, width: kWidth, height });
    chart.setOption(option);
    const svg = chart.renderToSVGString();
    chart.dispose();
    return new Blob([svg], { type: "image/svg+xml" });
  }
  const element = document.createElement("div"); // never attached to the page
  const chart = echarts.init(element, null,
    { renderer: "canvas", width: kWidth, height, devicePixelRatio: 2 });
  chart.setOption(option);
  const url = chart.getDataURL({ type: "png", pixelRatio: 2, backgroundColor: frame.look.card });
  chart.dispose();
  return dataUrlToBlob(url);
}

export function savePicture(picture: Picture, format: Format): void {
  download(render(picture, format), `snapkv-${picture.name}.${format}`);
}
