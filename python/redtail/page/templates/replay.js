// The picture that moves: the clock, the controls, the keys, and what is told in words.
"use strict";
(() => {
  const { css, make, menu, tick, button, known, lightAndDark } = elements;
  const model = JSON.parse(document.getElementById("data").textContent);
  const COLOURS = 8;
  const MOST_FLOWS = 3 * COLOURS; // named one by one, each with a colour
  const MOST_ROWS = 12;
  const TOLD = 10;
  const STILL_MS = 500; // between frames where motion is not wanted
  const SLOWEST = 1e-7, FASTEST = 1e3;
  const { from_s: from, to_s: to } = model;
  const at = (kind, name) => document.querySelector(`[data-${kind}="${name}"]`);
  const reduced = window.matchMedia("(prefers-reduced-motion: reduce)");
  const whole = to - from;

  if (typeof DecompressionStream === "undefined") {
    at("text", "under").textContent = "This browser cannot unpack the data (DecompressionStream is missing); browsers of 2023 and later can.";
    return;
  }
  reel.open(model).then(show);

  function show(found) {
    const state = {
      t: model.start_s, speed: model.speed, playing: false, whole: false,
      by: !model.hidden.length && model.flows.length > MOST_FLOWS && model.groups.length > 1 ? "group" : "flow",
      rows: model.rows, hidden: new Set(model.hidden), frame: 0, told: -1,
    };
    const gap = found.count > 1 ? whole / found.moments.length : whole;
    const digits = Math.max(3, Math.min(9, 1 - Math.floor(Math.log10(gap))));
    const time = (t) => `${t.toFixed(digits)} s`;
    const spans = (s) => (s < 1e-3 ? `${+(1e6 * s).toPrecision(3)} µs` : s < 1 ? `${+(1e3 * s).toPrecision(3)} ms` : `${+s.toPrecision(3)} s`);
    const flowName = (flow) => `${model.groups[model.flows[flow][0]]} ${model.flows[flow][1]}`;
    const longestQueue = found.length.values.reduce((a, b) => Math.max(a, b), 0);
    const times = found.happened.map((each) => each.t);
    const counted = { place: 0, drops: 0, marks: 0 };
    let palette = [], hits = [], charts = [], wordsAt = -Infinity;

    const stageCanvas = at("canvas", "stage"), overview = at("canvas", "overview");
    const numbers = facts();
    const controls = player();
    chartControls();
    lightAndDark(restyle);
    window.addEventListener("resize", () => { layout(); redraw(); });
    window.addEventListener("keydown", keys);
    reduced.addEventListener("change", () => redraw());
    stageCanvas.addEventListener("pointermove", (event) => point(event));
    overview.addEventListener("pointerdown", (event) => {
      const box = overview.getBoundingClientRect();
      seek(from + ((event.clientX - box.left - 46) / (box.width - 54)) * whole);
    });
    restyle();

    // --- Looks ---------------------------------------------------------------------------------

    function colourOf(flow) {
      return palette[(state.by === "group" ? model.flows[flow][0] : flow) % palette.length];
    }

    function isHidden(flow) {
      return state.hidden.has(state.by === "group" ? model.flows[flow][0] : flow);
    }

    function rowsNow() {
      const names = state.rows === "flows" ? model.flows.map((_, flow) => flowName(flow)) : state.rows === "groups" ? model.groups : ["queue"];
      const count = Math.min(names.length, MOST_ROWS);
      const last = names.length > count ? `and ${names.length - count + 1} more` : names[count - 1];
      const place = (i) => (state.rows === "flows" ? found.flow[i] : state.rows === "groups" ? model.flows[found.flow[i]][0] : 0);
      const rows = { count, names: [...names.slice(0, count - 1), last], of: (i) => Math.min(place(i), count - 1) };
      return { ...rows, most: count > 1 ? longest(rows) : 0 };
    }

    // The most that waits in one row, of as many times as can be looked at quickly.
    function longest(rows) {
      let most = 1;
      for (let step = 0; step <= 300; step++) {
        const counts = new Uint32Array(rows.count);
        found.waiting(from + (step / 300) * whole, (i) => { most = Math.max(most, ++counts[rows.of(i)]); });
      }
      return Math.ceil(most * 1.2);
    }

    function restyle() {
      // The colours of the page, then the same darker and lighter.
      const own = Array.from({ length: COLOURS }, (_, number) => css(`--c${number}`));
      const towards = (other) => own.map((colour) => `color-mix(in srgb, ${colour} 50%, ${css(other)})`);
      palette = [...own, ...towards("--text"), ...towards("--card")];
      legend();
      layout();
      makeCharts();
      redraw();
    }

    function layout() {
      state.laid = rowsNow();
      stageCanvas.style.height = `${stage.heightOf(state.laid.count)}px`;
    }

    // --- The clock -----------------------------------------------------------------------------

    function play(on) {
      if (on && state.t >= to) state.t = from;
      state.playing = on;
      controls.play.textContent = on ? "Pause" : "Play";
      cancelAnimationFrame(state.frame);
      if (!on) { redraw(); speak(); return; }
      let before = performance.now();
      const step = (now) => {
        if (!state.playing) return;
        state.frame = requestAnimationFrame(step);
        if (reduced.matches && now - before < STILL_MS) return;
        // A tab that was away goes on where it was.
        state.t = Math.min(to, state.t + (Math.min(now - before, 2 * STILL_MS) / 1000) * state.speed);
        before = now;
        if (state.t >= to) play(false); else redraw();
      };
      state.frame = requestAnimationFrame(step);
    }

    function seek(t) {
      state.t = Math.max(from, Math.min(to, t));
      redraw();
      if (!state.playing) speak();
    }

    // To the next of these times, or the one before.
    function jump(sorted, way) {
      play(false);
      const place = reel.upTo(sorted, state.t);
      if (way > 0) seek(place < sorted.length ? sorted[place] : to);
      else {
        let before = place - 1;
        while (before >= 0 && sorted[before] >= state.t) before--;
        seek(before >= 0 ? sorted[before] : from);
      }
    }

    function speedUp(factor) {
      state.speed = Math.max(SLOWEST, Math.min(FASTEST, state.speed * factor));
      redraw();
    }

    function keys(event) {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const tag = event.target.tagName;
      const slides = tag === "INPUT" && event.target.type === "range";
      const takesSpace = tag === "BUTTON" || tag === "SELECT" || (tag === "INPUT" && !slides);
      const acts = {
        " ": takesSpace ? null : () => play(!state.playing),
        ArrowRight: slides || tag === "SELECT" ? null : () => (event.shiftKey ? seek(state.t + whole / 100) : jump(found.moments, 1)),
        ArrowLeft: slides || tag === "SELECT" ? null : () => (event.shiftKey ? seek(state.t - whole / 100) : jump(found.moments, -1)),
        Home: slides ? null : () => seek(from), End: slides ? null : () => seek(to),
        n: () => jump(times, 1), p: () => jump(times, -1),
        "+": () => speedUp(2), "=": () => speedUp(2), "-": () => speedUp(0.5),
      };
      const act = acts[event.key];
      if (!act || (tag === "SELECT" && event.key.length === 1)) return;
      event.preventDefault();
      act();
    }

    // --- Controls ------------------------------------------------------------------------------

    function slider(label, name, given, changed) {
      const input = make("input", { type: "range", "aria-label": label, "data-name": name, ...given, oninput: () => changed(Number(input.value)) });
      return input;
    }

    function player() {
      const named = (name, element) => { element.dataset.name = name; return element; };
      const start = button("Play", "Play or pause (space)", () => play(!state.playing));
      const now = make("output", { "data-text": "time" });
      const speed = make("output", { "data-text": "speed" });
      const seeker = slider("Time in the run", "time", { min: from, max: to, step: whole / 2000 }, seek);
      const pace = slider("Speed", "speed", { min: Math.log10(SLOWEST), max: Math.log10(FASTEST), step: 0.05 }, (value) => { state.speed = 10 ** value; redraw(); });
      at("controls", "player").append(
        named("play", start),
        make("span", { class: "control-group", role: "group", "aria-label": "Step" },
          named("earlier", button("◀", "One event back (left arrow)", () => jump(found.moments, -1))),
          named("later", button("▶", "One event on (right arrow)", () => jump(found.moments, 1))),
          named("previous", button("« drop", "The drop, mark or event of a flow before (P)", () => jump(times, -1))),
          named("next", button("drop »", "The next drop, mark or event of a flow (N)", () => jump(times, 1)))),
        make("label", { class: "control" }, "Speed", pace), speed,
        make("div", { class: "time" }, seeker, now),
      );
      return { play: start, now, speed, seeker, pace };
    }

    function legend() {
      const where = at("controls", "legend");
      const byFlow = state.by === "flow";
      const names = byFlow ? model.flows.map((_, flow) => flowName(flow)) : model.groups;
      const set = make("fieldset", {}, make("legend", {}, byFlow ? "Flows" : "Groups"));
      if (model.flows.length > 1 && model.groups.length > 1) {
        set.append(menu("Colour by", [["flow", "flow"], ["group", "group"]], state.by, (value) => { state.by = value; state.hidden.clear(); restyle(); at("name", "colour").focus(); }, "colour"));
      }
      if (model.flows.length > 1) {
        set.append(menu("Rows", [["one", "one queue"], ["flows", "by flow"], ["groups", "by group"]], state.rows, (value) => { state.rows = value; layout(); redraw(); }, "rows"));
      }
      names.slice(0, MOST_FLOWS).forEach((name, number) => {
        const box = make("input", { type: "checkbox", checked: !state.hidden.has(number), "data-flow": number, onchange: () => {
          if (box.checked) state.hidden.delete(number); else state.hidden.add(number);
          makeCharts();
          redraw();
        } });
        set.append(make("label", {}, box, make("span", { class: "chip", style: `color: ${palette[number]}`, "aria-hidden": "true" }), name));
      });
      if (names.length > MOST_FLOWS) set.append(make("span", { class: "note" }, `and ${names.length - MOST_FLOWS} more`));
      where.replaceChildren(set);
    }

    function chartControls() {
      at("controls", "charts").append(tick("show the whole window", false, (value) => { state.whole = value; redraw(); }, "whole"));
    }

    // --- Over time -----------------------------------------------------------------------------

    function makeCharts() {
      const where = at("charts", "all");
      const text = css("--text"), accent = css("--accent");
      const sampled = (name) => model.curves.filter((each) => each.of === name);
      const line = (each, colour) => ({ times: model.curve_times_s, values: each.values.map((value) => value ?? NaN), colour });
      const sent = [...found.byOut].filter((i) => found.fate[i] === reel.SENT);
      const given = [
        ["length", "Packets that wait", [{ ...found.length, colour: text, steps: true }, ...sampled("average").map((each) => line(each, accent))], [model.limit].filter(known)],
        ["delay", "Wait of each packet that was sent (ms)", [{ times: Float64Array.from(sent, (i) => found.out[i]), values: Float64Array.from(sent, (i) => 1e3 * (found.out[i] - found.arrival[i])), colour: text, dots: true }], []],
        ["probability", "Probability of the control law", sampled("probability").map((each) => line(each, accent)), []],
        ["windows", "Congestion windows (kB)", sampled("cwnd").filter((each) => !isHidden(each.flow)).map((each) => line(each, colourOf(each.flow))), []],
      ].filter(([name, , list]) => list.length || (name === "windows" && sampled("cwnd").length));
      if (charts.length !== given.length) {
        where.replaceChildren(...given.map(([name, title]) => make("figure", { class: "card chart" }, make("figcaption", {}, title), make("canvas", { "data-canvas": name, role: "img", "aria-label": `${title}, over time` }))));
      }
      charts = given.map(([name, , list, lines]) => ({ canvas: at("canvas", name), lines, list: list.map(curves.curve) }));
    }

    function drawCharts() {
      const span = state.whole ? whole : Math.min(whole, Math.max(8 * state.speed, 40 * gap));
      const start = Math.max(from, Math.min(to - span, state.t - 0.7 * span));
      const bad = css("--bad"), warn = css("--warn-line"), focus = css("--focus");
      const colours = { drop: bad, mark: warn };
      const marks = (a, b, most) => {
        const first = Math.max(0, reel.upTo(times, a)), last = reel.upTo(times, b);
        const stride = Math.max(1, Math.ceil((last - first) / most));
        const chosen = [];
        for (let place = first; place < last; place += stride) chosen.push({ t: times[place], colour: colours[found.happened[place].kind] ?? focus });
        return chosen;
      };
      for (const each of charts) {
        const told = each.canvas.dataset.canvas === "length" ? marks(start, start + span, 1000) : [];
        curves.draw(each.canvas, each.list, { from: start, to: start + span, now: state.t, lines: each.lines, marks: told });
      }
      if (charts.length) curves.draw(overview, [charts[0].list[0]], { from, to, now: state.t, marks: marks(from, to, 2000) });
    }

    // --- Words ---------------------------------------------------------------------------------

    function facts() {
      const where = at("facts", "now");
      const names = ["Packets that wait", "Wait of the last packet sent", ...model.curves.filter((each) => each.of === "average").map(() => "Average of the law"), ...model.curves.filter((each) => each.of === "probability").map(() => "Probability of the law"), "Dropped in the window", "Marked in the window"];
      const found = new Map(names.map((name) => [name, make("dd", {})]));
      found.forEach((value, name) => where.append(make("div", {}, make("dt", {}, name), value)));
      return (values) => values.forEach(([name, text]) => { const cell = found.get(name); if (cell) cell.textContent = text; });
    }

    function countsNow() {
      const place = reel.upTo(times, state.t);
      if (place < counted.place) Object.assign(counted, { place: 0, drops: 0, marks: 0 });
      for (; counted.place < place; counted.place++) {
        const { kind } = found.happened[counted.place];
        if (kind === "drop") counted.drops++;
        else if (kind === "mark") counted.marks++;
      }
      return place;
    }

    function words({ kind, packet, text, flow }) {
      if (kind !== "drop" && kind !== "mark") return flow >= 0 ? `${flowName(flow)}: ${text}` : text;
      const reason = model.reasons[found.reason[packet]];
      const wait = found.out[packet] - found.arrival[packet];
      const after = wait > 0 && (kind === "drop" || found.mark[packet] === 2) ? ` after ${spans(wait)} in the queue` : "";
      return `${flowName(found.flow[packet])}: packet of ${found.bytes[packet]} B ${kind === "drop" ? "dropped" : "marked"}${reason ? ` (${reason})` : ""}${after}`;
    }

    function tell(waiting) {
      const place = countsNow();
      const gone = reel.upTo(found.outs, state.t);
      let last = gone - 1;
      while (last >= 0 && last > gone - 1000 && found.fate[found.byOut[last]] !== reel.SENT) last--;
      const i = last >= 0 ? found.byOut[last] : -1;
      const sample = Math.max(0, reel.upTo(model.curve_times_s, state.t) - 1);
      const law = (name) => { const value = model.curves.find((each) => each.of === name)?.values[sample]; return known(value) ? String(Number(value.toPrecision(4))) : "–"; };
      numbers([
        ["Packets that wait", String(waiting)],
        ["Wait of the last packet sent", i >= 0 ? spans(found.out[i] - found.arrival[i]) : "–"],
        ["Average of the law", law("average")], ["Probability of the law", law("probability")],
        ["Dropped in the window", String(counted.drops)], ["Marked in the window", String(counted.marks)],
      ]);
      if (place === state.told) return;
      state.told = place;
      const rows = found.happened.slice(Math.max(0, place - TOLD), place).reverse();
      at("list", "happened").replaceChildren(...rows.map((each) => make("li", {},
        make("button", { type: "button", class: each.kind, onclick: () => { play(false); seek(each.t); } }, `${time(each.t)}: ${words(each)}`))));
    }

    // For those who do not see the canvas; only where time stands still.
    function speak() {
      const place = reel.upTo(times, state.t) - 1;
      const now = place >= 0 && times[place] === state.t ? ` ${words(found.happened[place])}.` : "";
      at("text", "spoken").textContent = `${time(state.t)}: ${stageCanvas.getAttribute("aria-label")}.${now}`;
    }

    function point(event) {
      const box = stageCanvas.getBoundingClientRect();
      const x = event.clientX - box.left, y = event.clientY - box.top;
      const hit = hits.find((each) => x >= each.x && x < each.x + each.side && y >= each.y && y < each.y + each.side);
      at("text", "under").textContent = hit
        ? `${flowName(found.flow[hit.i])}: ${found.bytes[hit.i]} B, arrived at ${time(found.arrival[hit.i])}, waits since ${spans(state.t - found.arrival[hit.i])}${reel.isMarked(found, hit.i, state.t) ? ", marked" : ""}`
        : "Point at a packet to see whose it is.";
    }

    function redraw() {
      const drawn = stage.draw(stageCanvas, found, {
        t: state.t, speed: state.speed, rows: state.laid, still: reduced.matches,
        colour: (i) => colourOf(found.flow[i]), pale: (i) => isHidden(found.flow[i]),
        capacity: capacity(), limit: model.limit, rate: model.rate_bps,
      });
      hits = drawn.hits;
      drawCharts();
      controls.now.textContent = time(state.t);
      controls.speed.replaceChildren(`${Number(state.speed.toPrecision(3))}×`, make("span", { class: "told" }, ` 1 s shows ${spans(state.speed)}`));
      controls.seeker.value = String(state.t);
      controls.seeker.setAttribute("aria-valuetext", time(state.t));
      controls.pace.value = String(Math.log10(state.speed));
      controls.pace.setAttribute("aria-valuetext", `${state.speed.toPrecision(3)} times real time`);
      // Words change a few times in a second, not with each frame.
      const now = performance.now();
      if (state.playing && now - wordsAt < 150) return;
      wordsAt = now;
      stageCanvas.setAttribute("aria-label", `${drawn.waiting ?? 0} packets wait in the queue`);
      tell(drawn.waiting ?? 0);
    }

    // Room for the limit, unless the queue is never near it.
    function capacity() {
      return Math.max(1, known(model.limit) && model.limit <= 4 * longestQueue ? Math.max(model.limit, longestQueue) : Math.ceil(1.2 * longestQueue));
    }
  }
})();
