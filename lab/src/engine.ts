// A pool of workers with the engine in each, in two lanes. What is cancelled ends its worker, and another takes the place.

import type { Catalog, Checked, Interval, Options, Result } from "./contract";
import type { Answer, Call, Calls } from "./worker";

/** Is told how far a run is, and now and then its series up to there. */
export type Progress = (simulated_s: number, duration_s: number, series: Result["series"] | null) => void;

interface Job {
  name: keyof Calls;
  given: unknown[];
  lane: Lane;
  soon: boolean;
  progress: Progress | undefined;
  resolve: (value: unknown) => void;
  reject: (fault: unknown) => void;
}

/** Two workers are kept for the first run of each queue, so that a knob is answered at once; the others make the rest. */
type Lane = "first" | "rest";

interface Place {
  lane: Lane;
  /** Started when there is a job for it. */
  worker: Worker | null;
  ready: boolean;
  job: Job | null;
  /** The number of the message that is to be answered. */
  id: number;
}

export interface How {
  lane?: Lane;
  /** Before others of the lane that wait. */
  soon?: boolean;
  signal?: AbortSignal;
  progress?: Progress;
}

export class Pool {
  private readonly places: Place[] = [];
  private waiting: Job[] = [];
  private next = 1;

  constructor(
    private readonly module: WebAssembly.Module,
    rest: number,
    private readonly spawn: () => Worker,
  ) {
    const lanes: Lane[] = ["first", "first", ...Array.from({ length: rest }, (): Lane => "rest")];
    for (const lane of lanes) this.places.push({ lane, worker: null, ready: false, job: null, id: 0 });
    for (const place of this.places) if (place.lane === "first") this.start(place);
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
      const { lane = "first", soon = false, progress, signal } = how;
      const job: Job = { name, given, lane, soon, progress, resolve, reject };
      signal?.addEventListener("abort", () => this.cancel(job, signal.reason), { once: true });
      const before = soon ? this.waiting.findIndex((other) => other.lane === lane && !other.soon) : -1;
      if (before < 0) this.waiting.push(job);
      else this.waiting.splice(before, 0, job);
      this.deal();
    });
  }

  private cancel(job: Job, reason: unknown): void {
    this.waiting = this.waiting.filter((each) => each !== job);
    const place = this.places.find((each) => each.job === job);
    if (place) this.end(place);
    job.reject(reason);
  }

  /** End a worker. One of the first is started again at once, another one when there is a job for it. */
  private end(place: Place): void {
    place.worker?.terminate();
    Object.assign(place, { worker: null, ready: false, job: null });
    if (place.lane === "first") this.start(place);
  }

  /** A worker that loads the engine; it takes a job when it has it. */
  private start(place: Place): void {
    const worker = this.spawn();
    Object.assign(place, { worker, ready: false });
    place.id = this.next++;
    worker.onmessage = ({ data }: MessageEvent<Answer>) => {
      if (place.worker === worker && data.id === place.id) this.answered(place, data);
    };
    worker.onerror = (event) => {
      event.preventDefault();
      if (place.worker !== worker) return;
      const fault = new Error(event.message || "the engine's worker could not be started");
      if (place.ready) this.fail(place, fault);
      else this.failAll(fault.message);
    };
    worker.postMessage({ id: place.id, name: "load", given: [this.module] } satisfies Call);
  }

  private answered(place: Place, data: Answer): void {
    const { job } = place;
    if ("simulated_s" in data) {
      job?.progress?.(data.simulated_s, data.duration_s, data.series);
      return;
    }
    if (!place.ready) {
      if ("error" in data) {
        this.failAll(data.error);
        return;
      }
      place.ready = true;
      if (job) this.send(place, job);
    } else if ("error" in data) {
      place.job = null;
      if (data.broken) this.end(place);
      job?.reject(new Error(data.error));
    } else {
      place.job = null;
      job?.resolve(data.value);
    }
    this.deal();
  }

  private fail(place: Place, fault: Error): void {
    const { job } = place;
    this.end(place);
    job?.reject(fault);
    this.deal();
  }

  private send(place: Place, job: Job): void {
    place.id = this.next++;
    place.worker?.postMessage({ id: place.id, name: job.name, given: job.given } satisfies Call);
  }

  /** The engine cannot be loaded: nothing that was asked has an answer. */
  private failAll(message: string): void {
    const jobs = [...this.waiting, ...this.places.flatMap(({ job }) => job ?? [])];
    this.waiting = [];
    for (const place of this.places) place.job = null;
    for (const job of jobs) job.reject(new Error(message));
  }

  private deal(): void {
    for (const place of this.places) {
      if (place.job) continue;
      const at = this.waiting.findIndex(({ lane }) => lane === place.lane);
      const [job] = at < 0 ? [] : this.waiting.splice(at, 1);
      if (!job) continue;
      place.job = job;
      if (!place.worker) this.start(place);
      else if (place.ready) this.send(place, job);
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
  const rest = Math.min(4, Math.max(1, navigator.hardwareConcurrency || 1));
  return new Pool(module, rest, () => new Worker(new URL("worker.js", base)));
}
