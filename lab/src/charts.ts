// Charts over time and of distributions, with uPlot. Both sides have the same axes.

import uPlot from "uplot";
import type { Histogram, QueueSeries } from "./contract";
import { css } from "./dom";

export interface Line {
  label: string;
  colour: string;
  dash?: number[];
  width?: number;
  fill?: string;
}

export interface ChartOptions {
  height: number;
  x: { label?: string; log?: boolean; format?: (value: number) => string };
  y: { label?: string; range: () => [number, number]; format: (value: number) => string };
  lines: Line[];
  /** Charts of one key have one cursor. */
  sync?: string;
  /** Draws upon the chart. */
  over?: (chart: uPlot) => void;
  /** Draws below the lines. */
  under?: (chart: uPlot) => void;
  /** A place was chosen, in units of x. */
  chosen?: (x: number) => void;
  /** The cursor is at this place of the data, or has left. */
  pointed?: (place: number | null) => void;
  xRange?: () => [number, number];
}

const FONT = "12px system-ui, -apple-system, Segoe UI, Roboto, sans-serif";

/** Width of the labels of the y axis: the same on both sides, so that times stand above each other. */
const GUTTER = 52;
/** The same where a chart is narrow, px. */
const NARROW_GUTTER = 34;
const NARROW = 260;

export class Chart {
  private plot: uPlot | null = null;
  private data: uPlot.AlignedData = [[]];
  private made = "";
  private options: ChartOptions | null = null;

  constructor(readonly place: HTMLElement) {
    new ResizeObserver(() => this.fit()).observe(place);
  }

  /** Show data; the chart is made anew only if its lines or its colours are others. */
  show(options: ChartOptions, data: uPlot.AlignedData): void {
    this.options = options;
    this.data = data;
    const key = JSON.stringify([options.lines, options.height, css("--text"), options.y.label, options.x.label]);
    if (this.plot && key === this.made) {
      this.plot.setData(data);
      return;
    }
    this.made = key;
    this.make();
  }

  redraw(): void {
    this.plot?.redraw(false, true);
  }

  get canvas(): HTMLCanvasElement | null {
    return this.place.querySelector("canvas");
  }

  private fit(): void {
    if (!this.plot || !this.options) return;
    const width = this.place.clientWidth;
    if (width > 0 && width !== this.plot.width) this.plot.setSize({ width, height: this.options.height });
  }

  private make(): void {
    this.plot?.destroy();
    const { height, x, lines, sync, xRange } = this.options!;
    const [soft, grid] = [css("--soft"), css("--grid")];
    const axis: uPlot.Axis = {
      stroke: soft,
      font: FONT,
      labelFont: FONT,
      grid: { stroke: grid, width: 1 },
      ticks: { stroke: grid, width: 1, size: 4 },
      gap: 4,
    };
    const scales: uPlot.Scales = {
      x: {
        time: false,
        ...(x.log ? { distr: 3, log: 10 as const } : {}),
        ...(xRange ? { range: () => xRange() } : {}),
      },
      y: { range: () => this.options!.y.range() },
    };
    this.plot = new uPlot(
      {
        width: Math.max(50, this.place.clientWidth),
        height,
        pxAlign: 0,
        legend: { show: false },
        padding: [8, 18, 0, 0],
        cursor: {
          ...(sync ? { sync: { key: sync, setSeries: false } } : {}),
          y: false,
          drag: { x: false, y: false },
          points: { size: 6 },
        },
        scales,
        axes: [
          {
            ...axis,
            size: x.label ? 42 : 28,
            space: this.place.clientWidth < NARROW ? 45 : 60,
            ...(x.label ? { label: x.label, labelSize: 16 } : {}),
            values: (_: uPlot, values: number[]) =>
              values.map((value) => (value === null ? "" : (this.options!.x.format ?? String)(value))),
          },
          {
            ...axis,
            size: this.place.clientWidth < NARROW ? NARROW_GUTTER : GUTTER,
            space: 28,
            values: (_: uPlot, values: number[]) => values.map((value) => this.options!.y.format(value)),
          },
        ],
        series: [
          {},
          ...lines.map(
            (line): uPlot.Series => ({
              label: line.label,
              stroke: line.colour,
              width: line.width ?? 1.5,
              points: { show: false },
              ...(line.dash ? { dash: line.dash } : {}),
              ...(line.fill ? { fill: line.fill } : {}),
            }),
          ),
        ],
        hooks: {
          drawClear: [(chart) => this.options!.under?.(chart)],
          draw: [(chart) => this.options!.over?.(chart)],
          setCursor: [(chart) => this.options!.pointed?.(chart.cursor.idx ?? null)],
        },
      },
      this.data,
      this.place,
    );
    this.plot.over.addEventListener("click", (event) => {
      const chart = this.plot;
      if (chart) this.options!.chosen?.(chart.posToVal(event.clientX - chart.over.getBoundingClientRect().left, "x"));
    });
  }
}

/** Sums or means of so many samples each, so that lines of rates can be read. */
export function binned(values: ArrayLike<number>, size: number): Float64Array {
  const bins = Math.floor(values.length / size);
  const found = new Float64Array(bins);
  for (let bin = 0; bin < bins; bin++) {
    let sum = 0;
    for (let i = bin * size; i < (bin + 1) * size; i++) sum += values[i]!;
    found[bin] = sum / size;
  }
  return found;
}

/** The ends of so many samples each. */
export function binEnds(values: ArrayLike<number>, size: number): Float64Array {
  return Float64Array.from({ length: Math.floor(values.length / size) }, (_, bin) => values[(bin + 1) * size - 1]!);
}

/** Ticks in the lowest part of a chart where packets were dropped or marked; more in one place are darker. */
export function rug(chart: uPlot, series: QueueSeries | undefined, drops: string, marks: string): void {
  if (!series) return;
  const { ctx, bbox } = chart;
  const scale = devicePixelRatio;
  ctx.save();
  for (const [counts, colour, row] of [
    [series.drops, drops, 0],
    [series.marks, marks, 1],
  ] as const) {
    ctx.fillStyle = colour;
    const most = counts.reduce((a, b) => Math.max(a, b), 0);
    if (!most) continue;
    for (let i = 0; i < counts.length; i++) {
      const count = counts[i]!;
      if (!count) continue;
      ctx.globalAlpha = 0.35 + 0.65 * Math.min(1, count / Math.max(3, most));
      const x = chart.valToPos(series.time_s[i]!, "x", true);
      ctx.fillRect(x - 0.6 * scale, bbox.top + bbox.height - (7 + 8 * row) * scale, 1.2 * scale, 7 * scale);
    }
  }
  ctx.restore();
}

/** A vertical line at a time. */
export function playhead(chart: uPlot, x: number | null, colour: string): void {
  if (x === null) return;
  const { ctx, bbox } = chart;
  const at = chart.valToPos(x, "x", true);
  if (at < bbox.left || at > bbox.left + bbox.width) return;
  ctx.save();
  ctx.strokeStyle = colour;
  ctx.lineWidth = 1.5 * devicePixelRatio;
  ctx.beginPath();
  ctx.moveTo(at, bbox.top);
  ctx.lineTo(at, bbox.top + bbox.height);
  ctx.stroke();
  ctx.restore();
}

/** What is before a time is not measured: paler. */
export function unmeasured(chart: uPlot, until_s: number, colour: string): void {
  if (!(until_s > 0)) return;
  const { ctx, bbox } = chart;
  const right = Math.min(bbox.left + bbox.width, chart.valToPos(until_s, "x", true));
  ctx.save();
  ctx.fillStyle = colour;
  ctx.fillRect(bbox.left, bbox.top, right - bbox.left, bbox.height);
  ctx.restore();
}

/** The share of packets that waited at most so long, at the upper ends of the bins. */
export function cumulative({ delay_s, counts }: Histogram): { delay_s: number[]; share: number[] } {
  const total = counts.reduce((a, b) => a + b, 0);
  const found = { delay_s: [] as number[], share: [] as number[] };
  let sum = 0;
  counts.forEach((count, bin) => {
    sum += count;
    const next = counts[bin + 1] ?? 0;
    if (total && (count || next)) {
      found.delay_s.push(delay_s[bin]!);
      found.share.push(sum / total);
    }
  });
  return found;
}

/** Two cumulative distributions on one axis: the value of each at all places of either. */
export function joined(both: { delay_s: number[]; share: number[] }[]): [number[], ...(number | null)[][]] {
  const xs = [...new Set(both.flatMap(({ delay_s }) => delay_s))].sort((a, b) => a - b);
  const columns = both.map(({ delay_s, share }) => {
    let at = 0;
    return xs.map((x) => {
      while (at < delay_s.length && delay_s[at]! <= x) at++;
      return at === 0 ? (delay_s.length ? 0 : null) : share[at - 1]!;
    });
  });
  return [xs, ...columns];
}

/** The end of an axis that holds a value: 1, 2, 2.5 or 5 times a power of ten. */
export function niceEnd(value: number): number {
  if (!(value > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return ([1, 1.25, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10].find((each) => each * power >= value) ?? 10) * power;
}

/** Jain's index of fairness (Jain, Chiu and Hawe, DEC-TR-301, 1984): 1 if all have the same, 1/n if one has all. */
export function jain(values: readonly number[]): number | null {
  const sum = values.reduce((a, b) => a + b, 0);
  const squares = values.reduce((a, b) => a + b * b, 0);
  return squares > 0 ? sum ** 2 / (values.length * squares) : null;
}
