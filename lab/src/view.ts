// What the page and its small form share: the state, the pool, both sides, and faults.

import type { Catalog, Fault, Result } from "./contract";
import { make, menu, part } from "./dom";
import type { Pool } from "./engine";
import { openPool } from "./engine";
import { factsOf } from "./facts";
import { readFragment } from "./link";
import type { Row } from "./measures";
import { Measures } from "./measures";
import { paletteOf } from "./palette";
import { drawParameters, kindMenu } from "./panel";
import type { Begun, Measure, Shown } from "./runs";
import { Runs } from "./runs";
import { loadFile, loadScene } from "./scenes";
import type { Common, Of, Over } from "./side";
import { endsOf, Side } from "./side";
import type { Knobs, Scene, State } from "./state";
import { DEFAULT } from "./state";
import { fromToml, labels, withQueue } from "./toml";

export const HOME = "home";
/** Rows above each side. */
const HEADLINE = 3;

export abstract class View {
  readonly base = new URL(".", document.baseURI).href;
  state: State = { knobs: DEFAULT, view: { cases: [0, 1], open: "queue" } };
  scene: Scene | null = null;
  pool!: Pool;
  runs!: Runs;
  catalog!: Catalog;
  measures!: Measures;
  sides!: [Side, Side];
  shown: Shown | null = null;
  measured: Measure[] = [];
  common: Common | null = null;
  over: Over = "goodput";
  of: Of = "delay";
  link: string | null = null;
  /** The fragment that was last opened, or written by the page itself. */
  protected address: string | null = null;
  /** Faults of a link, in place of which the home line is shown. */
  private told: Fault[] = [];
  /** How often results have been drawn. */
  private draws = 0;
  private kinds: [string, string] = ["", ""];

  constructor(private readonly small: boolean) {}

  /** Open the engine and what the address asks for. */
  async start(): Promise<void> {
    this.sides = [0, 1].map((side) => new Side(part(`side-${side}`), side === 0 ? "--a" : "--b", this.small)) as [
      Side,
      Side,
    ];
    try {
      this.pool = await openPool(this.base);
      this.catalog = await this.pool.catalog();
    } catch (fault) {
      this.fail([{ message: messageOf(fault) }]);
      return;
    }
    this.measures = new Measures(this.catalog.metrics);
    this.runs = new Runs(this.pool, this.catalog.queues, {
      grown: (begun) => {
        // The numbers are still those of the run before.
        document.body.classList.add("growing");
        this.drawSides(begun);
      },
      shown: (shown) => this.draw(shown),
      measured: (measures, runs, done) => this.drawMeasures(measures, runs, done),
      failed: (faults) => this.fail(faults),
      progress: (share) => this.progress(share),
    });
    for (const query of ["(prefers-color-scheme: dark)", "print"]) {
      window.matchMedia(query).addEventListener("change", () => this.restyle());
    }
    this.ready();
    await this.openAddress();
    window.addEventListener("hashchange", () => void this.openAddress());
  }

  /** What the fragment of the address asks for; what is wrong with it is told. */
  async openAddress(): Promise<void> {
    const fragment = location.hash.slice(1);
    if (fragment === this.address) return;
    this.address = fragment;
    try {
      const asked = await readFragment(fragment);
      if (asked.kind === "state") this.open(asked.state, null);
      else if (asked.kind === "scene") await this.openScene(asked.name);
      else if (asked.kind === "file") {
        const file = await loadFile(asked.path, asked.others, this.base);
        this.openText(file.text, file.files, file.name);
      } else this.open({ knobs: DEFAULT, view: { cases: [0, 1], open: "queue" } }, null);
    } catch (fault) {
      this.open({ knobs: DEFAULT, view: { cases: [0, 1], open: "queue" } }, null, [
        { message: `Nothing of the link is used: ${messageOf(fault)}` },
      ]);
    }
  }

  async openScene(name: string): Promise<void> {
    if (name === HOME) {
      this.open({ knobs: DEFAULT, view: { cases: [0, 1], open: "queue" } }, null);
      return;
    }
    const { scene, file } = await loadScene(name, this.base);
    const knobs = fromToml(file.text, this.catalog.queues);
    const view: State["view"] = { cases: [0, 1], open: scene.view };
    this.open(knobs ? { knobs, view } : { file, scene: name, view }, scene);
  }

  /** A text that somebody gave: knobs if it is the file of knobs. */
  openText(text: string, files: Record<string, string>, name: string): void {
    const knobs = fromToml(text, this.catalog.queues);
    const view: State["view"] = { cases: [0, 1], open: "queue" };
    this.open(knobs ? { knobs, view } : { file: { name, text, files }, view }, null);
  }

  /** Another state, not by a knob. */
  open(state: State, scene: Scene | null, faults: Fault[] = []): void {
    this.state = state;
    this.scene = scene;
    this.kinds = ["", ""];
    this.link = null;
    // A scene whose measures are lengths shows the length.
    const wanted = scene?.metrics ?? [];
    const lengths = wanted.some((name) => name.includes("queue_length"));
    this.of = lengths && !wanted.some((name) => name.includes("queue_delay")) ? "length" : "delay";
    this.told = faults;
    this.fail(faults);
    this.opened();
    this.runs.show(state);
  }

  /** Another value of a knob. */
  change(knobs: Knobs): void {
    this.state = { knobs, view: this.state.view };
    this.told = [];
    this.drawHeads();
    this.changed();
    this.runs.show(this.state);
  }

  labels(): [string, string] {
    if ("knobs" in this.state) return labels(this.state.knobs.queues);
    const { cases, sides } = this.shown ?? { cases: [], sides: [0, 0] };
    return [cases[sides[0]!]?.label ?? "", cases[sides[1]!]?.label ?? ""];
  }

  private draw(shown: Shown): void {
    this.shown = shown;
    this.fail(this.told);
    document.body.classList.remove("faulty");
    this.drawHeads();
    this.drawSides(shown);
    this.drawn(shown, factsOf(shown.text).rate);
    this.draws++;
    document.body.dataset.draws = String(this.draws);
  }

  /** The charts of both sides, also of runs that are not over. */
  private drawSides(begun: Begun): void {
    const { results, cases, duration_s } = begun;
    document.body.classList.toggle("single", cases.length === 1);
    const [left, right] = results.map(({ series }) => series) as [Result["series"], Result["series"]];
    const links = Object.keys({ ...left.queues, ...right.queues });
    const link = this.link !== null && links.includes(this.link) ? this.link : (links[0] ?? "bottleneck");
    const { warmup_s } = factsOf(begun.text);
    this.common = {
      link,
      duration_s,
      warmup_s,
      ...endsOf(results, link, { of: this.of, over: this.over, warmup_s, duration_s }),
      of: this.of,
      over: this.over,
      palette: paletteOf({ ...right.flows, ...left.flows }),
      at_s: null,
      delay_height: this.small ? 130 : 170,
      ...this.clicks(),
    };
    const names = this.labels();
    this.sides.forEach((side, place) => {
      side.show(results[place as 0 | 1], { ...this.common! }, names[place as 0 | 1]);
    });
  }

  private drawMeasures(measures: Measure[], runs: number, done: boolean): void {
    this.measured = measures;
    const wanted = this.scene?.metrics ?? ("file" in this.state ? factsOf(this.state.file.text).metrics : []);
    const rows = this.measures.first(measures, wanted);
    this.sides.forEach((side, place) => {
      side.measured(rows.slice(0, HEADLINE), place as 0 | 1);
    });
    this.drawnMeasures(rows, runs, done);
  }

  /** Names of the queues, with menus: of kinds for knobs, of cases for a file with more than two. */
  private drawHeads(): void {
    const { state } = this;
    this.sides.forEach((side, at) => {
      const place = at as 0 | 1;
      if (!("knobs" in state)) {
        side.parameters.hidden = true;
        const cases = this.shown?.cases ?? [];
        if (cases.length > 2) {
          const options = cases.map(({ label }, i): [string, string] => [String(i), label || `case ${i + 1}`]);
          const chosen = menu(
            place === 0 ? "Left case" : "Right case",
            options,
            String(this.shown!.sides[place]),
            (value) => {
              const both: [number, number] = [...this.shown!.sides];
              both[place] = Number(value);
              this.state = { ...this.state, view: { ...this.state.view, cases: both } };
              this.changed();
              this.runs.show(this.state);
            },
          );
          side.head.replaceChildren(chosen);
        } else side.head.replaceChildren(make("h2", {}, this.labels()[place]));
        return;
      }
      const queue = state.knobs.queues[place];
      if (this.kinds[place] === queue.kind) return;
      this.kinds[place] = queue.kind;
      side.head.replaceChildren(
        kindMenu(this.catalog.queues, queue.kind, place, (kind) => {
          if ("knobs" in this.state) this.change(withQueue(this.state.knobs, place, kind));
        }),
      );
      const kind = this.catalog.queues.find((each) => each.kind === queue.kind);
      side.parameters.hidden = !kind;
      if (!kind) return;
      const inner = make("div", { class: "parameter-list" });
      drawParameters(
        inner,
        kind,
        queue.parameters,
        (parameters) => {
          if (!("knobs" in this.state)) return;
          const both: Knobs["queues"] = [...this.state.knobs.queues];
          both[place] = { kind: queue.kind, parameters };
          this.change({ ...this.state.knobs, queues: both });
        },
        place,
      );
      side.parameters.replaceChildren(make("summary", {}, "Parameters"), inner);
    });
  }

  /** Faults in place of results; none takes them away. */
  fail(faults: readonly Fault[]): void {
    const place = part("faults");
    place.hidden = faults.length === 0;
    document.body.classList.toggle("faulty", faults.length > 0);
    document.body.classList.remove("growing");
    // Menus of queues belong to what was shown before.
    for (const side of [0, 1]) part(`side-${side}`).inert = faults.length > 0 && !("knobs" in this.state);
    const where = ({ line, key, message }: Fault): string => {
      const named = key && !message.includes(key) ? `${key}: ` : "";
      return line === undefined || /\bline \d|:\d+:/.test(message)
        ? `${named}${message}`
        : `line ${line}: ${named}${message}`;
    };
    place.replaceChildren(...faults.slice(0, 20).map((fault) => make("p", {}, where(fault))));
  }

  /** Colours have changed. */
  restyle(): void {
    if (this.shown) this.draw(this.shown);
  }

  protected clicks(): { chosen?: (time_s: number) => void } {
    return {};
  }
  protected progress(_share: number): void {}
  protected abstract ready(): void;
  protected abstract opened(): void;
  protected abstract changed(): void;
  protected abstract drawn(shown: Shown, rate: number | null): void;
  protected abstract drawnMeasures(rows: Row[], runs: number, done: boolean): void;
}

export const messageOf = (fault: unknown): string => (fault instanceof Error ? fault.message : String(fault));

/** What the numbers are made of, in words. */
export function runsNote(runs: number, shown: Shown, done: boolean): string {
  const { replications } = shown;
  if (runs === 1 && done) return "Numbers are of one run: how sure they are cannot be said. More runs give intervals.";
  if (runs === 1) return `Numbers are of one run; ${replications - 1} more follow, for intervals.`;
  const rest = done ? "" : ` so far, of ${replications}`;
  return `Numbers are means of ${runs} runs of each queue${rest}, ± half the width of the 95 % interval. The charts show the first run.`;
}
