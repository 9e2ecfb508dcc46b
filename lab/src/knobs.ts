// Which knobs there are, between which limits, and whether a record from outside is one of knobs.

import type { FlowKnobs, Knobs, QueueKnobs, Value, View } from "./state";
import { DEFAULT } from "./state";

/** Knobs that are numbers, with a slider. */
export type NumberKnob =
  | "rate"
  | "round_trip"
  | "buffer"
  | "loss"
  | "calls"
  | "web_users"
  | "udp"
  | "duration"
  | "replications";

export interface Range {
  label: string;
  unit: string;
  /** The steps of the slider; any value between the first and the last can be typed. */
  steps: number[];
  whole: boolean;
  help: string;
}

const ladder = (from: number, to: number): number[] => {
  const steps: number[] = [];
  for (let power = 10 ** Math.floor(Math.log10(from)); power <= to; power *= 10) {
    for (const digit of [1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8]) {
      const step = Number((digit * power).toPrecision(3));
      if (step >= from && step <= to) steps.push(step);
    }
  }
  return steps;
};
const upTo = (last: number): number[] => Array.from({ length: last + 1 }, (_, i) => i);

export const RANGES: Record<NumberKnob, Range> = {
  rate: { label: "Rate", unit: "Mbit/s", steps: ladder(0.5, 500), whole: false, help: "Rate of the bottleneck link" },
  round_trip: {
    label: "Round trip",
    unit: "ms",
    steps: ladder(2, 600),
    whole: false,
    help: "Time there and back without any queue",
  },
  buffer: {
    label: "Buffer",
    unit: "ms",
    steps: ladder(2, 2000),
    whole: false,
    help: "Limit of both queues: the time that the link takes to send what fits into them",
  },
  loss: {
    label: "Loss on the wire",
    unit: "%",
    steps: [0, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10],
    whole: false,
    help: "Share of packets that the wire loses at random, after the queue",
  },
  calls: { label: "Calls", unit: "", steps: upTo(20), whole: true, help: "Telephone calls, each 80 kbit/s (G.711)" },
  web_users: {
    label: "Web users",
    unit: "",
    steps: [...upTo(20), 25, 30, 40, 50],
    whole: true,
    help: "People who load pages of today over HTTP/2, one after the other",
  },
  udp: {
    label: "UDP share",
    unit: "%",
    steps: [0, 1, 2, 5, 10, 15, 20, 30, 40, 50, 60, 70, 80, 90, 100, 110, 120],
    whole: false,
    help: "One UDP sender of constant rate, in percent of the link's rate; it does not react to loss",
  },
  duration: {
    label: "Simulated time",
    unit: "s",
    steps: [6, 12, 18, 24, 30, 45, 60, 90, 120, 180, 300],
    whole: true,
    help: "The first sixth is not measured",
  },
  replications: {
    label: "Runs of each queue",
    unit: "",
    steps: [1, 2, 3, 5, 8, 10, 15, 20, 30],
    whole: true,
    help: "Runs with other random numbers: from them come the intervals",
  },
};

/** TCP presets of the menu, and what people call them. */
export const CONTROLS: Record<string, string> = {
  cubic: "CUBIC",
  newreno: "NewReno",
  sack: "Reno with SACK",
  linux: "Linux (CUBIC)",
  bbr: "BBR v1",
  bbr3: "BBR v3",
  prague: "Prague (L4S)",
  dctcp: "DCTCP",
  vegas: "Vegas",
  ledbat: "LEDBAT",
  westwood: "Westwood+",
  illinois: "Illinois",
  htcp: "H-TCP",
  bic: "BIC",
  copa: "Copa",
};

/** The most flows of a group. */
export const MOST_FLOWS = 50;
const FLOW_STEPS = [...upTo(20), 25, 30, 40, MOST_FLOWS];
export const FLOWS: Range = {
  label: "flows",
  unit: "",
  steps: FLOW_STEPS,
  whole: true,
  help: "Downloads that never end",
};

/** What people call the queues that the menu has. Those that need classes or another queue are left to files. */
export const QUEUES: Record<string, string> = {
  "tail-drop": "Tail drop",
  "head-drop": "Head drop",
  red: "RED",
  "adaptive-red": "Adaptive RED",
  "self-configuring-red": "Self-configuring RED",
  "dynamic-threshold-red": "Dynamic-threshold RED",
  "red-tail": "RED+Tail",
  choke: "CHOKe",
  codel: "CoDel",
  cobalt: "COBALT",
  "fq-codel": "FQ-CoDel",
  cake: "CAKE",
  pie: "PIE",
  "docsis-pie": "DOCSIS-PIE",
  "fq-pie": "FQ-PIE",
  pi: "PI",
  pi2: "PI2",
  dualpi2: "DualPI2",
  step: "Step marking",
  fq: "fq (Linux)",
  sfq: "SFQ",
  blue: "BLUE",
  sfb: "SFB",
  rem: "REM",
  avq: "AVQ",
  sred: "SRED",
  gsp: "GSP",
  "pfifo-fast": "pfifo_fast",
};

const rounded = (ms: number): string => `${Number(ms.toPrecision(2))} ms`;

/** What a kind needs beside its limit, for a buffer in ms: thresholds as max_th = 3 min_th (Floyd 1997, "RED: Discussions
 * of Setting Parameters"), with max_th at half of the buffer. */
export function startParameters(kind: string, buffer: number): Record<string, Value> {
  switch (kind) {
    case "red":
    case "self-configuring-red":
    case "dynamic-threshold-red":
    case "choke":
      return { min_th: rounded(buffer / 6), max_th: rounded(buffer / 2) };
    case "gsp":
      return { threshold: rounded(buffer / 4) };
    default:
      return {};
  }
}

// --- What comes from outside ------------------------------------------------------------------------------------------

class Wrong extends Error {}

function record(value: unknown, what: string, keys: readonly string[]): Record<string, unknown> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw new Wrong(`${what} is not a table`);
  for (const key of Object.keys(value))
    if (!keys.includes(key)) throw new Wrong(`${what} has no knob "${key.slice(0, 40)}"`);
  return value as Record<string, unknown>;
}

function number(value: unknown, what: string, least: number, most: number, whole: boolean): number {
  if (typeof value !== "number" || !Number.isFinite(value)) throw new Wrong(`${what} is not a number`);
  if (value < least || value > most) throw new Wrong(`${what} is ${value}; accepted: ${least} to ${most}`);
  if (whole && !Number.isInteger(value)) throw new Wrong(`${what} is ${value}; accepted: a whole number`);
  return value;
}

function inside(value: unknown, what: string, range: Range): number {
  return number(value, what, range.steps[0]!, range.steps.at(-1)!, range.whole);
}

function choice(value: unknown, what: string, choices: Record<string, string>): string {
  if (typeof value !== "string" || !Object.hasOwn(choices, value)) {
    throw new Wrong(`${what} is none of: ${Object.keys(choices).join(", ")}`);
  }
  return value;
}

function pair(value: unknown, what: string): [unknown, unknown] {
  if (!Array.isArray(value) || value.length !== 2) throw new Wrong(`${what} is not a list of two`);
  return [value[0], value[1]];
}

const MOST_PARAMETERS = 40;

function parameters(value: unknown, what: string): Record<string, Value> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw new Wrong(`${what} is not a table`);
  const entries = Object.entries(value);
  if (entries.length > MOST_PARAMETERS) throw new Wrong(`${what} has more than ${MOST_PARAMETERS} keys`);
  return Object.fromEntries(
    entries.map(([key, each]) => {
      if (!/^[a-z][a-z0-9_]{0,40}$/.test(key) || key === "kind" || key === "label" || key === "limit") {
        throw new Wrong(`${what} has a key that no parameter has`);
      }
      const fine =
        typeof each === "boolean" ||
        (typeof each === "number" && Number.isFinite(each)) ||
        (typeof each === "string" && /^[\x20-\x7e\u00b5\u03bc]{1,60}$/.test(each));
      if (!fine) throw new Wrong(`${what}.${key} is not a number, a short text, true or false`);
      return [key, each as Value];
    }),
  );
}

function downloads(value: unknown, what: string): FlowKnobs {
  const given = record(value, what, ["flows", "tcp"]);
  return { flows: inside(given.flows, `${what}.flows`, FLOWS), tcp: choice(given.tcp, `${what}.tcp`, CONTROLS) };
}

function queue(value: unknown, what: string): QueueKnobs {
  const given = record(value, what, ["kind", "parameters"]);
  return {
    kind: choice(given.kind, `${what}.kind`, QUEUES),
    parameters: parameters(given.parameters ?? {}, `${what}.parameters`),
  };
}

/** The largest seed that a number of JavaScript holds exactly. */
const MOST_SEED = Number.MAX_SAFE_INTEGER;

/** The knobs in a record from outside, such as a link; knobs that it leaves out are at their default. Throws an Error
 * that names the knob and what is accepted. */
export function readKnobs(value: unknown): Knobs {
  const given = record(value, "the scene", Object.keys(DEFAULT));
  const all: Record<string, unknown> = { ...DEFAULT, ...given };
  const numbers = Object.fromEntries(
    Object.entries(RANGES).map(([name, range]) => [name, inside(all[name], name, range)]),
  ) as Record<NumberKnob, number>;
  if (typeof all.ecn !== "boolean") throw new Wrong("ecn is neither true nor false");
  const [first, second] = pair(all.downloads, "downloads");
  const [left, right] = pair(all.queues, "queues");
  return {
    ...numbers,
    ecn: all.ecn,
    seed: number(all.seed, "seed", 0, MOST_SEED, true),
    downloads: [downloads(first, "downloads.0"), downloads(second, "downloads.1")],
    queues: [queue(left, "queues.0"), queue(right, "queues.1")],
  };
}

const OPEN: Record<View["open"], string> = { queue: "", delay: "", flows: "", packets: "" };

/** How the page looks, from a record from outside. */
export function readView(value: unknown): View {
  const given = record(value ?? {}, "the view", ["cases", "open"]);
  const [left, right] = pair(given.cases ?? [0, 1], "cases");
  return {
    cases: [number(left, "cases.0", 0, 9999, true), number(right, "cases.1", 0, 9999, true)],
    open: choice(given.open ?? "queue", "open", OPEN) as View["open"],
  };
}

/** The place of the step of a slider that is nearest to a value. */
export function nearestStep(steps: readonly number[], value: number): number {
  let best = 0;
  steps.forEach((step, place) => {
    if (Math.abs(step - value) < Math.abs(steps[best]! - value)) best = place;
  });
  return best;
}
