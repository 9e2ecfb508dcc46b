// A pool of workers with the engine in each. What is asked first is done first, unless it may wait; what is cancelled
// ends its worker, and another takes the place.

import type { Catalog, Checked, Interval, Options, Result } from "./contract";
import type { Answer, Call, Calls } from "./worker";

/** Is told how far a run is, and now and then its series up to there. */
export type Progress = (simulated_s: number, duration_s: number, series: Result["series"] | null) => void;

interface Job {
  name: keyof Calls;
  given: unknown[];
  /** Jobs that may wait are done when nothing else is to be done. */
  may_wait: boolean;
  progress: Progress | undefined;
  resolve: (value: unknown) => void;
  reject: (fault: unknown) => void;
}

interface Place {
  worker: Worker;
  job: Job | null;
  ready: boolean;
}

export interface How {
  may_wait?: boolean;
  signal?: AbortSignal;
  progress?: Progress;
}

export class Pool {
  private readonly places: Place[] = [];
  private waiting: Job[] = [];
  private next = 1;

  constructor(
    private readonly module: WebAssembly.Module,
    size: number,
    private readonly spawn: () => Worker,
  ) {
    for (let place = 0; place < size; place++) this.places.push(this.start());
  }

  get size(): number {
    return this.places.length;
  }

  catalog(): Promise<Catalog> {
    return this.ask("catalog", []) as Promise<Catalog>;
  }

  check(text: string, files: Record<string, string>, how: How = {}): Promise<Checked> {
    return this.ask("check", [text, files], how) as Promise<Checked>;
  }

  run(
    text: string,
    files: Record<string, string>,
    place: number,
    replication: number,
    options: Options,
    how: How = {},
  ): Promise<Result> {
    return this.ask("run", [text, files, place, replication, options], how) as Promise<Result>;
  }

  intervals(samples: number[][], how: How = {}): Promise<Interval[]> {
    return this.ask("intervals", [samples], how) as Promise<Interval[]>;
  }

  private ask<Name extends keyof Calls>(name: Name, given: Calls[Name], how: How = {}): Promise<unknown> {
    return new Promise((resolve, reject) => {
      if (how.signal?.aborted) {
        reject(how.signal.reason);
        return;
      }
      const job: Job = { name, given, may_wait: how.may_wait ?? false, progress: how.progress, resolve, reject };
      how.signal?.addEventListener("abort", () => this.cancel(job, how.signal!.reason), { once: true });
      this.waiting.push(job);
      this.deal();
    });
  }

  private cancel(job: Job, reason: unknown): void {
    this.waiting = this.waiting.filter((each) => each !== job);
    const place = this.places.find((each) => each.job === job);
    if (place) {
      place.worker.terminate();
      Object.assign(place, this.start());
      this.deal();
    }
    job.reject(reason);
  }

  /** A worker that loads the engine; it takes jobs when it has it. */
  private start(): Place {
    const place: Place = { worker: this.spawn(), job: null, ready: false };
    const { worker } = place;
    const load = this.next++;
    let id = 0;
    worker.onmessage = ({ data }: MessageEvent<Answer>) => {
      const held = this.places.find((each) => each.worker === worker);
      if (!held) return;
      if (data.id === load) {
        if ("error" in data) this.failAll(data.error);
        held.ready = true;
        this.deal();
        return;
      }
      const { job } = held;
      if (!job || data.id !== id) return;
      if ("simulated_s" in data) {
        job.progress?.(data.simulated_s, data.duration_s, data.series);
        return;
      }
      held.job = null;
      if ("error" in data) {
        job.reject(new Error(data.error));
        if (data.broken) {
          worker.terminate();
          Object.assign(held, this.start());
        }
      } else job.resolve(data.value);
      this.deal();
    };
    worker.onerror = (event) => {
      event.preventDefault();
      const held = this.places.find((each) => each.worker === worker);
      const fault = new Error(event.message || "the engine's worker could not be started");
      if (held?.job) {
        held.job.reject(fault);
        held.job = null;
      } else this.failAll(fault.message);
    };
    worker.postMessage({ id: load, name: "load", given: [this.module] } satisfies Call);
    this.send.set(worker, (job) => {
      id = this.next++;
      worker.postMessage({ id, name: job.name, given: job.given } satisfies Call);
    });
    return place;
  }

  private readonly send = new WeakMap<Worker, (job: Job) => void>();

  private failAll(message: string): void {
    const jobs = this.waiting;
    this.waiting = [];
    for (const job of jobs) job.reject(new Error(message));
  }

  private deal(): void {
    for (const place of this.places) {
      if (place.job || !place.ready) continue;
      const urgent = this.waiting.findIndex((job) => !job.may_wait);
      const [job] = this.waiting.splice(Math.max(0, urgent), 1);
      if (!job) return;
      place.job = job;
      this.send.get(place.worker)!(job);
    }
  }
}

/** The pool, with the engine that lies beside the page. */
export async function openPool(base: string): Promise<Pool> {
  const answer = await fetch(new URL("redtail.wasm", base));
  if (!answer.ok) throw new Error(`the engine could not be loaded: redtail.wasm, ${answer.status}`);
  const module =
    answer.headers.get("content-type") === "application/wasm"
      ? await WebAssembly.compileStreaming(answer)
      : await WebAssembly.compile(await answer.arrayBuffer());
  // Two for the two queues; more fill the intervals sooner.
  const size = Math.min(6, Math.max(2, navigator.hardwareConcurrency || 2));
  return new Pool(module, size, () => new Worker(new URL("worker.js", base)));
}
