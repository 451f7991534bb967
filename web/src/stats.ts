// SPDX-License-Identifier: MIT
// Means and their intervals, as eval/common/metrics.cpp computes them for the printed table.

export interface Interval {
  mean: number;
  low: number;
  high: number;
  n: number;
}

/** The 95% Wilson interval of a share; for scores between 0 and 1 the one of a share with the same mean. */
export function wilson(mean: number, n: number): Interval {
  if (n === 0) return { mean: 0, low: 0, high: 1, n };
  const z = 1.959964; // 97.5% point of the normal distribution
  const z2n = (z * z) / n;
  const centre = (mean + z2n / 2) / (1 + z2n);
  const half = (z / (1 + z2n)) * Math.sqrt((mean * (1 - mean)) / n + z2n / (4 * n));
  return { mean, low: Math.max(0, centre - half), high: Math.min(1, centre + half), n };
}

export function meanOf(values: number[]): number {
  return values.reduce((a, b) => a + b, 0) / values.length;
}

/** Items by key, keys in the order of their first item. */
export function groupBy<T>(items: T[], key: (item: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const item of items) {
    const group = groups.get(key(item));
    if (group) group.push(item);
    else groups.set(key(item), [item]);
  }
  return groups;
}

export function distinct<T>(items: T[]): T[] {
  return [...new Set(items)];
}
