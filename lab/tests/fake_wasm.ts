// An engine that simulates nothing, for tests of the page without the module: a queue whose delay is a sawtooth.

import type { Catalog, Checked, Engine, Interval, Options, Result } from "../src/contract";

const size = { name: "limit", type: "size", default: null, doc: "Limit" };
const catalog: Catalog = {
  version: "0.0.0",
  queues: [
    { kind: "tail-drop", title: "First-in first-out; an arrival that does not fit is dropped.", parameters: [size] },
    {
      kind: "fq-codel",
      title: "Flow queueing with CoDel (RFC 8290).",
      parameters: [
        size,
        { name: "target", type: "time", default: "5 ms", doc: "Acceptable standing queueing delay" },
        { name: "interval", type: "time", default: "100 ms", doc: "Interval" },
        { name: "ecn", type: "boolean", default: true, doc: "Mark" },
        { name: "quantum", type: "bytes", default: "1500 B", doc: "Bytes of a turn" },
      ],
    },
    {
      kind: "red",
      title: "Random Early Detection.",
      parameters: [
        size,
        { name: "min_th", type: "size", default: null, doc: "Minimum" },
        { name: "max_th", type: "size", default: null, doc: "Maximum" },
        { name: "max_p", type: "number", default: 0.1, doc: "Probability" },
        { name: "spacing", type: "choice", default: "wait", choices: ["wait", "uniform"], doc: "Spacing" },
        { name: "ecn", type: "boolean", default: false, doc: "Mark" },
      ],
    },
  ],
  presets: [],
  metrics: [
    { name: "utilization", measure: "fraction", title: "Utilization", doc: "" },
    { name: "queue_delay_p95", measure: "s", title: "Queueing delay, 95th percentile", doc: "" },
    { name: "queue_delay_p50", measure: "s", title: "Queueing delay, median", doc: "" },
    { name: "loss", measure: "fraction", title: "Packets lost at the queue", doc: "" },
    { name: "goodput", measure: "bit/s", title: "TCP goodput", doc: "" },
    { name: "fairness", measure: "1", title: "Jain's fairness index", doc: "" },
    { name: "mos", measure: "1", title: "Quality", doc: "" },
  ],
};

const number = (text: string, pattern: RegExp): number => Number(pattern.exec(text)?.[1] ?? "0");

function check(text: string): Checked {
  if (text.includes("unknown_key")) {
    const line = text.split("\n").findIndex((each) => each.includes("unknown_key")) + 1;
    return {
      ok: false,
      errors: [{ message: "unknown_key: unknown key; accepted: name, duration", line, key: "unknown_key" }],
    };
  }
  const labels = [...text.matchAll(/label = "([^"]*)"/g)].map((each) => each[1]!);
  return {
    ok: true,
    name: "fake",
    replications: number(text, /replications = ([0-9]+)/) || 1,
    seed: 1,
    duration_s: number(text, /duration = "([0-9.]+) s"/),
    cases: labels.length ? labels.map((label) => ({ label, factors: {} })) : [{ label: "", factors: {} }],
    warnings: [],
  };
}

function random(seed: number): () => number {
  let state = seed * 2654435761 + 1;
  return () => {
    state = (state * 1664525 + 1013904223) % 4294967296;
    return state / 4294967296;
  };
}

function run(text: string, place: number, replication: number, options: Options): Result {
  const checked = check(text);
  const duration = checked.ok ? checked.duration_s : 1;
  const rate = 1e6 * number(text, /rate = "([0-9.]+) Mbit/);
  const buffer = number(text, /limit = "([0-9.]+) ms"/) / 1000;
  const draw = random(1 + 97 * replication + place);
  const samples = options.series ? Math.round(duration / options.series) : 0;
  const most = place === 0 ? buffer : Math.min(buffer, 0.015);
  const column = (of: (i: number) => number) => Float64Array.from({ length: samples }, (_, i) => of(i));
  const time_s = column((i) => ((i + 1) * duration) / samples);
  const wave = (i: number): number => Math.min(1, 0.55 + 0.45 * ((i % 170) / 170) * (0.9 + 0.2 * draw()));
  const delay_s = column((i) => most * Math.min(1, i / 40) * wave(i));
  const flows = Math.max(1, number(text, /flows = ([0-9]+)/));
  const flow = (mean: number) => ({
    time_s,
    goodput: column((i) => mean * (0.8 + 0.4 * draw()) * (1 + 0.3 * Math.sin(i / 90))),
    cwnd: column((i) => 40_000 * wave(i)),
  });
  const each = (rate * 0.95) / flows;
  const bins = 200;
  const events: [number, number, number, number, number][] = [];
  if (options.packets) {
    const { from_s, to_s } = options.packets;
    const gap = 12_000 / rate;
    for (let i = 0, t = from_s; t < to_s; i++, t += gap) {
      const arrives = Math.max(from_s, t - most * wave(i));
      events.push([arrives, 0, 0, i % flows, i]);
      events.push([t, i % 90 === 89 ? 2 : 1, 0, i % flows, i]);
    }
    events.sort((a, b) => a[0] - b[0]);
  }
  const of = (at: 0 | 1 | 2 | 3 | 4) => Float64Array.from(events, (event) => event[at]);
  return {
    metrics: {
      utilization: 0.95 + 0.05 * draw(),
      queue_delay_p95: most * (0.97 + 0.03 * draw()),
      queue_delay_p50: most * (0.7 + 0.1 * draw()),
      loss: 0.003 * draw(),
      "downloads.goodput": rate * (0.93 + 0.01 * draw()),
      "downloads.fairness": place ? 0.99 + 0.01 * draw() : 0.9 * draw(),
      "calls.mos": place ? 4.3 + 0.05 * draw() : 2.1 + 0.3 * draw(),
    },
    series: {
      queues: options.series
        ? {
            bottleneck: {
              time_s,
              packets: delay_s.map((delay) => (delay * rate) / 12_000),
              bytes: delay_s.map((delay) => (delay * rate) / 8),
              delay_s,
              drops: column((i) => (i % 170 === 169 ? 3 : 0)),
              marks: column(() => 0),
            },
          }
        : {},
      flows: options.series
        ? {
            downloads: Object.fromEntries(
              Array.from({ length: flows }, (_, i) => [String(i), flow(each * (1 - i * 0.1))]),
            ),
          }
        : {},
    },
    histograms: options.histograms
      ? {
          bottleneck: {
            delay_s: Float64Array.from({ length: bins }, (_, i) => (most * (i + 1)) / bins),
            counts: Float64Array.from({ length: bins }, (_, i) => (i < bins / 2 ? i : 200)),
          },
        }
      : {},
    ...(options.packets
      ? {
          packets: {
            time_s: of(0),
            kind: of(1),
            group: of(2),
            flow: of(3),
            size: of(0).map(() => 1500),
            id: of(4),
            groups: ["downloads"],
          },
        }
      : {}),
  };
}

/** A normal quantile in place of Student's: this engine is for looks. */
function interval(values: number[]): Interval {
  const mean = values.reduce((a, b) => a + b, 0) / values.length;
  if (values.length < 2) return { mean, why: "one run" };
  const variance = values.reduce((a, b) => a + (b - mean) ** 2, 0) / (values.length - 1);
  if (variance === 0) return { mean, why: `all ${values.length} replications are equal` };
  return { mean, half_width: 2 * Math.sqrt(variance / values.length) };
}

export type { Told, WasmEngine } from "../src/wasm";

export class EngineFault extends Error {}

export function instantiate(_module: WebAssembly.Module): Promise<Engine> {
  return Promise.resolve({
    catalog: () => catalog,
    check: (text) => check(text),
    run: (text, _files, place, replication, options) => run(text, place, replication, options),
    interval,
  });
}
