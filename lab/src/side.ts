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
/** Characters of a reason under a number. */
const LONGEST_NOTE = 32;
/** The most lines of flows. */
const MOST_LINES = 60;

export type Over = "goodput" | "cwnd";
/** What is shown of a queue: how long packets wait, or how many. */
export type Of = "delay" | "length";

const OF: Record<Of, { title: string; unit: string; least: number; of: (queue: QueueSeries) => Float64Array }> = {
  delay: { title: "Queueing delay", unit: "ms", least: 1, of: ({ delay_s }) => delay_s.map((value) => value * 1000) },
  length: { title: "Queue length", unit: "packets", least: 5, of: ({ packets }) => packets },
};

/** What both sides have in common, so that they can be compared. */
export interface Common {
  link: string;
  duration_s: number;
  warmup_s: number;
  queue_end: number;
  rate_end: number;
  of: Of;
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

/** How many samples make a point of a line of rates; the same while a run grows. */
function binSize(time_s: Float64Array, duration_s: number): number {
  const apart = time_s.length > 1 ? time_s[1]! - time_s[0]! : duration_s;
  return Math.max(1, Math.round(duration_s / apart / POINTS));
}

export function largest(values: ArrayLike<number>): number {
  let most = 0;
  for (let i = 0; i < values.length; i++) if (values[i]! > most) most = values[i]!;
  return most;
}

/** Ends of the axes that both sides share. What is before the warm-up's end may be above them. */
export function endsOf(
  results: readonly Result[],
  link: string,
  { of, over, warmup_s, duration_s }: Pick<Common, "of" | "over" | "warmup_s" | "duration_s">,
): Pick<Common, "queue_end" | "rate_end"> {
  let queue_end = OF[of].least;
  let rate = 0;
  for (const result of results) {
    const queue = result.series.queues[link];
    if (!queue) continue;
    const values = OF[of].of(queue);
    const measured = values.subarray(upTo(queue.time_s, warmup_s));
    queue_end = Math.max(queue_end, largest(measured.length ? measured : values));
    for (const { series } of linesOf(result)) {
      const values = valuesOf(series, over);
      if (!values) continue;
      const size = over === "goodput" ? binSize(series.time_s, duration_s) : 1;
      const from = upTo(series.time_s, warmup_s);
      const measured = from < values.length ? values.subarray(from) : values;
      rate = Math.max(rate, largest(size > 1 ? binned(measured, size) : measured));
    }
  }
  return { queue_end: niceEnd(queue_end), rate_end: niceEnd(rate / SCALE[over]) };
}

export class Side {
  readonly head = make("div", { class: "side-head" });
  readonly parameters = make("details", { class: "parameters", hidden: true });
  private readonly headline = make("dl", { class: "headline" });
  private readonly queueBox = make("div", { class: "chart", role: "img" });
  private readonly flowsBox = make("div", { class: "chart", role: "img" });
  private readonly queueNote = make("p", { class: "note" });
  private readonly queueTitle = make("h3", {});
  private readonly flowsTitle = make("h3", {});
  private readonly legend = make("ul", { class: "legend" });
  private readonly jainNote = make("p", { class: "note" });
  private readonly queue = new Chart(this.queueBox);
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
      this.queueTitle,
      this.queueBox,
      this.queueNote,
      ...(small ? [] : this.flowParts),
    );
  }

  show(result: Result, common: Common, label: string): void {
    this.result = result;
    this.common = common;
    this.drawQueue(result, common, label);
    if (this.flowsBox.isConnected) this.drawFlows(result, common, label);
  }

  restyle(label: string): void {
    if (this.result && this.common) this.show(this.result, this.common, label);
  }

  /** The time at which the slow motion is. */
  at(time_s: number | null): void {
    if (!this.common) return;
    this.common.at_s = time_s;
    this.queue.redraw();
  }

  canvases(): HTMLCanvasElement[] {
    return [this.queue.canvas, this.flows.canvas].filter((each) => each !== null);
  }

  measured(rows: readonly Row[], side: 0 | 1): void {
    this.headline.replaceChildren(
      ...rows.map(({ title, unit, measure }) => {
        const { value, half, unit: of, note, sure } = told(measure.sides[side], unitFor(unit, ...meansOf(measure)));
        const shown = make("dd", sure ? {} : { class: "unsure" }, of ? `${value} ${of}` : value);
        // The table says the whole reason.
        const why = note.length > LONGEST_NOTE ? "no interval" : note;
        if (half || note) shown.append(make("span", { class: "why", title: note || null }, ` ${half || why}`));
        return make("div", {}, make("dt", {}, title), shown);
      }),
    );
  }

  private drawQueue(result: Result, common: Common, label: string): void {
    const series = result.series.queues[common.link];
    const { warmup_s } = common;
    const { title, unit, of } = OF[common.of];
    const values = series ? of(series) : new Float64Array();
    this.queueTitle.replaceChildren(`${title} `, make("span", { class: "unit" }, unit));
    const [drops, marks, shade] = [css("--bad"), css("--warn-line"), css("--shade")];
    const colour = css(this.colour);
    this.queue.show(
      {
        height: common.delay_height,
        x: { format: (value) => `${value} s` },
        xRange: () => [0, this.common!.duration_s],
        y: {
          // Below 0 is room for drops and marks.
          range: () => [-RUG * this.common!.queue_end, this.common!.queue_end],
          format: (value) => (value < 0 ? "" : String(value)),
        },
        lines: [{ label: title, colour, fill: `color-mix(in srgb, ${colour} 14%, transparent)`, width: 1.3 }],
        sync: "time",
        under: (chart) => unmeasured(chart, this.common!.warmup_s, shade),
        over: (chart) => {
          rug(chart, this.result?.series.queues[this.common!.link], drops, marks);
          playhead(chart, this.common!.at_s, css("--text"));
        },
        ...(common.chosen ? { chosen: common.chosen } : {}),
      },
      series ? [series.time_s, values] : [[], []],
    );
    const counts = series ? countsOf(series, warmup_s) : null;
    const dropped = counts ? `${counts.drops} dropped` : "";
    const marked = counts?.marks ? `${counts.marks} marked` : "";
    const after = `${warmup_s > 0 ? ` after ${fixed(warmup_s, 0)} s` : ""}, in this run`;
    this.queueNote.replaceChildren(
      ...(counts ? [make("span", { class: "swatch drop" }), dropped] : ["no series of this link"]),
      ...(marked ? [", ", make("span", { class: "swatch mark" }), marked] : []),
      ...(counts ? [after] : []),
    );
    const most = largest(values);
    if (most > common.queue_end) this.queueNote.append(`; at the start it reaches ${significant(most, 2)} ${unit}`);
    this.queueBox.setAttribute(
      "aria-label",
      `${title} over time, ${label}: at most ${significant(most, 2)} ${unit}; ${[dropped, marked].filter(Boolean).join(", ")} in this run`,
    );
  }

  private drawFlows(result: Result, common: Common, label: string): void {
    const { over, palette } = common;
    const lines = linesOf(result)
      .filter(({ series }) => (valuesOf(series, over)?.length ?? 0) > 0)
      .slice(0, MOST_LINES);
    const size = over === "goodput" && lines[0] ? binSize(lines[0].series.time_s, common.duration_s) : 1;
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
