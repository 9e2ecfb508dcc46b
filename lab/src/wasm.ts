// The engine as a WebAssembly module (crates/web): requests and answers over its memory.

import type {
  Catalog,
  Checked,
  Engine,
  FlowSeries,
  Histogram,
  Interval,
  Options,
  PacketEvents,
  QueueSeries,
  Result,
} from "./contract";

/** What the module exports; `crates/web/src/lib.rs` says what each does. */
interface Exports {
  memory: WebAssembly.Memory;
  redtail_input(length: number): number;
  redtail_call(): void;
  redtail_output(): number;
  redtail_output_length(): number;
  redtail_columns(): number;
  redtail_columns_length(): number;
  redtail_panic(): number;
  redtail_panic_length(): number;
}

/** How often the progress of a run is told. */
const STEPS = 25;

type Columns = Record<string, Float64Array>;

interface Refused {
  ok: false;
  errors: { message: string; line?: number; key?: string }[];
  /** The whole message, as `redtail check` prints it. */
  text: string;
}

interface State {
  ok: true;
  now_s: number;
  duration_s: number;
  over: boolean;
}

/** The result of a run as the module gives it. */
interface Finished {
  ok: true;
  metrics: Record<string, number | null>;
  /** Names of the links; the first is the bottleneck, or the first of a chain. */
  links: string[];
  groups: string[];
  flows?: Columns;
  series?: {
    queues: Record<string, Columns>;
    flows: Record<string, Record<string, Columns>>;
    groups: Record<string, Columns>;
  };
  histograms?: Record<string, Columns>;
  packets?: Columns & { kinds: string[]; left_out: number };
}

/**
 * Is told how far a run is; `so_far` gives the series up to there, and can be called only before this returns.
 */
export type Told = (simulated_s: number, duration_s: number, so_far: () => Result["series"]) => void;

/** The engine, whose runs also tell their series while they are made. */
export interface WasmEngine extends Engine {
  run(
    text: string,
    files: Record<string, string>,
    place: number,
    replication: number,
    options: Options,
    progress?: Told,
  ): Result;
}

/** A fault of the engine itself: the module cannot be used any more. */
export class EngineFault extends Error {}

/** An instance of the module with what it is asked. */
export class Module {
  private readonly exports: Exports;
  private fault: EngineFault | null = null;

  constructor(instance: WebAssembly.Instance) {
    this.exports = instance.exports as unknown as Exports;
  }

  /** Carries out a request; places of columns in the answer become arrays. */
  ask<Answer>(request: object): Answer | Refused {
    // What a panic leaves is not whole.
    if (this.fault) throw this.fault;
    const { exports } = this;
    const bytes = new TextEncoder().encode(JSON.stringify(request));
    try {
      const place = exports.redtail_input(bytes.length);
      if (place === 0) {
        const message = "the experiment and its files are too long for this page";
        return { ok: false, errors: [{ message }], text: message };
      }
      new Uint8Array(exports.memory.buffer, place, bytes.length).set(bytes);
      exports.redtail_call();
    } catch (fault) {
      throw this.failed(fault);
    }
    const text = this.text(exports.redtail_output(), exports.redtail_output_length());
    // A copy, since the memory moves with the next request.
    const place = exports.redtail_columns();
    const length = exports.redtail_columns_length();
    const columns = length > 0 ? new Float64Array(exports.memory.buffer, place, length) : new Float64Array();
    return JSON.parse(text, (_, value) => column(value, columns)) as Answer | Refused;
  }

  private failed(fault: unknown): EngineFault {
    const length = this.exports.redtail_panic_length();
    // Without a message it did not panic: memory that cannot be had ends the module at once.
    const message =
      length > 0
        ? `the engine failed, which is a fault of redtail: ${this.text(this.exports.redtail_panic(), length)}`
        : `the engine ended, perhaps because it needs more memory than this page gives it (1 GiB): ${fault}`;
    this.fault = new EngineFault(message);
    return this.fault;
  }

  private text(place: number, length: number): string {
    return new TextDecoder().decode(new Uint8Array(this.exports.memory.buffer, place, length));
  }
}

/** The column that a value of an answer stands for; the value itself if it stands for none. */
function column(value: unknown, columns: Float64Array): unknown {
  if (typeof value !== "object" || value === null || !("column" in value)) return value;
  const [place, length] = value.column as [number, number];
  return columns.slice(place, place + length);
}

/** An answer that is no refusal. */
function sound<Answer extends { ok: true }>(answer: Answer | Refused): Answer {
  if (!answer.ok) throw new Error(answer.text);
  return answer;
}

/** What a table has under a name. */
function of(columns: Columns, name: string): Float64Array {
  const found = columns[name];
  if (!found) throw new Error(`the engine gave no column ${name}`);
  return found;
}

function queueSeries(columns: Columns): QueueSeries {
  return {
    time_s: of(columns, "time_s"),
    packets: of(columns, "packets"),
    bytes: of(columns, "bytes"),
    delay_s: of(columns, "delay_s"),
    drops: of(columns, "drops"),
    marks: of(columns, "marks"),
    probability: of(columns, "probability"),
  };
}

function flowSeries(columns: Columns): FlowSeries {
  const found: FlowSeries = { time_s: of(columns, "time_s"), goodput: of(columns, "goodput_bps") };
  if (columns.cwnd_bytes) found.cwnd = columns.cwnd_bytes;
  return found;
}

/** The series of flows; a group that has none, such as one of UDP or of users, is one series named `all`. */
function allFlows({ flows, groups }: NonNullable<Finished["series"]>): Result["series"]["flows"] {
  const found: Result["series"]["flows"] = {};
  for (const [group, columns] of Object.entries(groups)) {
    const each = flows[group] ?? { all: columns };
    found[group] = Object.fromEntries(Object.entries(each).map(([flow, of]) => [flow, flowSeries(of)]));
  }
  return found;
}

/** The distributions of queueing delays, by link: the first link of a network with one bottleneck has no prefix. */
function delays(histograms: Record<string, Columns>, links: string[]): Record<string, Histogram> {
  const found: Record<string, Histogram> = {};
  for (const link of links) {
    const columns = histograms[`${link}.queue_delay`] ?? (link === links[0] ? histograms.queue_delay : undefined);
    if (columns) found[link] = { delay_s: of(columns, "up_to_s"), counts: of(columns, "count") };
  }
  return found;
}

function packetEvents(packets: NonNullable<Finished["packets"]>, groups: string[]): PacketEvents {
  return {
    time_s: of(packets, "time_s"),
    kind: of(packets, "kind"),
    group: of(packets, "group"),
    flow: of(packets, "flow"),
    size: of(packets, "size"),
    id: of(packets, "id"),
    groups,
    truncated: packets.left_out > 0,
  };
}

function series(found: Finished["series"] | null): Result["series"] {
  const queues = Object.entries(found?.queues ?? {});
  return {
    queues: Object.fromEntries(queues.map(([link, columns]) => [link, queueSeries(columns)])),
    flows: found ? allFlows(found) : {},
  };
}

function result(found: Finished): Result {
  return {
    metrics: found.metrics,
    series: series(found.series),
    histograms: found.histograms ? delays(found.histograms, found.links) : {},
    ...(found.packets ? { packets: packetEvents(found.packets, found.groups) } : {}),
  };
}

/** The engine in a new instance of its module. */
export async function instantiate(module: WebAssembly.Module): Promise<WasmEngine> {
  const asked = new Module(await WebAssembly.instantiate(module, {}));
  return {
    catalog: () => asked.ask<Catalog>({ ask: "catalog" }) as Catalog,
    check: (text, files) => asked.ask<Checked>({ ask: "check", text, files }) as Checked,
    run: (text, files, place, replication, options, progress) => {
      const experiment = { text, files };
      const so_far = () => series(sound(asked.ask<Pick<Finished, "ok" | "series">>({ ask: "samples" })).series);
      let state = sound(asked.ask<State>({ ask: "begin", experiment, case: place, replication, options }));
      for (let step = 1; progress && step < STEPS; step++) {
        progress(state.now_s, state.duration_s, so_far);
        state = sound(asked.ask<State>({ ask: "advance", to_s: (step / STEPS) * state.duration_s }));
      }
      return result(sound(asked.ask<Finished>({ ask: "finish" })));
    },
    interval: (values) => asked.ask<Interval>({ ask: "interval", values }) as Interval,
  };
}
