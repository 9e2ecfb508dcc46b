// Draws the figures of the page and makes its table sortable. All data are in the page itself.
// Texts are set as texts, never as HTML; for Plotly, which reads some HTML, `literal` escapes them.
"use strict";
(() => {
  const { known, css, make, menu, tick, button, lightAndDark } = elements;
  const models = JSON.parse(document.getElementById("data").textContent);
  // The first seven as in `redtail.display.style`.
  const SYMBOLS = ["circle", "square", "triangle-up", "diamond", "triangle-down", "cross", "x", "star", "pentagon"];
  const SIGNS = ["●", "■", "▲", "◆", "▼", "✚", "✖", "★", "⬟"];
  const DASHES = ["solid", "dash", "dot", "dashdot", "longdash"];
  const STROKES = { solid: "", dash: "7 3", dot: "2 3", dashdot: "7 3 2 3", longdash: "10 4" };
  const COLOURS = 8;
  const MOST_NAMED = 24;
  // Signs of events on curves.
  const EVENTS = {
    timeout: { symbol: "x", sign: "✖" }, stall: { symbol: "square", sign: "■" }, losses: { symbol: "triangle-down", sign: "▼" },
    recovery: { symbol: "triangle-down-open", sign: "▽" }, undo: { symbol: "triangle-up", sign: "▲" }, spurious: { symbol: "triangle-up-open", sign: "△" },
    state: { symbol: "diamond", sign: "◆" }, slow_start_end: { symbol: "diamond-open", sign: "◇" },
  };
  const print = { now: false };
  const redraws = [];

  const literal = (text) =>
    String(text).replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
  // A text for the label of a point, in lines that fit it.
  const wrapped = (text) => literal(text).replace(/(.{50,70}?) /g, "$1<br>");
  const unique = (values) => [...new Set(values)];

  function metricMenu(text, metrics, value, chosen, name) {
    const groups = new Map([["shown first", []]]);
    metrics.forEach((metric, number) => {
      const of = metric.chosen ? "shown first" : metric.group;
      if (!groups.has(of)) groups.set(of, []);
      groups.get(of).push([number, metric.axis]);
    });
    const options = [...groups].filter(([, found]) => found.length);
    return menu(text, options, value, (chosenText) => chosen(Number(chosenText)), name);
  }

  // --- What cases there are -------------------------------------------------------------------

  function casesOf(model) {
    const compared = model.compared;
    const others = model.factors.map((_, number) => number)
      .filter((number) => number !== compared && !model.along.includes(number))
      .filter((number) => unique(model.cases.map((each) => each.labels[number])).length > 1);
    const setting = (each) => (compared === null ? each.title : each.labels[compared]);
    const settings = unique(model.cases.map(setting));
    const place = (each) =>
      compared === null ? "" : others.map((number) => `${model.factors[number].title} ${each.labels[number]}`).join(", ");
    return {
      others: compared === null ? [] : others,
      settings,
      settingOf: model.cases.map((each) => settings.indexOf(setting(each))),
      places: unique(model.cases.map(place)),
      placeOf: model.cases.map(place),
    };
  }

  const look = (number) => ({
    colour: css(`--c${number % COLOURS}`),
    symbol: SYMBOLS[number % SYMBOLS.length],
    sign: SIGNS[number % SIGNS.length],
    dash: DASHES[Math.floor(number / COLOURS) % DASHES.length],
  });

  // --- Plotly ---------------------------------------------------------------------------------

  const CONFIG = {
    displaylogo: false,
    responsive: true,
    modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"],
    toImageButtonOptions: { format: "svg", filename: "redtail" },
  };

  function layout(more) {
    const text = css("--text"), soft = css("--soft"), grid = css("--grid"), back = css("--card");
    const axis = {
      gridcolor: grid, linecolor: soft, tickcolor: soft, zeroline: false, zerolinecolor: soft, ticks: "outside",
      automargin: true, tickfont: { size: 12 }, exponentformat: "power",
    };
    const titled = (given) => ({ ...axis, ...given, title: { font: { size: 13 }, standoff: 8, ...given?.title } });
    const merged = {
      font: { family: css("--font"), size: 13, color: text },
      paper_bgcolor: back, plot_bgcolor: back,
      margin: { l: 64, r: 16, t: 36, b: 52 },
      height: 380, showlegend: false, hovermode: "closest", dragmode: "zoom",
      hoverlabel: { bgcolor: css("--page"), bordercolor: soft, font: { color: text } },
      ...more,
    };
    merged.xaxis = titled(more.xaxis);
    merged.yaxis = titled(more.yaxis);
    merged.title = { font: { size: 14 }, x: 0, xref: "paper", xanchor: "left", y: 0.97, ...more.title };
    return merged;
  }

  function draw(target, traces, more, words) {
    target.setAttribute("aria-label", words);
    Plotly.react(target, traces, layout(more), CONFIG);
  }

  const plot = (name) => make("div", { class: "plot", role: "group", "data-plot": name });

  function card(title, controlled, ...plots) {
    const bar = make("div", { class: "controls" }, ...controlled);
    return make("figure", { class: "card" }, make("figcaption", {}, title), bar, ...plots);
  }

  // Half-widths above and below; an interval ends at zero for what is never below it.
  function bars(cells, floor) {
    const half = cells.map((cell) => (cell && known(cell[1]) ? cell[1] : 0));
    return {
      type: "data", symmetric: false, array: half, thickness: 1.4, width: 4,
      arrayminus: half.map((value, at) => (floor && cells[at] && known(cells[at][0]) ? Math.min(value, cells[at][0]) : value)),
    };
  }

  function numericAxis(values) {
    const least = Math.min(...values), most = Math.max(...values);
    const ticks = unique(values).sort((a, b) => a - b);
    const log = least > 0 && most >= 8 * least;
    return { type: log ? "log" : "linear", tickvals: ticks.length <= 12 ? ticks : undefined, ticktext: ticks.length <= 12 ? ticks.map(String) : undefined };
  }

  // --- An experiment --------------------------------------------------------------------------

  function experiment(article, model) {
    const at = casesOf(model);
    const hidden = new Set();
    const own = [];
    const shownCases = (place) => model.cases.map((_, number) => number)
      .filter((number) => !hidden.has(at.settingOf[number]) && (place === undefined || at.placeOf[number] === place));
    const redraw = () => own.forEach((each) => each());
    redraws.push(redraw);

    legend(article.querySelector('[data-controls="legend"]'));
    const figures = article.querySelector("[data-figures]");
    if (model.metrics.length) metricFigure();
    if (model.runs.length > 1) planeFigure();
    if (model.series.panels.length) seriesFigure();
    if (model.tails.length) tailFigure();
    table(article, model, at);
    redraw();

    function legend(where) {
      if (at.settings.length < 2) return;
      const boxes = [];
      const title = model.compared === null ? "Cases" : model.factors[model.compared].title;
      const set = make("fieldset", {}, make("legend", {}, `Show ${title}`));
      at.settings.forEach((text, number) => {
        const box = make("input", {
          type: "checkbox", checked: true, "data-setting": number,
          onchange: () => { if (box.checked) hidden.delete(number); else hidden.add(number); redraw(); },
        });
        boxes.push(box);
        const { dash, sign } = look(number);
        const line = document.createElementNS("http://www.w3.org/2000/svg", "svg");
        line.setAttribute("viewBox", "0 0 30 10");
        line.setAttribute("class", `swatch c${number % COLOURS}`);
        line.setAttribute("aria-hidden", "true");
        const stroke = document.createElementNS("http://www.w3.org/2000/svg", "path");
        stroke.setAttribute("d", "M0 5H30");
        stroke.setAttribute("stroke-dasharray", STROKES[dash]);
        line.append(stroke);
        set.append(make("label", {}, box, line, make("span", { class: `sign c${number % COLOURS}`, "aria-hidden": "true" }, sign), text));
      });
      if (at.settings.length > 3) {
        set.append(button("all", "Show all", () => { hidden.clear(); boxes.forEach((box) => { box.checked = true; }); redraw(); }));
        set.append(button("none", "Hide all", () => {
          boxes.forEach((box, number) => { box.checked = false; hidden.add(number); });
          redraw();
        }));
      }
      where.append(set);
    }

    // A metric over a factor, and its differences from a baseline.
    function metricFigure() {
      const state = { metric: model.first, x: at.others.find((number) => model.factors[number].values) ?? at.others[0], log: false, base: Object.keys(model.differences)[0], filter: {} };
      const values = plot("metric"), differences = plot("differences");
      const bar = [metricMenu("Metric", model.metrics, state.metric, (number) => { state.metric = number; update(); }, "metric")];
      if (at.others.length > 1) {
        bar.push(menu("Over", at.others.map((number) => [number, model.factors[number].title]), state.x, (number) => { state.x = Number(number); filters(); update(); }, "x"));
      }
      const filterBar = make("span", { class: "control-group" });
      bar.push(filterBar);
      if (Object.keys(model.differences).length > 1) {
        bar.push(menu("Compare with", Object.keys(model.differences).map((label) => [label, label]), state.base, (label) => { state.base = label; update(); }, "base"));
      }
      bar.push(tick("logarithmic", false, (value) => { state.log = value; update(); }, "log"));
      figures.append(card("Metrics", bar, make("div", { class: "pair" }, values, differences)));
      filters();
      own.push(update);

      function filters() {
        filterBar.replaceChildren();
        state.filter = {};
        for (const number of at.others.filter((each) => each !== state.x)) {
          const labels = unique(model.cases.map((each) => each.labels[number]));
          state.filter[number] = labels[0];
          filterBar.append(menu(`At ${model.factors[number].title}`, labels.map((label) => [label, label]), labels[0], (label) => { state.filter[number] = label; update(); }, `filter-${number}`));
        }
      }

      function update() {
        const metric = model.metrics[state.metric];
        const cells = model.estimates[state.metric];
        const chosen = shownCases().filter((number) =>
          Object.entries(state.filter).every(([factor, label]) => model.cases[number].labels[factor] === label));
        const floor = cells.every((cell) => !known(cell[0]) || cell[0] >= 0);
        const axis = { title: { text: literal(metric.axis) }, type: state.log ? "log" : "linear", rangemode: floor && !state.log && spread(cells) ? "tozero" : "normal" };
        const where = Object.values(state.filter).join(", ");
        lines(values, chosen, cells, floor, axis, literal(`${metric.axis}${where ? ` at ${where}` : ""}`), `${metric.axis}, mean and 95 % interval of ${chosen.length} cases`);
        const found = (model.differences[state.base] ?? {})[metric.name];
        differences.hidden = !found;
        if (found) {
          const others = chosen.filter((number) => known(found[number]));
          const unit = metric.unit ? ` (${metric.unit})` : "";
          lines(differences, others, found, false, { title: { text: literal(`Difference${unit}`) }, zeroline: true, zerolinewidth: 2, rangemode: "tozero" }, literal(`Difference from ${state.base}`), `Differences of ${metric.axis} from ${state.base}`);
        }
      }

      // Values that spread little would be a flat line if the axis began at zero.
      function spread(cells) {
        const means = cells.map((cell) => cell[0]).filter(known);
        return Math.min(...means) < 0.5 * Math.max(...means);
      }

      function lines(target, chosen, cells, floor, yaxis, title, words) {
        const over = state.x;
        const labels = known(over) ? unique(model.cases.map((each) => each.labels[over])) : at.settings;
        const numbers = known(over) ? model.factors[over].values : null;
        const position = (number) => numbers ? numbers[number] : known(over) ? labels.indexOf(model.cases[number].labels[over]) : at.settingOf[number];
        const traces = unique(chosen.map((number) => at.settingOf[number])).map((setting) => {
          const members = chosen.filter((number) => at.settingOf[number] === setting).sort((a, b) => position(a) - position(b));
          const { colour, symbol, dash } = look(setting);
          const shown = members.map((number) => cells[number]);
          return {
            type: "scatter", mode: members.length > 1 ? "lines+markers" : "markers", name: literal(at.settings[setting]),
            x: members.map(position), y: shown.map((cell) => cell && cell[0]),
            error_y: { ...bars(shown, floor), color: colour },
            line: { color: colour, dash, width: 2 }, marker: { color: colour, symbol, size: 9 },
            text: members.map((number, place) => `${literal(model.cases[number].title)}<br><b>${literal(shown[place] ? shown[place][3] : "–")}</b> ${literal(model.metrics[state.metric].unit)}<br>n = ${shown[place] ? shown[place][2] : 0}`),
            hovertemplate: "%{text}<extra></extra>",
          };
        });
        const xaxis = numbers
          ? { ...numericAxis(numbers), title: { text: literal(model.factors[over].title) } }
          : { ticklabeloverflow: "allow", tickvals: labels.map((_, place) => place), ticktext: labels.map(literal), range: [-0.5, labels.length - 0.5], title: { text: known(over) ? literal(model.factors[over].title) : "" } };
        draw(target, traces, { xaxis, yaxis, title: { text: title } }, words);
      }
    }

    // Two metrics, a point for each run.
    function planeFigure() {
      const kept = model.metrics.slice(0, model.runs.length);
      const [across, up] = model.plane;
      const find = (name, other) => Math.max(0, [name, other].map((each) => kept.findIndex((metric) => metric.name === each)).find((place) => place >= 0) ?? 0);
      const state = { x: find(across, kept[0].name), y: find(up, kept[Math.min(1, kept.length - 1)].name) };
      const target = plot("plane");
      figures.append(card("Two metrics, run by run", [
        metricMenu("Across", kept, state.x, (number) => { state.x = number; update(); }, "plane-x"),
        metricMenu("Up", kept, state.y, (number) => { state.y = number; update(); }, "plane-y"),
      ], target, make("p", { class: "note" }, "A small point for each run, a large one at the median of each case in both metrics, and the ellipse of one standard deviation around the mean.")));
      own.push(update);

      function update() {
        const traces = [];
        // What cases differ in beside the setting stands at their medians, as far as there is room.
        const named = at.others.length > 0 && shownCases().length <= MOST_NAMED;
        for (const number of shownCases()) {
          const { colour, symbol } = look(at.settingOf[number]);
          const xs = model.runs[state.x][number], ys = model.runs[state.y][number];
          const pairs = xs.map((x, place) => [x, ys[place], place]).filter(([x, y]) => known(x) && known(y));
          if (!pairs.length) continue;
          const title = literal(model.cases[number].title);
          const common = { type: "scatter", name: title, hovertemplate: "%{text}<extra></extra>" };
          const ring = ellipse(pairs);
          if (ring) traces.push({ ...common, mode: "lines", x: ring.map(([x]) => x), y: ring.map(([, y]) => y), line: { color: colour, width: 1 }, hoverinfo: "skip", hovertemplate: undefined });
          traces.push({
            ...common, mode: "markers", x: pairs.map(([x]) => x), y: pairs.map(([, y]) => y), opacity: 0.55,
            marker: { color: colour, symbol, size: 5 },
            text: pairs.map(([x, y, place]) => `${title}, replication ${place}<br>${literal(kept[state.x].axis)}: <b>${x}</b><br>${literal(kept[state.y].axis)}: <b>${y}</b>`),
          });
          const middle = [0, 1].map((axis) => median(pairs.map((pair) => pair[axis])));
          traces.push({
            ...common, mode: named ? "markers+text" : "markers", x: [middle[0]], y: [middle[1]],
            marker: { color: colour, symbol, size: 13, line: { color: css("--card"), width: 1.5 } },
            texttemplate: literal(at.others.map((other) => model.cases[number].labels[other]).join(", ")), textposition: "top center",
            text: [`${title}, median of ${pairs.length}<br>${literal(kept[state.x].axis)}: <b>${middle[0].toPrecision(4)}</b><br>${literal(kept[state.y].axis)}: <b>${middle[1].toPrecision(4)}</b>`],
          });
        }
        draw(target, traces, {
          margin: { l: 64, r: 16, t: 12, b: 52 },
          xaxis: { title: { text: literal(kept[state.x].axis) } }, yaxis: { title: { text: literal(kept[state.y].axis) } }, height: 460,
        }, `${kept[state.y].axis} against ${kept[state.x].axis}, run by run`);
      }

      function median(values) {
        const sorted = values.toSorted((one, other) => one - other);
        const half = sorted.length >> 1;
        return sorted.length % 2 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
      }

      // Of one standard deviation: the mean plus the square root of the covariance matrix times a circle.
      function ellipse(pairs) {
        const n = pairs.length;
        if (n < 3) return null;
        const mean = [0, 1].map((axis) => pairs.reduce((sum, pair) => sum + pair[axis], 0) / n);
        const cov = (a, b) => pairs.reduce((sum, pair) => sum + (pair[a] - mean[a]) * (pair[b] - mean[b]), 0) / (n - 1);
        const [xx, xy, yy] = [cov(0, 0), cov(0, 1), cov(1, 1)];
        if (!(xx > 0) || !(yy > 0)) return null;
        const l11 = Math.sqrt(xx), l21 = xy / l11, l22 = Math.sqrt(Math.max(0, yy - l21 * l21));
        return Array.from({ length: 61 }, (_, step) => {
          const angle = (step * Math.PI) / 30;
          return [mean[0] + l11 * Math.cos(angle), mean[1] + l21 * Math.cos(angle) + l22 * Math.sin(angle)];
        });
      }
    }

    // Quantities of one run over time.
    function seriesFigure() {
      const { panels, warmup_s: warmup } = model.series;
      const state = { panel: 0, place: at.placeOf[panels[0].curves[0].case], range: null };
      const target = plot("series");
      const end = Math.max(...panels.flatMap((panel) => panel.curves.flatMap((curve) => curve.x.slice(-1))));
      const bar = [];
      if (panels.length > 1) bar.push(menu("Show", panels.map((panel, number) => [number, panel.title]), 0, (number) => { state.panel = Number(number); update(); }, "panel"));
      if (at.places.length > 1) bar.push(menu("At", at.places.map((place) => [place, place]), state.place, (place) => { state.place = place; update(); }, "series-place"));
      bar.push(make("span", { class: "control-group", role: "group", "aria-label": "Zoom in time" },
        button("◀", "Earlier", () => move(-0.5)), button("▶", "Later", () => move(0.5)),
        button("+", "Zoom in", () => zoom(0.5)), button("−", "Zoom out", () => zoom(2)),
        button("whole run", "Show the whole run", () => { state.range = null; update(); })));
      const list = make("ol", { class: "events" }), told = make("summary");
      const events = make("details", { hidden: true, "data-events": "" }, told, list);
      figures.append(card("Over time, in the first replication", bar, target, make("p", { class: "note" }, "Shaded: before the measurement begins. A dotted line is the limit of the queue. Drag to zoom; a double click shows everything. Long series are thinned; the lowest and highest point of each part are kept."), events));
      own.push(update);
      update();
      target.on("plotly_relayout", (change) => {
        if (known(change["xaxis.range[0]"])) state.range = [change["xaxis.range[0]"], change["xaxis.range[1]"]];
        else if (change["xaxis.autorange"]) state.range = null;
      });

      // Events on a curve: the sign says of which kind, and the text what happened.
      function marksOf(curve) {
        const { colour } = look(at.settingOf[curve.case]);
        return {
          type: "scatter", mode: "markers", name: "event", x: curve.marks.map((mark) => mark.x), y: curve.marks.map((mark) => mark.y),
          marker: { color: colour, size: 10, symbol: curve.marks.map((mark) => EVENTS[mark.kind]?.symbol ?? "circle"), line: { color: css("--text"), width: 1.5 } },
          text: curve.marks.map((mark) => wrapped(mark.text)), hovertemplate: "%{text}<extra></extra>",
        };
      }

      // The same events as a list: for keys, for paper, and for those who do not see the figure.
      function listed(curves, first) {
        const marked = curves.filter((curve) => curve.marks);
        const found = marked.flatMap((curve, number) => curve.marks.map((mark, place) => ({ curve, mark, trace: first + number, place })))
          .sort((one, other) => one.mark.x - other.mark.x);
        const left = marked.reduce((sum, curve) => sum + curve.left_out, 0);
        events.hidden = !found.length;
        told.textContent = `${found.length} events on the curves${left ? `, and ${left} more that are not shown` : ""}`;
        list.replaceChildren(...found.map(({ curve, mark, trace, place }, number) => {
          const show = () => { if (!print.now) Plotly.Fx.hover(target, [{ curveNumber: trace, pointNumber: place }]); };
          const sign = make("span", { "aria-hidden": "true" }, `${EVENTS[mark.kind]?.sign ?? "●"} `);
          const of = [model.cases.length > 1 && model.cases[curve.case].title, curve.name].filter(Boolean).join(", ");
          return make("li", {}, make("button", { type: "button", onfocus: show, onmouseenter: show, onclick: () => around(mark.x, number) }, sign, mark.text, of ? ` (${of})` : ""));
        }));
      }

      // Zooms to a second before and after an event; the focus stays on it.
      function around(time, number) {
        state.range = [Math.max(0, time - 1), Math.min(end, time + 1)];
        update();
        list.querySelectorAll("button")[number].focus({ preventScroll: true });
      }

      function zoom(factor) {
        const [from, to] = state.range ?? [0, end];
        const middle = (from + to) / 2, half = ((to - from) / 2) * factor;
        state.range = 2 * half >= end ? null : [Math.max(0, middle - half), Math.min(end, middle + half)];
        update();
      }

      function move(share) {
        const [from, to] = state.range ?? [0, end];
        const step = Math.max(-from, Math.min(end - to, share * (to - from)));
        state.range = [from + step, to + step];
        update();
      }

      function update() {
        const panel = panels[state.panel];
        const cases = new Set(shownCases(at.places.length > 1 ? state.place : undefined));
        const curves = panel.curves.filter((curve) => cases.has(curve.case));
        const traces = curves.map((curve) => {
          const { colour, dash } = look(at.settingOf[curve.case]);
          const title = literal(model.cases[curve.case].title) + (curve.name.startsWith("flow") ? `, ${literal(curve.name)}` : "");
          return {
            type: "scatter", mode: "lines", name: title, x: curve.x, y: curve.y, line: { color: colour, dash, width: 1.3 },
            hovertemplate: `%{x:.2f} s: <b>%{y:.4~g}</b><extra>%{fullData.name}</extra>`,
          };
        });
        const first = traces.length;
        if (target.data) Plotly.Fx.unhover(target);
        curves.filter((curve) => curve.marks).forEach((curve) => traces.push(marksOf(curve)));
        listed(curves, first);
        const shapes = warmup > 0 ? [{ type: "rect", xref: "x", yref: "paper", x0: 0, x1: warmup, y0: 0, y1: 1, fillcolor: css("--soft"), opacity: 0.13, line: { width: 0 }, layer: "below" }] : [];
        // A limit far above everything would hide the rest.
        const most = Math.max(...curves.flatMap((curve) => curve.y));
        for (const limit of unique(curves.map((curve) => panel.limits[curve.case]).filter(known))) {
          if (limit <= 4 * most) {
            shapes.push({ type: "line", xref: "paper", x0: 0, x1: 1, y0: limit, y1: limit, line: { color: css("--soft"), dash: "dot", width: 1.5 } });
          }
        }
        draw(target, traces, {
          shapes, hovermode: "x unified", height: 420,
          title: { text: literal(`${panel.title}${at.places.length > 1 ? `, ${state.place}` : ""}`) },
          xaxis: { title: { text: "Time (s)" }, range: state.range ?? [0, end], autorange: false },
          yaxis: { title: { text: literal(panel.title) }, rangemode: "tozero" },
        }, `${panel.title} over time in ${curves.length} runs`);
      }
    }

    // Distributions, complementary.
    function tailFigure() {
      const state = { tail: 0, place: at.placeOf[model.tails[0].curves[0].case], log: model.tails[0].log };
      const target = plot("tail");
      const bar = [];
      const log = tick("logarithmic", state.log, (value) => { state.log = value; update(); }, "tail-log");
      if (model.tails.length > 1) bar.push(menu("Show", model.tails.map((tail, number) => [number, tail.title]), 0, (number) => {
        state.tail = Number(number);
        state.log = model.tails[state.tail].log;
        log.querySelector("input").checked = state.log;
        update();
      }, "tail"));
      if (at.places.length > 1) bar.push(menu("At", at.places.map((place) => [place, place]), state.place, (place) => { state.place = place; update(); }, "tail-place"));
      bar.push(log);
      figures.append(card("Distributions", bar, target, make("p", { class: "note" }, "Means over replications; bars and bands are 95 % intervals.")));
      own.push(update);

      function update() {
        const tail = model.tails[state.tail];
        const cases = new Set(shownCases(at.places.length > 1 ? state.place : undefined));
        const drawn = (value) => (state.log && !(value > 0) ? null : value);
        const traces = tail.curves.filter((curve) => cases.has(curve.case)).flatMap((curve) => {
          const { colour, symbol, dash } = look(at.settingOf[curve.case]);
          const sparse = curve.x.length <= 30;
          const common = { type: "scatter", name: literal(model.cases[curve.case].title), x: curve.x };
          const line = {
            ...common, mode: sparse ? "lines+markers" : "lines", y: curve.y.map(drawn),
            line: { color: colour, dash, width: 2 }, marker: { color: colour, symbol, size: 7 },
            error_y: sparse ? { ...bars(curve.y.map((value, place) => [value, curve.half[place]]), true), color: colour } : undefined,
            hovertemplate: `%{x:.4~g}: <b>%{y:.3~g}</b><extra>%{fullData.name}</extra>`,
          };
          if (sparse || curve.half.every((half) => !known(half))) return [line];
          const edge = { ...common, mode: "lines", line: { width: 0 }, hoverinfo: "skip" };
          const end = (way) => curve.y.map((value, place) => Math.min(1, Math.max(state.log ? value / 1000 : 0, value + way * (curve.half[place] ?? 0))) || null);
          return [{ ...edge, y: end(-1) }, { ...edge, y: end(1), fill: "tonexty", fillcolor: `${colour}30` }, line];
        });
        draw(target, traces, {
          title: { text: literal(`${tail.title}${at.places.length > 1 ? `, ${state.place}` : ""}`) },
          xaxis: { title: { text: literal(tail.x) }, type: tail.logx ? "log" : "linear" },
          yaxis: { title: { text: literal(tail.y) }, type: state.log ? "log" : "linear", dtick: state.log ? 1 : undefined, autorangeoptions: state.log ? { clipmin: 1e-6 } : {} },
        }, `${tail.title} of ${unique(traces.map((each) => each.name)).length} cases`);
      }
    }
  }

  // --- The table ------------------------------------------------------------------------------

  function table(article, model, at) {
    const where = article.querySelector("table.results");
    const bases = Object.keys(model.differences);
    const state = {
      columns: model.metrics.map((_, number) => number).filter((number) => model.metrics[number].chosen),
      base: bases[0], show: bases.length ? "both" : "values", sort: null, down: false,
    };
    const bar = article.querySelector('[data-controls="table"]');
    if (bases.length) {
      bar.append(menu("Show", [["both", "values and differences"], ["values", "values"], ["differences", "differences"]], state.show, (value) => { state.show = value; update(); }, "table-show"));
      bar.append(menu("Compare with", bases.map((label) => [label, label]), state.base, (label) => { state.base = label; update(); }, "table-base"));
    }
    bar.append(columnMenu());
    const note = article.querySelector('[data-note="table"]');
    update();

    function columnMenu() {
      const groups = new Map();
      model.metrics.forEach((metric, number) => {
        if (!groups.has(metric.group)) groups.set(metric.group, []);
        groups.get(metric.group).push(tick(metric.axis, metric.chosen, (value) => {
          state.columns = value ? [...state.columns, number] : state.columns.filter((each) => each !== number);
          update();
        }, `column-${metric.name}`));
      });
      const sets = [...groups].map(([title, boxes]) => make("fieldset", {}, make("legend", {}, title), ...boxes));
      return make("details", { class: "columns" }, make("summary", {}, `Columns (${model.metrics.length} metrics)`), make("div", { class: "groups" }, ...sets));
    }

    function difference(column, number) {
      const found = (model.differences[state.base] ?? {})[model.metrics[column].name];
      return found ? found[number] : null;
    }

    function value(key, number) {
      if (key.startsWith("f")) {
        const factor = model.factors[Number(key.slice(1))];
        return factor.values ? factor.values[number] : model.cases[number].labels[Number(key.slice(1))];
      }
      const column = Number(key.slice(1));
      const cell = state.show === "differences" ? difference(column, number) : model.estimates[column][number];
      return cell && known(cell[0]) ? cell[0] : null;
    }

    function compare(key) {
      return (a, b) => {
        const one = value(key, a), two = value(key, b);
        if (one === null || two === null) return (one === null) - (two === null);
        const order = typeof one === "number" ? one - two : one.localeCompare(two);
        return state.down ? -order : order;
      };
    }

    function head(key, title, unit, kind) {
      const sorted = state.sort === key;
      const press = make("button", {
        type: "button", class: "sort", "data-key": key,
        onclick: () => {
          if (!sorted) { state.sort = key; state.down = false; }
          else if (!state.down) state.down = true;
          else state.sort = null;
          update();
          where.querySelector(`button[data-key="${key}"]`).focus();
        },
      }, title, make("span", { class: "order", "aria-hidden": "true" }, sorted ? (state.down ? " ▼" : " ▲") : ""));
      const cell = make("th", { scope: "col", class: kind, "aria-sort": sorted ? (state.down ? "descending" : "ascending") : "none" }, press);
      if (unit) cell.append(make("span", { class: "unit" }, unit));
      return cell;
    }

    function update() {
      const heads = [
        ...model.factors.map((factor, number) => head(`f${number}`, factor.title, "", "factor")),
        ...state.columns.map((column) => head(`m${column}`, model.metrics[column].head, model.metrics[column].unit, "")),
      ];
      where.tHead.replaceChildren(make("tr", {}, ...heads));
      const order = model.cases.map((_, number) => number);
      if (state.sort) order.sort(compare(state.sort));
      const rows = order.map((number) => make("tr", {},
        ...model.cases[number].labels.map((label) => make("th", { scope: "row", class: "factor" }, label)),
        ...state.columns.map((column) => {
          const found = difference(column, number);
          if (state.show === "differences") {
            return make("td", {}, found ? found[3] : "–");
          }
          const cell = make("td", {}, model.estimates[column][number][3]);
          if (state.show === "both" && found) cell.append(make("span", { class: "difference" }, found[3]));
          return cell;
        })));
      where.tBodies[0].replaceChildren(...rows);
      const from = `the difference from ${state.base}, replication by replication, with the interval of that difference alone`;
      note.textContent = {
        both: `Mean ± half-width of the 95 % interval over replications; below it ${from}. `,
        values: "Mean ± half-width of the 95 % interval over replications. ",
        differences: `Mean ± half-width of the 95 % interval: ${from}. `,
      }[state.show] + "= stands where every replication has the value, ±? where no interval can be given, ±?* where the mean describes no run besides: most runs have another value. \"of 60 %\": the mean of the 60 % that finished; \"not finished\": the quantile is among what had not finished when the runs ended. The heads sort.";
    }
  }

  // --- Light, dark and paper ------------------------------------------------------------------

  const all = () => redraws.forEach((each) => each());
  lightAndDark(all);

  function paper(on) {
    if (print.now === on) return;
    print.now = on;
    document.documentElement.classList.toggle("paper", on);
    // Paper shows all events; afterwards the list is as it was.
    document.querySelectorAll("[data-events]").forEach((each) => {
      if (on) each.dataset.events = each.open ? "open" : "";
      each.open = on || each.dataset.events === "open";
    });
    all();
    document.querySelectorAll(".plot").forEach((each) => {
      if (!each.hidden && each.data) Plotly.relayout(each, on ? { width: 660, autosize: false } : { width: null, autosize: true });
    });
  }
  window.addEventListener("beforeprint", () => paper(true));
  window.addEventListener("afterprint", () => paper(false));

  for (const article of document.querySelectorAll("[data-experiment]")) {
    experiment(article, models[article.dataset.experiment]);
  }
})();
