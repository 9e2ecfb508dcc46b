// The slow motion: the clock, its controls and keys, and the two stages.

import type { Result } from "./contract";
import { freshId, make, menu } from "./dom";
import { fixed } from "./format";
import type { Palette } from "./palette";
import { nameOf } from "./palette";
import type { Reel } from "./reel";
import { reelOf, upTo } from "./reel";
import type { Hit } from "./stage";
import { drawStage } from "./stage";

/** How long a window of packets is: so many packets of the link, within these times. */
const PACKETS = 3000;
const SHORTEST_S = 0.2;
const LONGEST_S = 20;
/** Packets that pass in a second of the watcher at first. */
const FIRST_PACKETS_PER_S = 60;
const STILL_MS = 500;
/** How long no new run may come before its packets are asked for, ms. */
const QUIET = 120;
const SPEEDS = [1, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001, 0.0005, 0.0001];

export interface Film {
  labels: [string, string];
  /** Rate of the link, bit/s; null if it is not known. */
  rate: number | null;
  duration_s: number;
  palette: Palette;
  start_s: number;
  load(from_s: number, to_s: number, signal: AbortSignal): Promise<Result[]>;
  /** The time of the picture, for the charts. */
  at(time_s: number | null): void;
}

export class Player {
  private film: Film | null = null;
  private reels: Reel[] = [];
  private t = 0;
  private from = 0;
  private to = 0;
  private speed = 0.02;
  private playing = false;
  private loading: AbortController | null = null;
  private frame = 0;
  private open = true;
  private quiet = 0;
  private hits: Hit[][] = [[], []];
  private readonly reduced = window.matchMedia("(prefers-reduced-motion: reduce)");
  private readonly canvases = [0, 1].map(() =>
    make("canvas", { class: "stage", role: "img", "aria-label": "The queue" }),
  );
  private readonly names = [0, 1].map(() => make("figcaption", {}));
  private readonly play = make("button", { type: "button", class: "play", onclick: () => this.toggle() }, "Play");
  private readonly time = make("input", {
    type: "range",
    min: 0,
    max: 1000,
    step: 1,
    "aria-label": "Time within the window",
  });
  /** The time of the run to which to go: what a click in a chart does by hand. */
  private readonly moment = make("input", {
    id: freshId(),
    type: "number",
    min: 0,
    step: "any",
    "data-part": "moment",
  });
  private readonly clock = make("output", {});
  private readonly note = make("p", { class: "note under" });
  private readonly speedPlace = make("span", {});
  private readonly body: HTMLElement;
  private readonly opener: HTMLButtonElement;

  constructor(place: HTMLElement) {
    const step = (text: string, label: string, act: () => void) =>
      make("button", { type: "button", "aria-label": label, title: label, onclick: act }, text);
    this.opener = make(
      "button",
      { type: "button", "aria-expanded": "true", onclick: () => this.show(!this.open) },
      "Hide",
    );
    this.body = make(
      "div",
      { class: "player" },
      make(
        "div",
        { class: "controls" },
        this.play,
        step("‹", "The event before: a packet arrives, is sent or dropped (Left)", () => this.step(-1)),
        step("›", "The next event (Right)", () => this.step(1)),
        step("Next drop or mark", "The next drop or mark (N)", () => this.happening(1)),
        this.speedPlace,
        make("span", { class: "control" }, make("label", { for: this.moment.id }, "Go to"), this.moment, " s"),
        this.clock,
        this.time,
      ),
      make(
        "div",
        { class: "stages" },
        ...[0, 1].map((side) => make("figure", {}, this.names[side]!, this.canvases[side]!)),
      ),
      this.note,
    );
    place.replaceChildren(
      make("div", { class: "section-head" }, make("h2", { id: "packets-head" }, "Packet by packet"), this.opener),
      make(
        "p",
        { class: "note" },
        "The queues in slow motion, coloured by flow. Click a time in a chart of delay to see its packets.",
      ),
      this.body,
    );
    this.time.addEventListener("input", () => {
      this.pause();
      this.seek(this.from + (Number(this.time.value) / 1000) * (this.to - this.from));
    });
    this.moment.addEventListener("change", () => {
      const typed = this.moment.valueAsNumber;
      if (this.film && Number.isFinite(typed)) this.go(Math.min(this.film.duration_s, Math.max(0, typed)));
    });
    this.canvases.forEach((canvas, side) => {
      canvas.addEventListener("pointermove", (event) => this.point(side, event));
    });
    window.addEventListener("keydown", (event) => this.key(event));
    new ResizeObserver(() => this.draw()).observe(this.body);
  }

  /** A new run: what was loaded is gone. */
  set(film: Film): void {
    const first = this.film === null;
    this.film = film;
    this.pause();
    this.reels = [];
    this.names.forEach((name, side) => {
      name.textContent = film.labels[side as 0 | 1];
    });
    if (first || this.t > film.duration_s || this.t === 0) this.t = Math.min(film.start_s, film.duration_s);
    const wanted = FIRST_PACKETS_PER_S / packetsPerSecond(film.rate);
    if (first) this.speed = SPEEDS.find((each) => each <= wanted) ?? SPEEDS.at(-1)!;
    this.drawSpeed();
    this.loading?.abort(new DOMException("another run", "AbortError"));
    clearTimeout(this.quiet);
    if (this.open) this.quiet = window.setTimeout(() => void this.load(this.t), QUIET);
    else film.at(null);
  }

  /** Go to a time of the run, and show it. */
  go(time_s: number): void {
    this.pause();
    if (!this.open) this.show(true, time_s);
    else if (time_s >= this.from && time_s <= this.to && this.reels.length) this.seek(time_s);
    else this.load(time_s);
  }

  show(open: boolean, time_s?: number): void {
    this.open = open;
    this.body.hidden = !open;
    this.opener.textContent = open ? "Hide" : "Show";
    this.opener.setAttribute("aria-expanded", String(open));
    if (open) this.load(time_s ?? this.t);
    else {
      this.pause();
      this.film?.at(null);
    }
  }

  restyle(): void {
    this.draw();
  }

  shownCanvases(): HTMLCanvasElement[] {
    return this.open && this.reels.length ? this.canvases : [];
  }

  /** The time of the picture, as a text. */
  now(): string {
    return `${fixed(this.t, 4)} s`;
  }

  private drawSpeed(): void {
    const name = (speed: number): string => (speed === 1 ? "real time" : `1/${Math.round(1 / speed)} of real time`);
    this.speedPlace.replaceChildren(
      menu(
        "Speed",
        SPEEDS.map((speed) => [String(speed), name(speed)]),
        String(this.speed),
        (value) => {
          this.speed = Number(value);
          this.draw();
        },
        { "data-part": "speed" },
      ),
    );
  }

  private async load(time_s: number, then?: () => void): Promise<void> {
    const film = this.film;
    if (!film) return;
    this.loading?.abort(new DOMException("another window", "AbortError"));
    const control = new AbortController();
    this.loading = control;
    const length = Math.min(LONGEST_S, Math.max(SHORTEST_S, PACKETS / packetsPerSecond(film.rate)));
    const from = Math.max(0, Math.min(film.duration_s - length, time_s - length / 8));
    const to = Math.min(film.duration_s, from + length);
    this.note.textContent = "The run is made again, with its packets …";
    try {
      const results = await film.load(from, to, control.signal);
      if (control.signal.aborted) return;
      this.reels = results.map(({ packets }) => reelOf(packets ?? NO_PACKETS, from, to));
      this.from = from;
      this.to = to;
      const cut = results.some(({ packets }) => packets?.truncated);
      this.note.textContent = cut ? "There are more packets than are shown." : HINT;
      this.seek(Math.min(to, Math.max(from, time_s)));
      then?.();
    } catch (fault) {
      // Another window, or a newer state.
      if (fault instanceof DOMException && fault.name === "AbortError") return;
      this.note.textContent = fault instanceof Error ? fault.message : String(fault);
    }
  }

  private toggle(): void {
    if (this.playing) this.pause();
    else this.start();
  }

  private start(): void {
    if (!this.reels.length || !this.film) return;
    if (this.t >= this.film.duration_s) {
      void this.load(0, () => this.start());
      return;
    }
    this.playing = true;
    this.play.textContent = "Pause";
    let before = performance.now();
    const frame = (now: number): void => {
      if (!this.playing) return;
      this.frame = requestAnimationFrame(frame);
      if (this.reduced.matches && now - before < STILL_MS) return;
      // A tab that was away goes on where it was.
      const passed = Math.min(now - before, 2 * STILL_MS) / 1000;
      before = now;
      this.t = Math.min(this.to, this.t + passed * this.speed);
      if (this.t < this.to) this.draw();
      else if (this.to < this.film!.duration_s) {
        this.pause();
        void this.load(this.to, () => this.start());
      } else this.pause();
    };
    this.frame = requestAnimationFrame(frame);
  }

  private pause(): void {
    if (!this.playing) return;
    this.playing = false;
    cancelAnimationFrame(this.frame);
    this.play.textContent = "Play";
    this.draw();
  }

  private seek(t: number): void {
    this.t = t;
    this.draw();
  }

  private step(by: 1 | -1): void {
    this.pause();
    const times = this.reels.map(({ moments }) => {
      if (by > 0) return moments[upTo(moments, this.t)];
      let at = upTo(moments, this.t) - 1;
      while (at >= 0 && moments[at]! >= this.t) at--;
      return moments[at];
    });
    const known = times.filter((time): time is number => time !== undefined);
    if (known.length) this.seek(by > 0 ? Math.min(...known) : Math.max(...known));
  }

  private happening(by: 1 | -1): void {
    this.pause();
    const times = this.reels.flatMap(({ happenings }) => happenings.map(({ time_s }) => time_s)).sort((a, b) => a - b);
    const next = by > 0 ? times.find((time) => time > this.t) : times.findLast((time) => time < this.t);
    if (next === undefined) this.note.textContent = "No drop and no mark in the rest of this window.";
    else this.seek(next);
  }

  private key(event: KeyboardEvent): void {
    const at = event.target;
    if (!this.open || !this.reels.length || event.ctrlKey || event.metaKey || event.altKey) return;
    if (at instanceof HTMLElement && at.matches("input, select, textarea, dialog *")) return;
    const by = SPEEDS.indexOf(this.speed);
    const acts: Record<string, () => void> = {
      " ": () => this.toggle(),
      ArrowRight: () => (event.shiftKey ? this.seek(this.jump(1)) : this.step(1)),
      ArrowLeft: () => (event.shiftKey ? this.seek(this.jump(-1)) : this.step(-1)),
      n: () => this.happening(1),
      p: () => this.happening(-1),
      "+": () => this.setSpeed(SPEEDS[Math.max(0, by - 1)]!),
      "-": () => this.setSpeed(SPEEDS[Math.min(SPEEDS.length - 1, by + 1)]!),
    };
    const act = acts[event.key];
    // The space bar presses a button that has the focus.
    if (!act || (event.key === " " && at instanceof HTMLElement && at.matches("button, summary, a"))) return;
    event.preventDefault();
    act();
  }

  private jump(by: 1 | -1): number {
    return Math.min(this.to, Math.max(this.from, this.t + (by * (this.to - this.from)) / 100));
  }

  private setSpeed(speed: number): void {
    this.speed = speed;
    this.drawSpeed();
    this.draw();
  }

  private draw(): void {
    const film = this.film;
    if (!this.open || !film || !this.reels.length) return;
    const room = Math.max(10, ...this.reels.map(({ mostWaiting }) => mostWaiting));
    this.hits = this.reels.map((reel, side) => {
      const canvas = this.canvases[side]!;
      const { hits, waiting } = drawStage(canvas, reel, {
        t: this.t,
        speed: this.speed,
        still: !this.playing || this.reduced.matches,
        rate: film.rate,
        room,
        colour: (group, flow) => film.palette.of(reel.groups[group] ?? "", String(flow)),
      });
      if (!this.playing) canvas.setAttribute("aria-label", `${film.labels[side as 0 | 1]}: ${waiting} packets wait`);
      return hits;
    });
    this.clock.textContent = this.now();
    this.time.value = String(Math.round(((this.t - this.from) / (this.to - this.from || 1)) * 1000));
    this.time.setAttribute("aria-valuetext", this.now());
    film.at(this.t);
  }

  private point(side: number, event: PointerEvent): void {
    const box = this.canvases[side]!.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    const hit = this.hits[side]!.find(
      (each) => x >= each.x && x < each.x + each.side && y >= each.y && y < each.y + each.side,
    );
    const reel = this.reels[side];
    if (!hit || !reel) {
      if (this.reels.length) this.note.textContent = HINT;
      return;
    }
    const i = hit.packet;
    const waited = this.t - reel.arrival[i]!;
    const group = nameOf(reel.groups[reel.group[i]!] ?? "");
    const from = reel.arrival[i]! <= this.from ? "more than " : "";
    this.note.textContent = `${group} ${reel.flow[i]! + 1}: ${reel.size[i]} B, has waited ${from}${fixed(1000 * waited, 1)} ms`;
  }
}

const HINT =
  "Space: play, pause. ← →: event by event. N, P: drops and marks. + −: speed. Point at a packet to see whose it is.";

const NO_PACKETS = {
  time_s: new Float64Array(),
  kind: new Uint8Array(),
  group: new Uint32Array(),
  flow: new Uint32Array(),
  size: new Uint32Array(),
  id: new Float64Array(),
  groups: [],
};

/** Packets of 1500 B that the link sends in a second. */
const packetsPerSecond = (rate: number | null): number => (rate ?? 10e6) / 12_000;
