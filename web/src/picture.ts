// SPDX-License-Identifier: MIT
// The content of a chart: its texts and its ECharts options. chart.ts draws pictures on the page,
// save.ts into files. Pictures do not depend on the page, so that tests can read them in Node.
import type { Look } from "./colour";
import type { Option } from "./echarts";

/** What the options depend on besides the data. */
export interface Frame {
  look: Look;
  width: number;
  height: number;
  /** Pixels at the top for the title and caption of a saved picture; 0 on the page. */
  top: number;
  saving: boolean;
}

export interface Picture {
  /** Name of the saved file, and of the card for tests: "kept-map". */
  name: string;
  title: string;
  /** A sentence that says what the picture shows; it may depend on choices. */
  caption(): string;
  /** What the user can do with it on the page; not part of a saved picture. */
  hint?: string;
  height(width: number): number;
  option(frame: Frame): Option;
  /** For pictures made of one image: the tooltip at a point in axis units, in plain text. */
  describe?(x: number, y: number): string | null;
  /** Handles a click at a place on the x axis. */
  click?: (x: number) => void;
}

// single quotes, because ECharts writes the name unescaped into a double-quoted SVG attribute
const kFont = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', 'DejaVu Sans', sans-serif";

/** The options that all charts share. */
export function baseOption(frame: Frame): Option {
  const { look } = frame;
  return {
    animation: false,
    backgroundColor: frame.saving ? look.card : "transparent",
    textStyle: { fontFamily: kFont, color: look.ink },
    tooltip: {
      confine: true,
      backgroundColor: look.dark ? "#2a3545" : "#17202e",
      borderWidth: 0,
      textStyle: { color: "#f4f6f9", fontSize: 13, fontFamily: kFont },
    },
  };
}

/** A value or category axis with a name and unobtrusive lines. */
export function axis(frame: Frame, name: string, more: Record<string, unknown> = {}) {
  const { look } = frame;
  const { axisLabel, ...rest } = more as { axisLabel?: Record<string, unknown> };
  return {
    name,
    nameTextStyle: { color: look.soft, fontSize: 13 },
    axisLine: { lineStyle: { color: look.line } },
    axisTick: { lineStyle: { color: look.line } },
    splitLine: { lineStyle: { color: look.line, type: "dashed" } },
    axisLabel: { color: look.soft, fontSize: 12, hideOverlap: true, ...axisLabel },
    ...rest,
  };
}

/** An x axis with its name below the middle. */
export function xAxis(frame: Frame, name: string, more: Record<string, unknown> = {}) {
  return axis(frame, name, { nameLocation: "middle", nameGap: 28, ...more });
}

/** A y axis with its name along it; `gap` leaves room for the labels. */
export function yAxis(frame: Frame, name: string, gap: number, more: Record<string, unknown> = {}) {
  return axis(frame, name, { nameLocation: "middle", nameGap: gap, ...more });
}

/** A one-line legend below the room for the title; it scrolls if it is too long. */
export function legend(frame: Frame, data: string[]) {
  const { look } = frame;
  return {
    type: "scroll",
    data,
    top: frame.top,
    left: 8,
    right: 8,
    itemWidth: 22,
    itemHeight: 10,
    textStyle: { color: look.ink, fontSize: 13, lineHeight: 20 },
    pageIconColor: look.soft,
    pageIconInactiveColor: look.line,
    pageTextStyle: { color: look.soft },
    inactiveColor: look.line,
  };
}
