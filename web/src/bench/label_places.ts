// SPDX-License-Identifier: MIT
// Where the names of points go, so that none covers another name or a point.

export interface Box {
  x: number;
  y: number;
  width: number;
  height: number;
}

/** A name's place: its top left corner, and which name there is room for. */
export interface Place {
  x: number;
  y: number;
  shows: "name" | "short" | "nothing";
}

export interface Named {
  /** The point's middle. */
  x: number;
  y: number;
  /** Of its name, and of the short one that stands for it where there is no room. */
  width: number;
  shortWidth: number;
}

const kHeight = 15;
const kGap = 9; // from the point's middle
const kPoint = 6; // half its size, and a little

const meets = (a: Box, b: Box) =>
  a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height && b.y < a.y + a.height;
const holds = (outer: Box, box: Box) =>
  box.x >= outer.x && box.y >= outer.y && box.x + box.width <= outer.x + outer.width && box.y + box.height <= outer.y + outer.height;

/** Places around the point, the usual one first. */
function around({ x, y }: Named, width: number): Box[] {
  const box = (left: number, top: number) => ({ x: left, y: top, width, height: kHeight });
  const middle = y - kHeight / 2;
  const [right, left] = [x + kGap, x - kGap - width];
  return [box(right, middle), box(left, middle), box(x - width / 2, y - kGap - kHeight), box(x - width / 2, y + kGap),
    box(right, middle - 10), box(right, middle + 10), box(left, middle - 10), box(left, middle + 10)];
}

/** `taken`: what else is written on the chart, whose inside is `chart`. In the points' order. */
export function placeNames(points: Named[], taken: Box[], chart: Box): Place[] {
  const occupied = [...taken, ...points.map(({ x, y }) =>
    ({ x: x - kPoint, y: y - kPoint, width: 2 * kPoint, height: 2 * kPoint }))];
  const places = new Array<Place>(points.length);
  // from above: those below give way
  const order = points.map((_, i) => i).sort((a, b) => points[a].y - points[b].y || points[a].x - points[b].x);
  for (const i of order) {
    const point = points[i];
    const isFree = (box: Box) => holds(chart, box) && !occupied.some((other) => meets(other, box));
    const whole = around(point, point.width).find(isFree);
    const box = whole ?? around(point, point.shortWidth).find(isFree);
    if (box) occupied.push(box);
    places[i] = { x: box?.x ?? point.x, y: box?.y ?? point.y, shows: whole ? "name" : box ? "short" : "nothing" };
  }
  return places;
}
