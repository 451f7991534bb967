// SPDX-License-Identifier: MIT
// Colours: the two looks (light and dark), scales and series.

export type Rgb = [number, number, number];

export interface Look {
  dark: boolean;
  card: string;
  ink: string;
  soft: string;
  line: string;
  dropped: Rgb;
  panel: Rgb;
}

const kLight: Look = {
  dark: false,
  card: "#ffffff",
  ink: "#17202e",
  soft: "#5a6677",
  line: "#dfe3e9",
  dropped: [150, 160, 174],
  panel: [240, 242, 245],
};
const kDark: Look = {
  dark: true,
  card: "#151c26",
  ink: "#e6ebf2",
  soft: "#98a5b7",
  line: "#28323f",
  dropped: [98, 112, 130],
  panel: [31, 40, 53],
};

export function lookOf(dark: boolean): Look {
  return dark ? kDark : kLight;
}

export function parseHex(hex: string): Rgb {
  return [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16)) as Rgb;
}

export function css([r, g, b]: Rgb, alpha = 1): string {
  return alpha === 1 ? `rgb(${r},${g},${b})` : `rgba(${r},${g},${b},${Number(alpha.toFixed(3))})`;
}

export function mix(a: Rgb, b: Rgb, t: number): Rgb {
  return [0, 1, 2].map((i) => Math.round(a[i] + (b[i] - a[i]) * t)) as Rgb;
}

/** Interpolates between evenly spaced stops; t in [0, 1]. */
export function gradient(stops: Rgb[], t: number): Rgb {
  const x = Math.max(0, Math.min(1, t)) * (stops.length - 1);
  const i = Math.min(stops.length - 2, Math.floor(x));
  return mix(stops[i], stops[i + 1], x - i);
}

/** Wrong to right: the usual colours of needle grids. */
export const kNeedleStops = ["#F0496E", "#EBB839", "#0CD79F"];

/** Colours for the place in the prompt that a kept entry comes from. */
const kOriginStops = ["#4f7cff", "#0cc8d7", "#0cd79f", "#ebb839", "#f0496e"].map(parseHex);
export const origin = (t: number): Rgb => gradient(kOriginStops, t);
export const kOriginCss = ["#4f7cff", "#0cc8d7", "#0cd79f", "#ebb839", "#f0496e"];

export function keptColour(look: Look): Rgb {
  return look.dark ? [12, 215, 159] : [8, 148, 112];
}
/** The yellow of a text marker. */
export function spotColour(look: Look): Rgb {
  return look.dark ? [255, 200, 61] : [240, 170, 0];
}

// Distinct for most kinds of colour blindness, and legible in both looks.
const kSeriesLight = ["#087f60", "#2f6bd8", "#d1364f", "#b07400", "#7a4fd0", "#0b8aa3", "#c2489e",
  "#5d7a1f", "#9a5b35", "#44546a"];
const kSeriesDark = ["#0cd79f", "#6ea4ff", "#ff6f88", "#f2c14b", "#b295ff", "#45cfe6", "#ff8fd8",
  "#a6cf4a", "#e0a07a", "#b8c4d4"];

/** Assigns colours to series by name: the full cache is always grey and snapkv always green. */
export function seriesColours(names: string[], look: Look): Map<string, string> {
  const colours = look.dark ? kSeriesDark : kSeriesLight;
  const result = new Map<string, string>();
  let next = names.some((name) => /^snapkv\b/.test(name)) ? 1 : 0;
  let first = true;
  for (const name of names) {
    if (/^full\b/.test(name)) {
      result.set(name, look.dark ? "#9aa7b8" : "#6b7787");
    } else if (/^snapkv\b/.test(name) && first) {
      result.set(name, colours[0]);
      first = false;
    } else {
      result.set(name, colours[next++ % colours.length]);
    }
  }
  return result;
}
