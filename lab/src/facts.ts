// What a picture needs to know of an experiment file beside what the engine tells.

import { parse } from "smol-toml";

const TIMES: Record<string, number> = { ns: 1e-9, us: 1e-6, µs: 1e-6, ms: 1e-3, s: 1, min: 60, h: 3600 };
const RATES: Record<string, number> = { "bit/s": 1, "kbit/s": 1e3, "Mbit/s": 1e6, "Gbit/s": 1e9 };

function quantity(value: unknown, units: Record<string, number>): number | null {
  const found = typeof value === "string" ? /^\s*([0-9.e+-]+)\s*(\S+)\s*$/.exec(value) : null;
  const scale = found && Object.hasOwn(units, found[2]!) ? units[found[2]!]! : Number.NaN;
  const number = found ? Number(found[1]) * scale : Number.NaN;
  return Number.isFinite(number) ? number : null;
}

export interface Facts {
  warmup_s: number;
  /** Rate of `[bottleneck]`, bit/s, if it is one. */
  rate: number | null;
  /** What its table shows, by `[report]`. */
  metrics: string[];
}

/** Facts of a text that the engine has accepted; what cannot be read is left out. */
export function factsOf(text: string): Facts {
  try {
    const tree = parse(text) as {
      warmup?: unknown;
      bottleneck?: { rate?: unknown };
      report?: { metrics?: unknown };
    };
    const metrics = tree.report?.metrics;
    return {
      warmup_s: quantity(tree.warmup, TIMES) ?? 0,
      rate: quantity(tree.bottleneck?.rate, RATES),
      metrics: Array.isArray(metrics) ? metrics.filter((each) => typeof each === "string") : [],
    };
  } catch {
    return { warmup_s: 0, rate: null, metrics: [] };
  }
}
