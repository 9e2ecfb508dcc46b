// Numbers as texts: no more digits than the evidence carries.

import type { Interval } from "./contract";
import { ONE_RUN } from "./runs";

interface Unit {
  text: string;
  scale: number;
}

const SCALED: Record<string, [number, string][]> = {
  s: [
    [1, "s"],
    [1e-3, "ms"],
    [1e-6, "µs"],
  ],
  "bit/s": [
    [1e9, "Gbit/s"],
    [1e6, "Mbit/s"],
    [1e3, "kbit/s"],
    [1, "bit/s"],
  ],
};

/** The unit in which a value, or the larger of several, reads well. */
export function unitFor(unit: string, ...values: (number | null)[]): Unit {
  if (unit === "fraction") return { text: "%", scale: 0.01 };
  if (unit === "1" || unit === "count") return { text: "", scale: 1 };
  const steps = SCALED[unit];
  if (!steps) return { text: unit, scale: 1 };
  const largest = Math.max(...values.map((value) => Math.abs(value ?? 0)));
  const [scale, text] = steps.find(([size]) => largest >= size) ?? steps.at(-1)!;
  return { text, scale };
}

/** A number with so many digits after the point, with a true minus sign. */
export const fixed = (value: number, digits: number): string =>
  value
    .toFixed(digits)
    .replace("-", "\u2212")
    .replace(/^\u2212(0(\.0+)?)$/, "$1");

export function significant(value: number, digits: number): string {
  if (value === 0) return "0";
  const after = digits - 1 - Math.floor(Math.log10(Math.abs(value)));
  return after >= 0 ? fixed(value, Math.min(after, 6)) : fixed(Number(value.toPrecision(digits)), 0);
}

export interface Told {
  /** "241.4" */
  value: string;
  /** "± 0.6", or nothing. */
  half: string;
  /** "ms", "%". */
  unit: string;
  /** What is to be known of it: "one run", "all 10 replications are equal". */
  note: string;
  /** Whether there is an interval. */
  sure: boolean;
}

/** All of it in a line: "241.4 ± 0.6 ms". */
export function line({ value, half, unit }: Told): string {
  const number = half ? `${value} ${half}` : value;
  return unit ? `${number} ${unit}` : number;
}

const MOST_DIGITS = 4;

/** Digits after the point for a half width: it has one significant digit, or two if the first is a 1. */
function digitsOf(half: number): number {
  const power = Math.floor(Math.log10(half));
  const leading = Math.floor(half / 10 ** power);
  return Math.min(6, Math.max(0, (leading === 1 ? 1 : 0) - power));
}

const nothing = (note: string): Told => ({ value: "–", half: "", unit: "", note, sure: false });

/** A value with its interval: the mean ends with the digit with which the half width ends. A value without an interval
 * has two digits if it is of one run, and says why. */
export function told(interval: Interval, unit: Unit): Told {
  if (interval.mean === null) return nothing("why" in interval ? interval.why : "");
  const mean = interval.mean / unit.scale;
  if ("why" in interval) {
    const value = significant(mean, interval.why === ONE_RUN ? 2 : 3);
    return { value, half: "", unit: unit.text, note: interval.why, sure: false };
  }
  const half = interval.half_width / unit.scale;
  if (!(half > 0)) return { value: significant(mean, 3), half: "", unit: unit.text, note: "", sure: true };
  // Nobody reads more than so many digits; the half width is then less than what they tell apart.
  const most = MOST_DIGITS - 1 - Math.floor(Math.log10(Math.max(Math.abs(mean), 1e-6)));
  const digits = Math.min(digitsOf(half), Math.max(0, most));
  const shown = fixed(half, digits);
  const width = Number(shown) > 0 ? `± ${shown}` : `± < ${fixed(10 ** -digits, digits)}`;
  return { value: fixed(mean, digits), half: width, unit: unit.text, note: "", sure: true };
}

/** What the difference of right and left says: nothing that its interval does not carry. */
export function verdict(interval: Interval, unit: Unit): Told {
  const undecided = (note: string): Told => ({ ...nothing(note), value: "undecided" });
  if (interval.mean === null) return nothing("why" in interval ? interval.why : "");
  if ("why" in interval) {
    const equal = interval.mean === 0 && interval.why !== ONE_RUN;
    return equal ? { ...nothing(interval.why), value: "equal", sure: true } : undecided(interval.why);
  }
  if (Math.abs(interval.mean) <= interval.half_width) return undecided("the interval of the difference holds 0");
  const size = told({ mean: Math.abs(interval.mean), half_width: interval.half_width }, unit);
  return { ...size, value: `${interval.mean < 0 ? "lower" : "higher"} by ${size.value}` };
}
