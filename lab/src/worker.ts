// The engine in a worker: a call comes as a message, its answer goes back with the same number.

import type { Options, Result } from "./contract";
import { EngineFault, instantiate, type Told, type WasmEngine } from "./wasm";

export interface Calls {
  load: [module: WebAssembly.Module];
  catalog: [];
  check: [text: string, files: Record<string, string>];
  run: [text: string, files: Record<string, string>, place: number, replication: number, options: Options];
  intervals: [samples: number[][]];
}

export interface Call {
  id: number;
  name: keyof Calls;
  given: unknown[];
}

export type Answer =
  | { id: number; value: unknown }
  /** After a fault of the engine itself the worker is of no more use. */
  | { id: number; error: string; broken: boolean }
  | { id: number; simulated_s: number; duration_s: number; series: Result["series"] | null };

/** How often the series of a run that takes long are handed over, ms. */
const SERIES_EVERY = 250;

let engine: WasmEngine | null = null;

function loaded(): WasmEngine {
  if (!engine) throw new Error("the engine is not loaded");
  return engine;
}

async function answer({ id, name, given }: Call): Promise<unknown> {
  if (name === "load") {
    engine = await instantiate((given as Calls["load"])[0]);
    return null;
  }
  const ready = loaded();
  if (name === "catalog") return ready.catalog();
  if (name === "check") return ready.check(...(given as Calls["check"]));
  if (name === "intervals") return (given as Calls["intervals"])[0].map((values) => ready.interval(values));
  let last = performance.now();
  const tell: Told = (simulated_s, duration_s, so_far) => {
    const due = performance.now() - last >= SERIES_EVERY;
    const series = due ? so_far() : null;
    if (due) last = performance.now();
    self.postMessage({ id, simulated_s, duration_s, series }, { transfer: columns(series) });
  };
  return ready.run(...(given as Calls["run"]), tell);
}

/** Columns of an answer, which are handed over without a copy. */
function columns(value: unknown, found: ArrayBuffer[] = []): ArrayBuffer[] {
  if (ArrayBuffer.isView(value)) {
    if (value.buffer instanceof ArrayBuffer && !found.includes(value.buffer)) found.push(value.buffer);
  } else if (typeof value === "object" && value !== null) {
    for (const each of Object.values(value)) columns(each, found);
  }
  return found;
}

self.onmessage = async ({ data }: MessageEvent<Call>) => {
  try {
    const value = await answer(data);
    self.postMessage({ id: data.id, value }, { transfer: columns(value) });
  } catch (fault) {
    const broken = fault instanceof EngineFault;
    self.postMessage({ id: data.id, error: fault instanceof Error ? fault.message : String(fault), broken });
  }
};
