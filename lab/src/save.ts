// What people take with them: CSV, a picture, and texts in the clipboard.

import { css, make } from "./dom";
import type { Measure, Shown } from "./runs";
import { linesOf } from "./side";

/** A value of a CSV field. Texts that a spreadsheet would take for a formula are quoted with an apostrophe. */
export function field(value: string | number | null | undefined): string {
  if (value === null || value === undefined) return "";
  if (typeof value === "number") return Number.isFinite(value) ? String(value) : "";
  const harmless = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
  return /[",\n\r]/.test(harmless) ? `"${harmless.replaceAll('"', '""')}"` : harmless;
}

const csv = (rows: (string | number | null | undefined)[][]): string =>
  `${rows.map((row) => row.map(field).join(",")).join("\n")}\n`;

/** The series of the first run of both sides: a row for each time and side. */
export function seriesCsv(shown: Shown, link: string): string {
  const rows: (string | number | null | undefined)[][] = [];
  const lines = shown.results.map(linesOf);
  const names = [...new Set(lines.flat().map(({ group, flow }) => `${group}.${flow}`))];
  rows.push([
    "case",
    "time_s",
    "queue_packets",
    "queue_bytes",
    "queue_delay_s",
    "drops",
    "marks",
    ...names.map((name) => `${name}.goodput_bit_s`),
  ]);
  shown.results.forEach((result, side) => {
    const queue = result.series.queues[link];
    if (!queue) return;
    const label = shown.cases[shown.sides[side as 0 | 1]]?.label ?? "";
    const flows = new Map(lines[side]!.map(({ group, flow, series }) => [`${group}.${flow}`, series]));
    queue.time_s.forEach((time, i) => {
      const { packets, bytes, delay_s, drops, marks } = queue;
      const rates = names.map((name) => flows.get(name)?.goodput[i]);
      rows.push([label, time, packets[i], bytes[i], delay_s[i], drops[i], marks[i], ...rates]);
    });
  });
  return csv(rows);
}

/** The measures with their intervals. */
export function measuresCsv(measures: readonly Measure[], labels: readonly [string, string]): string {
  const head = labels.flatMap((label) => [`${label}: mean`, `${label}: half width of 95 %`]);
  const rows = measures.map(({ name, sides, difference, runs }) => [
    name,
    runs,
    ...[...sides, difference].flatMap((each) => [each.mean, "half_width" in each ? each.half_width : null]),
  ]);
  return csv([["metric", "runs", ...head, "difference: mean", "difference: half width of 95 %"], ...rows]);
}

export function download(name: string, content: Blob): void {
  const link = make("a", { href: URL.createObjectURL(content), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

/** Copy a text; where the browser forbids it, say so. */
export async function copy(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false;
  }
}

export interface PictureSide {
  label: string;
  colour: string;
  lines: string[];
  canvases: { title: string; canvas: HTMLCanvasElement }[];
  legend: { label: string; colour: string }[];
}

/** The text in lines that are no wider than so much. */
function wrapped(pen: CanvasRenderingContext2D, text: string, width: number): string[] {
  const lines = [""];
  for (const word of text.split(" ")) {
    const longer = `${lines.at(-1)} ${word}`.trim();
    if (pen.measureText(longer).width <= width || lines.at(-1) === "") lines[lines.length - 1] = longer;
    else lines.push(word);
  }
  return lines;
}

/** Both sides with their charts as one PNG. */
export async function picture(title: string, sides: readonly PictureSide[], foot: string): Promise<Blob | null> {
  const scale = devicePixelRatio || 1;
  const width = Math.max(...sides.flatMap(({ canvases }) => canvases.map(({ canvas }) => canvas.width)), 200 * scale);
  const row = 20 * scale;
  const pad = 16 * scale;
  const sheet = document.createElement("canvas");
  const pen = sheet.getContext("2d");
  if (!pen) return null;
  const font = (weight: number, size: number): string =>
    `${weight} ${size * scale}px system-ui, -apple-system, Segoe UI, Roboto, sans-serif`;
  const [text, soft] = [css("--text"), css("--soft")];
  const write = (words: string, x: number, y: number, style: string, colour: string): void => {
    pen.font = style;
    pen.fillStyle = colour;
    pen.fillText(words, x, y);
  };
  pen.font = font(400, 13);
  const lines = sides.map((side) => side.lines.flatMap((each) => wrapped(pen, each, width)));
  const tallest = Math.max(...lines.map(({ length }) => length));
  pen.font = font(400, 11);
  const feet = wrapped(pen, foot, sides.length * (width + pad) - pad);
  const charts = sides.map(({ canvases }) => canvases.reduce((sum, { canvas }) => sum + canvas.height + 1.6 * row, 0));
  sheet.width = sides.length * (width + pad) + pad;
  sheet.height = (tallest + 5 + 0.8 * feet.length) * row + Math.max(...charts) + 2 * pad;
  pen.fillStyle = css("--card");
  pen.fillRect(0, 0, sheet.width, sheet.height);
  write(title, pad, pad + row, font(700, 18), text);
  sides.forEach(({ label, colour, canvases, legend }, side) => {
    const x = pad + side * (width + pad);
    let y = pad + 2.5 * row;
    write(label, x, y, font(700, 15), colour);
    lines[side]!.forEach((each, place) => {
      write(each, x, y + (place + 1) * row, font(400, 13), text);
    });
    y += tallest * row;
    for (const { title: name, canvas } of canvases) {
      y += 1.4 * row;
      write(name, x, y, font(600, 12), soft);
      pen.drawImage(canvas, x, y + 0.2 * row);
      y += canvas.height + 0.2 * row;
    }
    let at = x;
    y += row;
    for (const each of legend) {
      pen.fillStyle = each.colour;
      pen.fillRect(at, y - 9 * scale, 9 * scale, 9 * scale);
      write(each.label, at + 13 * scale, y, font(400, 12), soft);
      at += pen.measureText(each.label).width + 28 * scale;
    }
  });
  feet.forEach((each, place) => {
    write(each, pad, sheet.height - pad - 0.8 * row * (feet.length - 1 - place), font(400, 11), soft);
  });
  return new Promise((resolve) => sheet.toBlob(resolve, "image/png"));
}
