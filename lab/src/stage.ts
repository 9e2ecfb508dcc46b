// Draws a queue at a time: packets come from the left, wait, are sent to the right, or fall out.

import { css } from "./dom";
import type { Reel } from "./reel";
import { DROPPED, SENT, upTo, waitingAt } from "./reel";

const LARGEST = 22;
const SMALLEST = 3;
/** Of the watcher's time, s. */
const FLIGHT_S = 0.35;
const FALL_S = 1.1;
const FALL = 34;
const TOP = 4;
const MOST_MOVING = 300;

export interface StageView {
  t: number;
  /** Simulated seconds in a second of the watcher. */
  speed: number;
  /** Nothing flies: it is paused, or motion is not wanted. */
  still: boolean;
  /** Rate of the link, bit/s; null if it is not known. */
  rate: number | null;
  /** Packets for which there must be room. */
  room: number;
  colour: (group: number, flow: number) => string;
}

export interface Hit {
  packet: number;
  x: number;
  y: number;
  side: number;
}

/** The canvas at the resolution of the screen. */
function sheet(canvas: HTMLCanvasElement): { pen: CanvasRenderingContext2D; width: number; height: number } | null {
  const { clientWidth: width, clientHeight: height } = canvas;
  const pen = canvas.getContext("2d");
  if (!pen || !width || !height) return null;
  const scale = window.devicePixelRatio || 1;
  const [wide, high] = [Math.round(width * scale), Math.round(height * scale)];
  if (canvas.width !== wide || canvas.height !== high) Object.assign(canvas, { width: wide, height: high });
  pen.setTransform(scale, 0, 0, scale, 0, 0);
  pen.clearRect(0, 0, width, height);
  pen.font = "12px system-ui, -apple-system, Segoe UI, Roboto, sans-serif";
  return { pen, width, height };
}

/** Side and rows of squares of which so many fit. */
export function squares(count: number, width: number, height: number): { side: number; rows: number } {
  let side = LARGEST;
  while (side > SMALLEST && Math.floor(width / side) * Math.floor(height / side) < count) side--;
  const columns = Math.max(1, Math.floor(width / side));
  return { side, rows: Math.max(1, Math.min(Math.floor(height / side), Math.ceil(count / columns))) };
}

/** Draw, and say which packet was drawn where. */
export function drawStage(canvas: HTMLCanvasElement, reel: Reel, view: StageView): { hits: Hit[]; waiting: number } {
  const got = sheet(canvas);
  const hits: Hit[] = [];
  if (!got) return { hits, waiting: 0 };
  const { pen, width, height } = got;
  const [text, soft, line, bad] = [css("--text"), css("--soft"), css("--line"), css("--bad")];
  const { t } = view;
  const left = Math.max(26, width * 0.07);
  const right = width - Math.max(60, width * 0.12);
  const bottom = height - FALL;
  const { side, rows } = squares(view.room, right - left, bottom - TOP);
  const gap = side > 6 ? 1 : side > 3 ? 0.5 : 0;
  const base = TOP + (bottom - TOP + rows * side) / 2;
  const top = base - rows * side;
  const middle = (top + base) / 2;

  const tall = (i: number): number =>
    Math.max(Math.min(side - gap, 2.5), (side - gap) * Math.sqrt(reel.size[i]! / reel.mostSize));
  const square = (i: number, x: number, y: number, alpha = 1): void => {
    const high = tall(i);
    pen.globalAlpha = alpha;
    pen.fillStyle = view.colour(reel.group[i]!, reel.flow[i]!);
    pen.fillRect(x, y + side - gap - high, side - gap, high);
    if (reel.mark[i]! <= t && side > 4) {
      pen.fillStyle = text;
      pen.fillRect(x + (side - gap) / 2 - 1, y + side - gap - high, 2, high);
    }
    pen.globalAlpha = 1;
  };

  // The box, and what waits in it: the next to go is at the right, at the top.
  pen.strokeStyle = line;
  pen.lineWidth = 1;
  const wide = Math.min(right - left, Math.ceil(view.room / rows) * side);
  pen.strokeRect(right - wide - 2.5, top - 2.5, wide + 4, rows * side + 4);
  const waiting = waitingAt(reel, t);
  const shown = Math.max(1, Math.ceil(waiting.length / (Math.floor((right - left) / side) * rows)));
  waiting.forEach((i, place) => {
    if (place % shown) return;
    const at = place / shown;
    const x = right - (Math.floor(at / rows) + 1) * side;
    const y = top + (at % rows) * side;
    square(i, x, y);
    hits.push({ packet: i, x, y, side });
  });
  const end = Math.max(left, right - Math.ceil(waiting.length / shown / rows) * side);

  // What comes, and what has been sent.
  const flight = FLIGHT_S * view.speed;
  if (!view.still) {
    const first = upTo(reel.arrival, t);
    for (let i = first; i < reel.count && i < first + MOST_MOVING && reel.arrival[i]! <= t + flight; i++) {
      const done = 1 - (reel.arrival[i]! - t) / flight;
      square(i, done * (end - side), middle - side / 2, 0.3 + 0.6 * done);
    }
  }
  const gone = upTo(reel.outs, t);
  let last = -1;
  const fallen: number[] = [];
  const fall = FALL_S * view.speed;
  for (let place = gone - 1; place >= 0 && place >= gone - 4 * MOST_MOVING; place--) {
    const i = reel.byOut[place]!;
    const age = t - reel.outs[place]!;
    if (age > Math.max(flight, fall) && last >= 0) break;
    if (reel.fate[i] === SENT) {
      if (last < 0) last = i;
      if (!view.still && age <= flight) {
        square(i, right + 32 + (age / flight) * (width - right - 32), middle - side / 2, 1 - age / flight / 2);
      }
    } else if (reel.fate[i] === DROPPED && age < fall) fallen.push(i);
  }
  transmitter();

  // What has just been dropped.
  for (const i of fallen) {
    const age = view.still ? 0.5 : (t - reel.out[i]!) / fall;
    const inside = reel.out[i]! > reel.arrival[i]!;
    const x = Math.max(left, inside ? right - side : end - side) + (i % 5) * 3;
    const y = base + age * (height - base - side - 2);
    square(i, x, y, 1 - 0.6 * age);
    pen.strokeStyle = bad;
    pen.globalAlpha = Math.max(0, 1 - age);
    pen.lineWidth = 2;
    pen.strokeRect(x - 1, y - 1 + side - gap - tall(i), side - gap + 2, tall(i) + 2);
    pen.globalAlpha = 1;
  }
  if (fallen.length) {
    pen.fillStyle = bad;
    pen.textAlign = "right";
    pen.textBaseline = "alphabetic";
    pen.fillText(fallen.length > 1 ? `${fallen.length} dropped` : "dropped", width - 2, height - 6);
  }
  pen.fillStyle = soft;
  pen.textAlign = "left";
  pen.textBaseline = "alphabetic";
  const unit = shown > 1 ? `, a square stands for ${shown}` : "";
  pen.fillText(`${waiting.length} ${waiting.length === 1 ? "packet waits" : "packets wait"}${unit}`, 2, height - 6);
  return { hits, waiting: waiting.length };

  // The packet that is being sent, as far as it is.
  function transmitter(): void {
    const box = 24;
    const x = right + 6;
    const y = middle - box / 2;
    const takes = last < 0 || !view.rate ? 0 : (reel.size[last]! * 8) / view.rate;
    const share = takes ? Math.min(1, (t - reel.out[last]!) / takes) : 1;
    pen.lineWidth = 1.5;
    pen.strokeStyle = soft;
    pen.strokeRect(x + 0.5, y + 0.5, box - 1, box - 1);
    pen.beginPath();
    pen.moveTo(x + box, middle);
    pen.lineTo(width, middle);
    pen.stroke();
    if (share < 1) {
      pen.fillStyle = view.colour(reel.group[last]!, reel.flow[last]!);
      pen.fillRect(x + 3, y + 3, (box - 6) * (1 - share), box - 6);
    }
  }
}
