// A curve over time on a canvas: as many points as a screen can show, of each part the lowest and the highest.
"use strict";
const curves = (() => {
  const BLOCK = 8;
  const MOST = 3000;

  // The curve itself, then the lowest and the highest of every eight points, of every 64, and so on.
  function curve({ times, values, colour, dots = false, steps = false }) {
    const levels = [{ times, values }];
    while (levels.at(-1).values.length > MOST) levels.push(thinned(levels.at(-1)));
    return { levels, colour, dots, steps };
  }

  function thinned({ times, values }) {
    const size = 2 * Math.ceil(values.length / BLOCK);
    const found = { times: new Float64Array(size), values: new Float64Array(size) };
    for (let to = 0; to < size; to += 2) {
      const start = (to / 2) * BLOCK, end = Math.min(values.length, start + BLOCK);
      let least = start, most = start;
      for (let i = start; i < end; i++) {
        if (!(values[i] >= values[least])) least = i;
        if (!(values[i] <= values[most])) most = i;
      }
      [Math.min(least, most), Math.max(least, most)].forEach((i, place) => {
        found.times[to + place] = times[i];
        found.values[to + place] = values[i];
      });
    }
    return found;
  }

  // A canvas whose points are those of the style, sharp on a screen with more; null if it is not seen.
  function sheet(canvas) {
    const { clientWidth: width, clientHeight: height } = canvas;
    if (!width || !height) return null;
    const scale = Math.min(2, window.devicePixelRatio || 1);
    if (canvas.width !== Math.round(width * scale) || canvas.height !== Math.round(height * scale)) {
      canvas.width = Math.round(width * scale);
      canvas.height = Math.round(height * scale);
    }
    const pen = canvas.getContext("2d");
    pen.setTransform(scale, 0, 0, scale, 0, 0);
    pen.clearRect(0, 0, width, height);
    pen.font = `12px ${elements.css("--font")}`;
    return { pen, width, height };
  }

  // The next of 1, 2, 5, 10, … at or above a value.
  function round(value) {
    if (!(value > 0)) return 1;
    const ten = 10 ** Math.floor(Math.log10(value));
    return [1, 2, 5, 10].map((each) => each * ten).find((each) => each >= value * (1 - 1e-9));
  }

  const short = (value) => String(Number(value.toPrecision(3)));

  // The points of a curve between two times, with those beside them, at a level with few enough.
  function seen({ levels }, from, to, share) {
    const level = levels.find(({ times }) => reel.upTo(times, to) - reel.upTo(times, from) <= MOST / share) ?? levels.at(-1);
    const { times, values } = level;
    return { times, values, start: Math.max(0, reel.upTo(times, from) - 1), end: Math.min(times.length, reel.upTo(times, to) + 1) };
  }

  function highest({ values, start, end }, most) {
    for (let i = start; i < end; i++) if (values[i] > most && Number.isFinite(values[i])) most = values[i];
    return most;
  }

  function trace(pen, each, { times, values, start, end }, x, y) {
    pen.strokeStyle = pen.fillStyle = each.colour;
    if (each.dots) {
      for (let i = start; i < end; i++) pen.fillRect(x(times[i]) - 1, y(values[i]) - 1, 2, 2);
      return;
    }
    pen.beginPath();
    let before = NaN;
    for (let i = start; i < end; i++) {
      const value = values[i];
      if (!Number.isFinite(value)) { before = NaN; continue; }
      if (Number.isNaN(before)) pen.moveTo(x(times[i]), y(value));
      else {
        if (each.steps) pen.lineTo(x(times[i]), y(before));
        pen.lineTo(x(times[i]), y(value));
      }
      before = value;
    }
    pen.stroke();
  }

  // Draws curves between two times, with room for what is there then; what comes after `now` is pale.
  function draw(canvas, list, { from, to, now, lines = [], marks = [] }) {
    const got = sheet(canvas);
    if (!got) return;
    const { pen, width, height } = got;
    const soft = elements.css("--soft"), grid = elements.css("--grid"), text = elements.css("--text");
    const left = 46, right = width - 8, top = 8, bottom = height - 20;
    const parts = list.map((each) => seen(each, from, to, list.length));
    const ceiling = round(parts.reduce((most, part) => highest(part, most), 0));
    const x = (t) => left + ((t - from) / (to - from)) * (right - left);
    const y = (value) => bottom - (value / ceiling) * (bottom - top);
    pen.lineWidth = 1;
    pen.textBaseline = "middle";
    pen.textAlign = "right";
    for (const share of [0, 0.5, 1]) {
      pen.fillStyle = grid;
      pen.fillRect(left, Math.round(y(share * ceiling)), right - left, 1);
      pen.fillStyle = soft;
      pen.fillText(short(share * ceiling), left - 5, y(share * ceiling));
    }
    pen.textBaseline = "alphabetic";
    const digits = Math.max(0, Math.min(9, 2 - Math.floor(Math.log10(to - from))));
    [["left", from, left], ["right", to, right]].forEach(([align, t, at]) => {
      pen.textAlign = align;
      pen.fillText(`${t.toFixed(digits)} s`, at, height - 5);
    });
    pen.setLineDash([2, 3]);
    pen.strokeStyle = soft;
    for (const value of lines.filter((each) => each <= ceiling)) {
      pen.beginPath();
      pen.moveTo(left, y(value));
      pen.lineTo(right, y(value));
      pen.stroke();
    }
    pen.setLineDash([]);
    pen.lineWidth = 1.5;
    for (const [start, end, alpha] of [[left, x(now), 1], [x(now), right, 0.28]]) {
      pen.save();
      pen.globalAlpha = alpha;
      pen.beginPath();
      pen.rect(start, 0, Math.max(0, end - start), bottom + 2);
      pen.clip();
      list.forEach((each, place) => trace(pen, each, parts[place], x, y));
      for (const { t, colour } of marks) {
        pen.fillStyle = colour;
        pen.fillRect(x(t) - 0.5, bottom - 5, 1, 5);
      }
      pen.restore();
    }
    pen.fillStyle = text;
    pen.fillRect(x(now) - 0.5, top - 4, 1, bottom - top + 4);
  }

  return { curve, draw, sheet };
})();
