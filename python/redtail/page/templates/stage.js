// Draws the queue at a time: what arrives from the left, waits, is sent to the right, or falls out.
"use strict";
const stage = (() => {
  const LARGEST = 24, SMALLEST = 2;
  const MOST_CELLS = 20000; // drawn in a frame
  const MOST_MOVING = 300;
  const FLIGHT_S = 0.35, FALL_S = 1.1; // of the watcher's time
  const FALL = 46;

  // Side and number of rows of the squares, so that so many fit.
  function squares(count, width, height) {
    let side = LARGEST;
    while (side > SMALLEST && Math.floor(width / side) * Math.floor(height / side) < count) side--;
    const columns = Math.max(1, Math.floor(width / side));
    return { side, rows: Math.max(1, Math.min(Math.floor(height / side), Math.ceil(count / columns))) };
  }

  // Collects squares by colour, so that each colour is filled once.
  function brush(pen) {
    const paths = new Map();
    return {
      add(colour, alpha, x, y, width, height) {
        const key = `${alpha} ${colour}`;
        if (!paths.has(key)) paths.set(key, { colour, alpha, path: new Path2D() });
        paths.get(key).path.rect(x, y, width, height);
      },
      fill() {
        for (const { colour, alpha, path } of paths.values()) {
          pen.globalAlpha = alpha;
          pen.fillStyle = colour;
          pen.fill(path);
        }
        pen.globalAlpha = 1;
        paths.clear();
      },
    };
  }

  const heightOf = (rows) => (rows > 1 ? 26 + rows * 34 : 130) + FALL;

  // The view has the time, how fast it passes, rows, colours and whether things fly. Returns what was drawn where.
  function draw(canvas, found, view) {
    const got = curves.sheet(canvas);
    const hits = [];
    if (!got) return { hits, shown: 1 };
    const { pen, width, height } = got;
    const css = elements.css;
    const [text, soft, line, bad, warn] = ["--text", "--soft", "--line", "--bad", "--warn-line"].map(css);
    const { t, rows } = view;
    const arriving = Math.max(30, width * 0.1), sending = Math.max(56, width * 0.14);
    const left = arriving, right = width - sending;
    const top = 22, bottom = height - FALL;
    const each = (bottom - top) / rows.count;
    const fill = brush(pen);

    // What waits.
    const queues = Array.from({ length: rows.count }, () => []);
    let waiting = 0;
    found.waiting(t, (i) => { queues[rows.of(i)].push(i); waiting++; });
    const capacity = rows.count > 1 ? rows.most : view.capacity;
    const { side, rows: lines } = squares(Math.min(capacity, MOST_CELLS), right - left, each - (rows.count > 1 ? 6 : 4));
    const gap = side > 5 ? 1 : 0;
    const shown = Math.max(1, Math.ceil(waiting / MOST_CELLS));
    const ends = queues.map((queue, row) => {
      const y0 = top + (row + 0.5) * each - (lines * side) / 2, base = y0 + lines * side;
      queue.forEach((i, place) => {
        if (place % shown) return;
        const at = Math.floor(place / shown);
        const x = right - (Math.floor(at / lines) + 1) * side, y = y0 + (at % lines) * side;
        if (x < left - side) return;
        square(i, x, y);
        hits.push({ i, x, y, side });
      });
      const columns = Math.ceil(queue.length / shown / lines);
      return { x: Math.max(left, right - columns * side), y: y0 + (lines * side) / 2, y0, base };
    });

    function tallOf(i) {
      return Math.max(Math.min(side - gap, 3), (side - gap) * Math.sqrt(found.bytes[i] / found.most));
    }

    function square(i, x, y, alpha = 1) {
      const size = side - gap, tall = tallOf(i);
      fill.add(view.colour(i), alpha * (view.pale(i) ? 0.15 : 1), x, y + size - tall, size, tall);
      if (reel.isMarked(found, i, t) && side > 3) fill.add(text, alpha, x + size / 4, y + size - Math.max(2, tall / 2), size / 2, Math.max(1.5, tall / 6));
    }

    // The box of each queue.
    pen.lineWidth = 1;
    pen.strokeStyle = line;
    for (const { y0, base } of ends) {
      const wide = Math.min(right - left, Math.ceil(capacity / lines) * side);
      pen.strokeRect(right - wide - 2.5, y0 - 2.5, wide + 4, base - y0 + 4);
    }
    pen.fillStyle = soft;
    pen.textAlign = "left";
    pen.textBaseline = "middle";
    if (rows.count > 1) ends.forEach(({ y }, row) => pen.fillText(fitted(pen, rows.names[row], left - 8), 2, y));

    // What comes, and what has been sent.
    const flight = FLIGHT_S * view.speed;
    const middle = (top + bottom) / 2;
    if (!view.still) {
      const first = reel.upTo(found.arrival, t);
      for (let i = first; i < found.count && i < first + MOST_MOVING && found.arrival[i] <= t + flight; i++) {
        const done = 1 - (found.arrival[i] - t) / flight;
        const end = ends[rows.of(i)];
        square(i, done * (end.x - side), end.y - side / 2, 0.35 + 0.5 * done);
      }
    }
    const gone = reel.upTo(found.outs, t);
    let last = -1;
    for (let place = gone - 1; place >= 0 && place >= gone - MOST_MOVING; place--) {
      const i = found.byOut[place], age = t - found.outs[place];
      if (found.fate[i] === reel.SENT) {
        if (last < 0) last = i;
        if (!view.still && age <= flight) square(i, right + 30 + (age / flight) * (width - right - 30), middle - side / 2, 1 - age / flight / 2);
      }
      if (age > Math.max(flight, FALL_S * view.speed)) break;
    }
    transmitter(last);

    // What has just been dropped, with the reason.
    const words = new Map();
    const fall = FALL_S * view.speed;
    for (let place = gone - 1; place >= 0 && place >= gone - 4 * MOST_MOVING && found.outs[place] > t - fall; place--) {
      const i = found.byOut[place];
      if (found.fate[i] !== reel.DROPPED) continue;
      const age = view.still ? 0.6 : (t - found.outs[place]) / fall;
      const end = ends[rows.of(i)];
      const inside = found.out[i] > found.arrival[i];
      const x = Math.max(left, inside ? right - side : end.x - side) + (i % 5) * 3;
      const y = end.base + age * (height - end.base - side - 2);
      square(i, x, y, 1 - 0.6 * age);
      pen.strokeStyle = bad;
      pen.globalAlpha = 1 - age;
      pen.lineWidth = 2;
      pen.strokeRect(x - 1, y - 1 + side - gap - tallOf(i), side - gap + 2, tallOf(i) + 2);
      pen.globalAlpha = 1;
      const reason = found.model.reasons[found.reason[i]] || "drop";
      if (!words.has(reason)) words.set(reason, { x, count: 0, alpha: 1 - 0.7 * age });
      words.get(reason).count++;
    }
    fill.fill();
    pen.textBaseline = "alphabetic";
    let under = left;
    for (const [reason, { x, count, alpha }] of words) {
      const told = count > 1 ? `${reason} × ${count}` : reason;
      const wide = pen.measureText(told).width;
      const at = Math.max(under, Math.min(x + side + 8, width - wide - 4));
      pen.globalAlpha = alpha;
      pen.fillStyle = bad;
      pen.fillText(told, at, height - 8);
      under = at + wide + 10;
    }
    pen.globalAlpha = 1;
    pen.fillStyle = soft;
    pen.textAlign = "left";
    pen.fillText("arrive", 2, 14);
    pen.textAlign = "right";
    pen.fillText("sent", width - 2, 14);
    pen.textAlign = "left";
    const limit = view.limit ? ` of ${view.limit}` : "";
    const unit = shown > 1 ? `; a square stands for ${shown}` : "";
    pen.fillText(fitted(pen, `${waiting}${limit} packets wait${unit}`, right - left), left, 14);
    return { hits, shown, waiting };

    // The packet that is being sent, as far as it is.
    function transmitter(i) {
      const box = 26, x = right + 4, y = middle - box / 2;
      const takes = i < 0 || !view.rate ? 0 : (found.bytes[i] * 8) / view.rate;
      const share = takes ? Math.min(1, (t - found.out[i]) / takes) : 1;
      pen.lineWidth = 1.5;
      pen.strokeStyle = soft;
      pen.strokeRect(x + 0.5, y + 0.5, box - 1, box - 1);
      pen.beginPath();
      pen.moveTo(x + box, middle);
      pen.lineTo(width, middle);
      pen.stroke();
      if (share < 1) {
        fill.add(view.colour(i), 1, x + 3, y + 3, (box - 6) * (1 - share), box - 6);
        if (reel.isMarked(found, i, t)) {
          pen.strokeStyle = warn;
          pen.lineWidth = 2.5;
          pen.strokeRect(x + 0.5, y + 0.5, box - 1, box - 1);
        }
      }
    }
  }

  function fitted(pen, text, width) {
    let shown = text;
    while (shown.length > 1 && pen.measureText(shown).width > width) shown = `${shown.slice(0, -2)}…`;
    return shown;
  }

  return { draw, heightOf };
})();
