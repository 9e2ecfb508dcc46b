// What the engine (crates/web, through wasm.ts) answers. Times in s, sizes in bytes, rates in bit/s, unless a name says
// otherwise.

/** A parameter of a queue, from the Rust types. */
export interface Parameter {
  name: string;
  /** "time", "rate", "bytes", "queue-size", "sampling", "choice", "boolean", "integer", "number", "other". */
  type: string;
  /** What it takes, in words. */
  takes?: string;
  /** As a file would have it; null if it has none. */
  default: unknown;
  required?: boolean;
  /** Values of a choice. */
  choices?: (string | boolean)[];
  /** Where the default comes from. */
  source?: string | null;
  doc: string;
}

export interface QueueKind {
  kind: string;
  title: string;
  parameters: Parameter[];
}

export interface MetricTitle {
  /** Without the names of links and groups. */
  name: string;
  title: string;
  /** "s", "bit/s", "fraction", "count", "1", "packets", ... */
  measure: string;
  doc: string;
}

export interface Catalog {
  version: string;
  queues: QueueKind[];
  presets: { name: string; title: string }[];
  metrics: MetricTitle[];
}

export interface Case {
  label: string;
  factors: Record<string, unknown>;
}

export interface Fault {
  message: string;
  line?: number;
  key?: string;
}

export type Checked =
  | {
      ok: true;
      name: string;
      replications: number;
      seed: number;
      duration_s: number;
      cases: Case[];
      warnings: string[];
    }
  | { ok: false; errors: Fault[] };

export interface Options {
  /** Interval of the series, s. Without it there are no series. */
  series?: number;
  packets?: { link: string; from_s: number; to_s: number; most: number };
  histograms?: boolean;
}

export interface QueueSeries {
  time_s: Float64Array;
  packets: Float64Array;
  bytes: Float64Array;
  delay_s: Float64Array;
  /** Counts in the interval that ends at `time_s`. */
  drops: Float64Array;
  marks: Float64Array;
  probability?: Float64Array;
}

export interface FlowSeries {
  time_s: Float64Array;
  goodput: Float64Array;
  cwnd?: Float64Array;
}

export interface Histogram {
  /** Upper ends of the bins. */
  delay_s: Float64Array;
  counts: Float64Array;
}

/** Events of packets at a link as columns, in the order of time. */
export interface PacketEvents {
  time_s: Float64Array;
  /** Place in EVENTS. */
  kind: Uint8Array | Float64Array;
  /** Place in `groups`. */
  group: Uint32Array | Float64Array;
  flow: Uint32Array | Float64Array;
  size: Uint32Array | Float64Array;
  id: Float64Array;
  groups: string[];
  /** Whether events were left out because there were too many. */
  truncated?: boolean;
}

export const EVENTS = ["arrival", "departure", "drop", "mark"] as const;

export interface Result {
  metrics: Record<string, number | null>;
  series: {
    queues: Record<string, QueueSeries>;
    flows: Record<string, Record<string, FlowSeries>>;
  };
  histograms: Record<string, Histogram>;
  packets?: PacketEvents;
}

export type Interval = { mean: number; half_width: number } | { mean: number | null; why: string };

/** The engine in a worker. */
export interface Engine {
  catalog(): Catalog;
  check(text: string, files: Record<string, string>): Checked;
  /** Throws an Error with the engine's words if the run is not possible. */
  run(
    text: string,
    files: Record<string, string>,
    place: number,
    replication: number,
    options: Options,
    progress?: (simulated_s: number, duration_s: number) => void,
  ): Result;
  interval(values: number[]): Interval;
}
