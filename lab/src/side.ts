// One side: the queue's name and menu, the measures that matter most, delay over time, and what each flow gets.

import { binEnds, binned, Chart, jain, niceEnd, playhead, rug, unmeasured } from "./charts";
import type { FlowSeries, QueueSeries, Result } from "./contract";
import { css, make } from "./dom";
import { fixed, significant, told, unitFor } from "./format";
import type { Row } from "./measures";
import { meansOf } from "./measures";
import type { Palette } from "./palette";
import { nameOf } from "./palette";
import { upTo } from "./reel";

/** Points of a line of rates. */
const POINTS = 80;
/** Share of the axis of delay that is below 0. */
const RUG = 0.14;
/** The most lines of flows. */
const MOST_LINES = 60;

export type Over = "goodput" | "cwnd";

/** What both sides have in common, so that they can be compared. */
export interface Common {
  link: string;
  duration_s: number;
  warmup_s: number;
  delay_end_ms: number;
  rate_end: number;
  over: Over;
  palette: Palette;
  at_s: number | null;
  delay_height: number;
  chosen?: (time_s: number) => void;
}

interface FlowLine {
  group: string;
  flow: string;
  series: FlowSeries;
}

export const linesOf = (result: Result): FlowLine[] =>
  Object.entries(result.series.flows).flatMap(([group, flows]) =>
    Object.entries(flows).map(([flow, series]) => ({ group, flow, series })),
  );

const SCALE: Record<Over, number> = { goodput: 1e6, cwnd: 1e3 };

const valuesOf = (series: FlowSeries, over: Over): Float64Array | undefined =>
  over === "goodput" ? series.goodput : series.cwnd;

const binSize = (samples: number): number => Math.max(1, Math.round(samples / POINTS));

export function largest(values: ArrayLike<number>): number {
  let most = 0;
  for (let i = 0; i < values.length; i++) if (values[i]! > most) most = values[i]!;
  return most;
}

/** Ends of the axes that both sides share. What is before the warm-up's end may be above them. */
export function endsOf(
  results: readonly Result[],
  link: string,
  over: Over,
  warmup_s: number,
): { delay_end_ms: number; rate_end: number } {
  let delay = 0;
  let rate = 0;
  for (const result of results) {
    const queue = result.series.queues[link];
    if (queue) delay = Math.max(delay, largest(queue.delay_s.subarray(upTo(queue.time_s, warmup_s))));
    for (const { series } of linesOf(result)) {
      const values = valuesOf(series, over);
      if (values) rate = Math.max(rate, largest(over === "goodput" ? binned(values, binSize(values.length)) : values));
    }
  }
  return { delay_end_ms: niceEnd(Math.max(1, delay * 1000)), rate_end: niceEnd(rate / SCALE[over]) };
}

export class Side {
  readonly head = make("div", { class: "side-head" });
  readonly parameters = make("details", { class: "parameters", hidden: true });
  private readonly headline = make("dl", { class: "headline" });
  private readonly delayBox = make("div", { class: "chart", role: "img" });
  private readonly flowsBox = make("div", { class: "chart", role: "img" });
  private readonly delayNote = make("p", { class: "note" });
  private readonly flowsTitle = make("h3", {});
  private readonly legend = make("ul", { class: "legend" });
  private readonly jainNote = make("p", { class: "note" });
  private readonly delay = new Chart(this.delayBox);
  private readonly flows = new Chart(this.flowsBox);
  private result: Result | null = null;
  private common: Common | null = null;
  private readonly flowParts: HTMLElement[];

  constructor(
    readonly place: HTMLElement,
    private readonly colour: string,
    small = false,
  ) {
    this.flowParts = [this.flowsTitle, this.flowsBox, this.legend, this.jainNote];
    place.replaceChildren(
      this.head,
      this.headline,
      this.parameters,
      make("h3", {}, "Queueing delay ", make("span", { class: "unit" }, "ms")),
      this.delayBox,
      this.delayNote,
      ...(small ? [] : this.flowParts),
    );
  }

  show(result: Result, common: Common, label: string): void {
    this.result = result;
    this.common = common;
    this.drawDelay(result, common, label);
    if (this.flowsBox.isConnected) this.drawFlows(result, common, label);
  }

  restyle(label: string): void {
    if (this.result && this.common) this.show(this.result, this.common, label);
  }

  /** The time at which the slow motion is. */
  at(time_s: number | null): void {
    if (!this.common) return;
    this.common.at_s = time_s;
    this.delay.redraw();
  }

  canvases(): HTMLCanvasElement[] {
    return [this.delay.canvas, this.flows.canvas].filter((each) => each !== null);
  }

  measured(rows: readonly Row[], side: 0 | 1): void {
    this.headline.replaceChildren(
      ...rows.map(({ title, unit, measure }) => {
        const { value, half, unit: of, note, sure } = told(measure.sides[side], unitFor(unit, ...meansOf(measure)));
        const shown = make("dd", sure ? {} : { class: "unsure" }, of ? `${value} ${of}` : value);
        if (half || note) shown.append(make("span", { class: "why" }, ` ${half || note}`));
        return make("div", {}, make("dt", {}, title), shown);
      }),
    );
  }

  private drawDelay(result: Result, common: Common, label: string): void {
    const series = result.series.queues[common.link];
    const { warmup_s } = common;
    const [drops, marks, shade] = [css("--bad"), css("--warn-line"), css("--shade")];
    const colour = css(this.colour);
    this.delay.show(
      {
        height: common.delay_height,
        x: { format: (value) => `${value} s` },
        xRange: () => [0, this.common!.duration_s],
        y: {
          // Below 0 is room for drops and marks.
          range: () => [-RUG * this.common!.delay_end_ms, this.common!.delay_end_ms],
          format: (value) => (value < 0 ? "" : String(value)),
        },
        lines: [{ label: "delay", colour, fill: `color-mix(in srgb, ${colour} 14%, transparent)`, width: 1.3 }],
        sync: "time",
        under: (chart) => unmeasured(chart, this.common!.warmup_s, shade),
        over: (chart) => {
          rug(chart, this.result?.series.queues[this.common!.link], drops, marks);
          playhead(chart, this.common!.at_s, css("--text"));
        },
        ...(common.chosen ? { chosen: common.chosen } : {}),
      },
      series ? [series.time_s, series.delay_s.map((value) => value * 1000)] : [[], []],
    );
    const counts = series ? countsOf(series, warmup_s) : null;
    const dropped = counts ? `${counts.drops} dropped` : "";
    const marked = counts?.marks ? `${counts.marks} marked` : "";
    const after = `${warmup_s > 0 ? ` after ${fixed(warmup_s, 0)} s` : ""}, in this run`;
    this.delayNote.replaceChildren(
      ...(counts ? [make("span", { class: "swatch drop" }), dropped] : ["no series of this link"]),
      ...(marked ? [", ", make("span", { class: "swatch mark" }), marked] : []),
      ...(counts ? [after] : []),
    );
    const most = series ? largest(series.delay_s) * 1000 : 0;
    if (most > common.delay_end_ms)
      this.delayNote.append(`; at the start the delay reaches ${significant(most, 2)} ms`);
    this.delayBox.setAttribute(
      "aria-label",
      `Queueing delay over time, ${label}: at most ${significant(most, 2)} ms; ${[dropped, marked].filter(Boolean).join(", ")} in this run`,
    );
  }

  private drawFlows(result: Result, common: Common, label: string): void {
    const { over, palette } = common;
    const lines = linesOf(result)
      .filter(({ series }) => (valuesOf(series, over)?.length ?? 0) > 0)
      .slice(0, MOST_LINES);
    const samples = lines[0]?.series.time_s.length ?? 0;
    const size = over === "goodput" ? binSize(samples) : 1;
    const columns = lines.map(({ series }) => {
      const values = valuesOf(series, over)!;
      return (size > 1 ? binned(values, size) : values).map((value) => value / SCALE[over]);
    });
    const times = lines[0] ? binEnds(lines[0].series.time_s, size) : new Float64Array();
    this.flowsTitle.replaceChildren(
      over === "goodput" ? "Throughput of each flow " : "Congestion window of each flow ",
      make("span", { class: "unit" }, over === "goodput" ? "Mbit/s" : "kB"),
    );
    this.flows.show(
      {
        height: 150,
        x: { format: (value) => `${value} s` },
        xRange: () => [0, this.common!.duration_s],
        y: { range: () => [0, this.common!.rate_end], format: String },
        lines: lines.map(({ group, flow }) => ({
          label: `${group} ${flow}`,
          colour: palette.of(group, flow),
          width: lines.length > 12 ? 1 : 1.6,
        })),
        sync: "time",
        under: (chart) => unmeasured(chart, this.common!.warmup_s, css("--shade")),
      },
      [times, ...columns],
    );
    this.legend.replaceChildren(
      ...palette.legend.map((each) => {
        const chip = make("span", { class: "chip" });
        chip.style.background = each.colour;
        return make("li", {}, chip, each.label);
      }),
    );
    const shares = sharesOf(result, common.warmup_s);
    const index = jain(shares.rates);
    const what = shares.groups.map(nameOf).join(" and ");
    this.jainNote.textContent =
      index === null || shares.rates.length < 2
        ? ""
        : `Jain’s index of the ${shares.rates.length} flows of ${what}: ${significant(index, 2)} in this run`;
    this.flowsBox.setAttribute(
      "aria-label",
      `${this.flowsTitle.textContent} over time, ${label}: ${shares.rates.map((rate) => `${significant(rate / 1e6, 2)} Mbit/s`).join(", ")}`,
    );
  }
}

function countsOf({ time_s, drops, marks }: QueueSeries, from_s: number): { drops: number; marks: number } {
  const found = { drops: 0, marks: 0 };
  time_s.forEach((time, i) => {
    if (time <= from_s) return;
    found.drops += drops[i]!;
    found.marks += marks[i]!;
  });
  return found;
}

/** Mean rates after the warm-up of flows that always have data: those of groups with a window and without users. */
function sharesOf(result: Result, warmup_s: number): { rates: number[]; groups: string[] } {
  const found = { rates: [] as number[], groups: new Set<string>() };
  for (const { group, series } of linesOf(result)) {
    if (!(`${group}.goodput` in result.metrics) || `${group}.users` in result.metrics) continue;
    let sum = 0;
    let count = 0;
    series.time_s.forEach((time, i) => {
      if (time <= warmup_s) return;
      sum += series.goodput[i]!;
      count++;
    });
    if (!count) continue;
    found.rates.push(sum / count);
    found.groups.add(group);
  }
  return { rates: found.rates, groups: [...found.groups] };
}
