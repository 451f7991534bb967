// SPDX-License-Identifier: MIT
// Means and their intervals, computed as in eval/common/metrics.cpp for the printed table.

export interface Interval {
  mean: number;
  low: number;
  high: number;
  n: number;
}

/** The 95% Wilson interval of a share; for scores between 0 and 1, that of a share with the same mean. */
export function wilson(mean: number, n: number): Interval {
  if (n === 0) return { mean: 0, low: 0, high: 1, n };
  const z = 1.959964; // 97.5% point of the normal distribution
  const z2n = (z * z) / n;
  const centre = (mean + z2n / 2) / (1 + z2n);
  const half = (z / (1 + z2n)) * Math.sqrt((mean * (1 - mean)) / n + z2n / (4 * n));
  return { mean, low: Math.max(0, centre - half), high: Math.min(1, centre + half), n };
}

// 97.5% points of Student's t distribution for 1 to 30 degrees of freedom.
const kStudent = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.16, 2.145,
  2.131, 2.12, 2.11, 2.101, 2.093, 2.086, 2.08, 2.074, 2.069, 2.064, 2.06, 2.056, 2.052, 2.048, 2.045, 2.042];

/** A mean and its 95% interval by Student's t; a single value has no interval. */
export function meanInterval(values: number[]): { mean: number; low?: number; high?: number } {
  const mean = meanOf(values), n = values.length;
  if (n < 2) return { mean };
  const variance = values.reduce((sum, v) => sum + (v - mean) ** 2, 0) / (n - 1);
  const half = (kStudent[n - 2] ?? 1.96) * Math.sqrt(variance / n);
  return { mean, low: mean - half, high: mean + half };
}

export function meanOf(values: number[]): number {
  return values.reduce((a, b) => a + b, 0) / values.length;
}

/** Groups items by key; keys are in the order of their first item. */
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
