// What a state amounts to: its check, the first run of both queues, then the others, and intervals of them.

import type { Case, Fault, Interval, Options, QueueKind, Result } from "./contract";
import type { Pool } from "./engine";
import { sharing, whyNoInterval } from "./rare";
import type { State } from "./state";
import { toToml } from "./toml";

/** A value of a metric on both sides, and how they differ. */
export interface Measure {
  name: string;
  sides: [Interval, Interval];
  difference: Interval;
  /** Runs behind it. */
  runs: number;
}

/** What is known of both sides before their runs are over. */
export interface Begun {
  text: string;
  files: Record<string, string>;
  duration_s: number;
  replications: number;
  cases: Case[];
  /** Places of the cases on the left and the right. */
  sides: [number, number];
  warnings: string[];
  results: [Result, Result];
}

export interface Shown extends Begun {
  /** Metrics of each replication so far, on each side. */
  metrics: [Result["metrics"][], Result["metrics"][]];
}

export interface Watcher {
  /** Runs that take long are so far; results have series only. */
  grown(begun: Begun): void;
  /** The first run of both sides. */
  shown(shown: Shown): void;
  /** More runs have been made; with all of them `done`. */
  measured(measures: Measure[], runs: number, done: boolean): void;
  failed(faults: Fault[]): void;
  progress(share: number): void;
}

/** Samples of the series over the whole run. */
const SAMPLES = 1000;
/** How long nothing may change before replications are made, ms. */
const QUIET = 250;
/** A first run that takes longer than this gives way to a newer state, ms. */
const PATIENCE = 300;

export const ONE_RUN = "one run";

/** A run that has not begun. */
const NOTHING: Result = { metrics: {}, series: { queues: {}, flows: {} }, histograms: {} };

export class Runs {
  private current: AbortController | null = null;
  private busy = false;
  private wanted: State | null = null;
  private began = 0;
  shown: Shown | null = null;

  constructor(
    private readonly pool: Pool,
    private readonly kinds: readonly QueueKind[],
    private readonly watcher: Watcher,
  ) {}

  /** The experiment file of a state. */
  textOf(state: State): { text: string; files: Record<string, string> } {
    return "knobs" in state
      ? { text: toToml(state.knobs, this.kinds), files: {} }
      : { text: state.file.text, files: state.file.files };
  }

  /** Show this state. While a knob moves, states that come before a run has ended replace each other. */
  show(state: State): void {
    this.wanted = state;
    if (!this.busy || performance.now() - this.began > PATIENCE) this.begin();
  }

  private begin(): void {
    const state = this.wanted;
    if (!state) return;
    this.wanted = null;
    this.current?.abort(new DOMException("a newer state", "AbortError"));
    const control = new AbortController();
    this.current = control;
    this.busy = true;
    this.began = performance.now();
    this.make(state, control.signal)
      .catch((fault) => {
        if (control.signal.aborted) return;
        this.watcher.failed([{ message: fault instanceof Error ? fault.message : String(fault) }]);
      })
      .finally(() => this.ended(control));
  }

  private ended(control: AbortController): void {
    if (this.current !== control) return;
    this.busy = false;
    if (this.wanted) this.begin();
  }

  private async make(state: State, signal: AbortSignal): Promise<void> {
    const { text, files } = this.textOf(state);
    const checked = await this.pool.check(text, files, { signal });
    if (signal.aborted) return;
    if (!checked.ok) {
      this.watcher.failed(checked.errors);
      return;
    }
    const { cases } = checked;
    const last = cases.length - 1;
    const sides: [number, number] = [Math.min(state.view.cases[0], last), Math.min(state.view.cases[1], last)];
    const options: Options = { series: checked.duration_s / SAMPLES, histograms: true };
    const begun: Begun = {
      text,
      files,
      duration_s: checked.duration_s,
      replications: checked.replications,
      cases,
      sides,
      warnings: checked.warnings,
      results: [NOTHING, NOTHING],
    };
    const shares: [number, number] = [0, 0];
    const results = await this.both(sides, async (place, side) => {
      const one = await this.pool.run(text, files, place, 0, options, {
        signal,
        progress: (simulated_s, duration_s, series) => {
          if (signal.aborted) return;
          shares[side] = simulated_s / duration_s;
          this.watcher.progress(sides[0] === sides[1] ? shares[0] : (shares[0] + shares[1]) / 2);
          if (!series) return;
          begun.results[side] = { ...NOTHING, series };
          this.watcher.grown(begun);
        },
      });
      begun.results[side] = one;
      return one;
    });
    if (signal.aborted) return;
    const shown: Shown = {
      ...begun,
      results,
      metrics: [[results[0].metrics], [results[1].metrics]],
    };
    this.shown = shown;
    this.watcher.progress(1);
    this.watcher.shown(shown);
    this.watcher.measured(oneRun(shown), 1, shown.replications === 1);
    void this.replicate(shown, signal).catch((fault) => {
      if (!signal.aborted) this.watcher.failed([{ message: String(fault instanceof Error ? fault.message : fault) }]);
    });
  }

  private async replicate(shown: Shown, signal: AbortSignal): Promise<void> {
    await new Promise((resolve) => setTimeout(resolve, QUIET));
    const { text, files, sides, metrics } = shown;
    const how = { lane: "rest" as const, signal };
    let asked = 0;
    let told = 0;
    const pair = async (replication: number): Promise<void> => {
      const [left, right] = await this.both(sides, (place) => this.pool.run(text, files, place, replication, {}, how));
      metrics[0].push(left.metrics);
      metrics[1].push(right.metrics);
      const now = performance.now();
      const runs = metrics[0].length;
      if (runs < shown.replications && now - asked < 200) return;
      asked = now;
      const measures = await this.measures(shown, signal);
      // What was asked earlier may be answered later.
      if (signal.aborted || runs < told) return;
      told = runs;
      this.watcher.measured(measures, runs, runs === shown.replications);
    };
    const rest = Array.from({ length: shown.replications - 1 }, (_, i) => i + 1);
    await Promise.all(rest.map(pair));
  }

  /** What a run of the left and one of the right give; one case on both sides is run once. */
  private async both(
    sides: [number, number],
    run: (place: number, side: 0 | 1) => Promise<Result>,
  ): Promise<[Result, Result]> {
    if (sides[0] !== sides[1]) return Promise.all([run(sides[0], 0), run(sides[1], 1)]);
    const one = await run(sides[0], 0);
    return [one, one];
  }

  private async measures({ metrics, text, cases, sides }: Shown, signal: AbortSignal): Promise<Measure[]> {
    const shared = sides.map((place) => sharing(text, cases[place]?.factors ?? {}, this.kinds));
    const runs = Math.min(metrics[0].length, metrics[1].length);
    const names = namesOf(metrics);
    const samples = names.flatMap((name) => {
      const [left, right] = metrics.map((side) => side.slice(0, runs).map((each) => each[name] ?? null));
      const both = left!.map((value, i) => difference(value, right![i]!));
      return [left!, right!, both].map((values) => values.filter((value) => value !== null));
    });
    const intervals = await this.pool.intervals(samples, { lane: "rest", soon: true, signal });
    return names.map((name, place) => {
      const whys = metrics.map((side, at) =>
        whyNoInterval(name, shared[at]!, runs, (other) => side.slice(0, runs).map((each) => each[other] ?? null)),
      );
      const rare = [...whys, whys[0] ?? whys[1] ?? null];
      const three = intervals.slice(3 * place, 3 * place + 3).map((interval, of): Interval => {
        const values = samples[3 * place + of]!.length;
        if (values === 0) return { mean: null, why: "not measured" };
        if (values < runs) return { mean: null, why: `${values} of ${runs} runs have it` };
        const why = rare[of] ?? null;
        return why === null ? interval : { mean: interval.mean, why };
      });
      return { name, sides: [three[0]!, three[1]!], difference: three[2]!, runs };
    });
  }

  /** Packets of both sides between two times, for the slow motion. A newer state cancels this. */
  packets(shown: Shown, from_s: number, to_s: number, link: string, signal: AbortSignal): Promise<Result[]> {
    const options: Options = { packets: { link, from_s, to_s, most: 40_000 } };
    const either = AbortSignal.any([signal, ...(this.current ? [this.current.signal] : [])]);
    const how = { lane: "rest" as const, soon: true, signal: either };
    return this.both(shown.sides, (place) => this.pool.run(shown.text, shown.files, place, 0, options, how));
  }
}

const difference = (left: number | null, right: number | null): number | null =>
  left === null || right === null ? null : right - left;

function namesOf(metrics: Shown["metrics"]): string[] {
  return [...new Set(metrics.flatMap((side) => Object.keys(side[0] ?? {})))];
}

function oneRun({ metrics }: Shown): Measure[] {
  const one = (mean: number | null): Interval => ({ mean, why: mean === null ? "not measured" : ONE_RUN });
  return namesOf(metrics).map((name) => {
    const [left, right] = metrics.map((side) => side[0]?.[name] ?? null) as [number | null, number | null];
    return { name, sides: [one(left), one(right)], difference: one(difference(left, right)), runs: 1 };
  });
}
