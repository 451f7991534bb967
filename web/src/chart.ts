// SPDX-License-Identifier: MIT
// Draws pictures into the page's cards, and redraws them when the window's width, the colour scheme
// or a choice changes.
import { lookOf, type Look } from "./colour";
import { echarts, type Chart } from "./echarts";
import type { Picture } from "./picture";
import { hideTip, showTip } from "./tip";

const scheme = window.matchMedia("(prefers-color-scheme: dark)");
const drawers = new Set<() => void>();
scheme.addEventListener("change", () => drawers.forEach((draw) => draw()));

export function look(): Look {
  return lookOf(scheme.matches);
}

/** Calls `draw` whenever the colour scheme changes. */
export function onSchemeChange(draw: () => void): void {
  drawers.add(draw);
}

function follow(chart: Chart, picture: Picture): void {
  const zr = chart.getZr();
  zr.on("mousemove", (event) => {
    const point = [event.offsetX, event.offsetY];
    const inside = chart.containPixel({ gridIndex: 0 }, point);
    const value = inside ? chart.convertFromPixel({ gridIndex: 0 }, point) : null;
    const text = value && picture.describe ? picture.describe(value[0], value[1]) : null;
    const mouse = event.event as unknown as MouseEvent;
    if (text) showTip(text, mouse.clientX, mouse.clientY);
    else hideTip();
  });
  zr.on("globalout", hideTip);
}

function onClick(chart: Chart, click: (x: number) => void): void {
  chart.getZr().on("click", (event) => {
    const point = [event.offsetX, event.offsetY];
    if (chart.containPixel({ gridIndex: 0 }, point)) click(chart.convertFromPixel({ gridIndex: 0 }, point)[0]);
  });
}

/** Draws into `element`; returns a function that redraws after a choice. */
export function mountChart(element: HTMLElement, picture: Picture): () => void {
  const height = () => picture.height(element.clientWidth);
  element.style.height = `${height()}px`;
  const chart = echarts.init(element, null, { renderer: "canvas" });
  let zoom: { start?: number; end?: number }[] = [];
  const draw = () => {
    element.style.height = `${height()}px`;
    chart.resize();
    const frame = { look: look(), width: element.clientWidth, height: height(), top: 0, saving: false };
    const option = picture.option(frame);
    const zooms = (option.dataZoom ?? []) as { start?: number; end?: number }[];
    zooms.forEach((z, i) => Object.assign(z, zoom[i]));
    chart.setOption(option, { notMerge: true });
    element.dataset.drawn = "true";
  };
  chart.on("datazoom", () => {
    const zooms = (chart.getOption().dataZoom ?? []) as { start: number; end: number }[];
    zoom = zooms.map(({ start, end }) => ({ start, end }));
  });
  draw();
  if (picture.describe) follow(chart, picture);
  if (picture.click) onClick(chart, picture.click);
  drawers.add(draw);
  let width = element.clientWidth;
  new ResizeObserver(() => {
    if (element.clientWidth === width) return;
    width = element.clientWidth;
    draw();
  }).observe(element);
  return draw;
}
