// The page: both sides, knobs, scenes, the slow motion, the table, and what can be kept.

import "uplot/dist/uPlot.min.css";
import "./lab.css";
import { Chart, cumulative, joined } from "./charts";
import { css, make, menu, part } from "./dom";
import type { Told } from "./format";
import { line, significant, told, unitFor, verdict } from "./format";
import { fragmentOf, MOST_FILE } from "./link";
import type { Row } from "./measures";
import { meansOf } from "./measures";
import { drawKnobs } from "./panel";
import { Player } from "./player";
import type { Shown } from "./runs";
import { copy, download, measuresCsv, picture, seriesCsv } from "./save";
import { fetchText, sceneNames } from "./scenes";
import type { Over } from "./side";
import type { Scene } from "./state";
import { DEFAULT } from "./state";
import { HOME, messageOf, runsNote, View } from "./view";

const HOME_TITLE = "A home line";
const HOME_SUMMARY =
  "Downloads fill the buffer of a line to the Internet, and a call goes through the same buffer. Which queue keeps both well? Move a knob, or choose other queues.";
/** How long after the last change the address holds the state, ms. */
const SETTLED = 400;

class Page extends View {
  private player!: Player;
  private distribution!: Chart;
  private table!: HTMLElement;
  private own: string | null = null;
  private settle = 0;
  private rows: Row[] = [];
  private every = false;

  protected ready(): void {
    this.player = new Player(part("packets"));
    const box = make("div", { class: "chart", role: "img" });
    part("distribution").replaceChildren(
      make("h2", { id: "distribution-head" }, "How long packets wait"),
      make("p", { class: "note" }, "Share of packets that wait at most so long, of one run."),
      box,
      make("ul", { class: "legend", "data-part": "distribution-legend" }),
    );
    this.distribution = new Chart(box);
    const all = make("button", { type: "button", "aria-pressed": "false" }, "All measures");
    all.addEventListener("click", () => {
      this.every = !this.every;
      all.setAttribute("aria-pressed", String(this.every));
      all.textContent = this.every ? "The main measures" : "All measures";
      this.drawTable();
    });
    this.table = make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Measures" });
    part("table").replaceChildren(
      make("div", { class: "section-head" }, make("h2", { id: "table-head" }, "Measures"), all),
      this.table,
    );
    part("footer").textContent =
      `redtail ${this.catalog.version}. The simulator runs in this page; nothing is sent anywhere. \`redtail run\` gives the same numbers for the same experiment file.`;
    part("copy-link").addEventListener("click", () => void this.copyLink());
    part("toml").addEventListener("click", () => this.dialog());
    part("picture").addEventListener("click", () => void this.savePicture());
    part("csv").addEventListener("click", () => this.saveCsv());
    this.takeTexts();
    void this.listScenes();
  }

  // --- What is shown --------------------------------------------------------------------------------------------------

  protected opened(): void {
    const { state, scene } = this;
    const isHome = !scene && "knobs" in state && JSON.stringify(state.knobs) === JSON.stringify(DEFAULT);
    const title = scene?.title ?? (isHome ? HOME_TITLE : "knobs" in state ? "A scene of yours" : state.file.name);
    part("title").textContent = title;
    part("summary").textContent = scene?.summary ?? (isHome ? HOME_SUMMARY : "");
    document.title = `${title} · redtail laboratory`;
    this.showScene();
    this.drawStory(scene);
    const knobs = part("knobs");
    const file = part("file");
    knobs.hidden = !("knobs" in state);
    file.hidden = "knobs" in state;
    if ("knobs" in state) {
      drawKnobs(
        knobs,
        () => ("knobs" in this.state ? this.state.knobs : DEFAULT),
        (next) => this.change(next),
      );
    } else {
      file.replaceChildren(
        make("h2", {}, "An experiment file"),
        make(
          "p",
          { class: "note" },
          `${state.file.name} runs as it is. Knobs move what they made themselves; this file says more.`,
        ),
        make("button", { type: "button", onclick: () => this.dialog() }, "Read or change the file"),
        make("button", { type: "button", onclick: () => void this.openScene(HOME) }, "Back to the knobs"),
      );
    }
    this.changed();
  }

  /** The menu has the scene that is open. */
  private showScene(): void {
    const select = part<HTMLSelectElement>("scenes");
    const titles = [...select.options].filter(({ value }) => value !== "");
    select.value = titles.find(({ text }) => text === part("title").textContent)?.value ?? "";
  }

  private drawStory(scene: Scene | null): void {
    part("story").replaceChildren(
      ...(scene
        ? [
            make("h2", {}, "What to look for"),
            make("ol", {}, ...scene.look.map((line) => make("li", {}, line))),
            make("h2", {}, "Questions"),
            ...scene.questions.map(({ question, answer }) =>
              make("details", {}, make("summary", {}, question), make("p", {}, answer)),
            ),
            ...(scene.sources.length ? [make("p", { class: "note" }, `Sources: ${scene.sources.join("; ")}`)] : []),
          ]
        : []),
    );
  }

  protected changed(): void {
    clearTimeout(this.settle);
    this.settle = window.setTimeout(() => void this.writeAddress(), SETTLED);
  }

  private async writeAddress(): Promise<void> {
    const isHome = "knobs" in this.state && JSON.stringify(this.state.knobs) === JSON.stringify(DEFAULT);
    const fragment = isHome ? "" : await fragmentOf(this.state);
    if (fragment === null) return;
    this.own = fragment;
    if (location.hash.slice(1) !== fragment)
      history.replaceState(null, "", `${location.pathname}${location.search}${fragment ? `#${fragment}` : ""}`);
  }

  protected override ownFragment(): string | null {
    return this.own;
  }

  protected override clicks(): { chosen: (time_s: number) => void } {
    return { chosen: (time_s) => this.player.go(time_s) };
  }

  protected override progress(share: number): void {
    const bar = part("progress");
    bar.style.setProperty("--share", String(share));
    bar.setAttribute("aria-valuenow", String(Math.round(100 * share)));
    bar.classList.toggle("done", share >= 1);
  }

  protected drawn(shown: Shown, rate: number | null): void {
    const names = this.labels();
    const { link, palette } = this.common!;
    this.drawControls(shown, link);
    this.drawDistribution(shown, link, names);
    this.player.set({
      labels: names,
      rate,
      duration_s: shown.duration_s,
      palette,
      start_s: this.scene?.packets_from ?? shown.duration_s / 2,
      load: (from_s, to_s, signal) => this.runs.packets(shown, from_s, to_s, link, signal),
      at: (time_s) => {
        for (const side of this.sides) side.at(time_s);
      },
    });
    if (this.state.view.open === "packets") part("packets").scrollIntoView();
    this.state.view.open = "queue";
  }

  /** Menus of what the charts show, where there is a choice. */
  private drawControls(shown: Shown, link: string): void {
    const links = Object.keys(shown.results[0].series.queues);
    const hasWindow = Object.values(shown.results[0].series.flows).some((flows) =>
      Object.values(flows).some(({ cwnd }) => cwnd?.length),
    );
    const place = part("chart-controls");
    const key = JSON.stringify([links, hasWindow, link, this.over]);
    if (place.dataset.key === key) return;
    place.dataset.key = key;
    place.replaceChildren();
    if (hasWindow) {
      const options: [Over, string][] = [
        ["goodput", "throughput"],
        ["cwnd", "congestion window"],
      ];
      place.append(
        menu("Flows show their", options, this.over, (value) => {
          this.over = value as Over;
          this.restyle();
        }),
      );
    }
    if (links.length > 1) {
      place.append(
        menu(
          "Link",
          links.map((each) => [each, each]),
          link,
          (value) => {
            this.link = value;
            this.restyle();
          },
        ),
      );
    }
  }

  private drawDistribution(shown: Shown, link: string, names: [string, string]): void {
    const both = shown.results.map(({ histograms }) => cumulative(histograms[link] ?? NO_HISTOGRAM));
    const [xs, ...columns] = joined(both);
    const positive = xs.map((x) => Math.max(x, 1e-5) * 1000);
    const colours = [css("--a"), css("--b")];
    this.distribution.show(
      {
        height: 300,
        x: {
          label: "Queueing delay, ms",
          log: true,
          format: (value) => (logLabel(value) ? significant(value, 1) : ""),
        },
        xRange: () => [0.1, Math.max(1, positive.at(-1) ?? 1)],
        y: { range: () => [0, 1], format: (value) => `${Math.round(100 * value)}%` },
        lines: names.map((label, side) => ({
          label,
          colour: colours[side]!,
          width: 2,
          ...(side ? { dash: [7, 4] } : {}),
        })),
      },
      [positive, ...columns] as [number[], ...(number | null)[][]],
    );
    part("distribution-legend").replaceChildren(
      ...names.map((name, side) => make("li", {}, make("span", { class: `line ${side ? "b" : "a"}` }), name)),
    );
    const half = both.map(({ delay_s, share }) => delay_s[share.findIndex((each) => each >= 0.5)] ?? 0);
    this.distribution.place.setAttribute(
      "aria-label",
      `Distribution of the queueing delay: half of the packets wait at most ${half.map((each, side) => `${significant(each * 1000, 2)} ms with ${names[side]}`).join(", ")}, in one run`,
    );
  }

  protected drawnMeasures(rows: Row[], runs: number, done: boolean): void {
    this.rows = rows;
    this.drawTable();
    const { shown } = this;
    if (!shown) return;
    this.drawStrip(rows[0]);
    const note = part("runs");
    note.textContent = [runsNote(runs, shown, done), ...shown.warnings].join(" ");
    document.body.dataset.runs = String(runs);
    document.body.dataset.done = String(done);
  }

  /** The first measure of both sides, which stays in sight on a phone while knobs move. */
  private drawStrip(row: Row | undefined): void {
    const names = this.labels();
    const of = (side: 0 | 1): string => {
      const { value, unit } = told(row!.measure.sides[side], unitFor(row!.unit, ...meansOf(row!.measure)));
      return `${names[side]}: ${value} ${unit}`;
    };
    const shown = row && this.shown?.cases.length !== 1 ? ([0, 1] as const) : [];
    part("strip").replaceChildren(...shown.map((side) => make("span", { class: side ? "b" : "a" }, of(side))));
  }

  private drawTable(): void {
    const rows = this.every ? this.measures.all(this.measured) : this.rows;
    const [left, right] = this.labels();
    const single = this.shown?.cases.length === 1;
    const cell = (each: Told): HTMLElement =>
      make(
        "td",
        each.sure ? {} : { class: "unsure" },
        line(each),
        ...(each.note ? [make("span", { class: "why" }, ` ${each.note}`)] : []),
      );
    const body = rows.map(({ title, unit, doc, measure }) => {
      const shown = unitFor(unit, ...meansOf(measure));
      const apart = unit === "fraction" ? POINTS : unitFor(unit, measure.difference.mean);
      return make(
        "tr",
        {},
        make("th", { scope: "row", title: `${measure.name}: ${doc}` }, title),
        cell(told(measure.sides[0], shown)),
        ...(single ? [] : [cell(told(measure.sides[1], shown)), cell(verdict(measure.difference, apart))]),
      );
    });
    const titles = single ? ["Measure", left || "Value"] : ["Measure", left, right, `${right || "Right"} is`];
    const head = titles.map((text) => make("th", { scope: "col" }, text));
    this.table.replaceChildren(
      make("table", {}, make("thead", {}, make("tr", {}, ...head)), make("tbody", {}, ...body)),
    );
  }

  // --- Scenes and files -----------------------------------------------------------------------------------------------

  private async listScenes(): Promise<void> {
    const select = part<HTMLSelectElement>("scenes");
    select.replaceChildren(make("option", { value: "" }, "Choose …"), make("option", { value: HOME }, HOME_TITLE));
    select.addEventListener("change", () => {
      const name = select.value;
      if (name) void this.openScene(name).catch((fault) => this.fail([{ message: messageOf(fault) }]));
    });
    try {
      const names = await sceneNames(this.base);
      const scenes = await Promise.all(
        names.map(async (name) => JSON.parse(await fetchText(`scenes/${name}.json`, this.base)) as Scene),
      );
      scenes.forEach((scene, place) => {
        select.append(make("option", { value: names[place]! }, scene.title));
      });
      this.showScene();
    } catch (fault) {
      this.say(messageOf(fault));
    }
  }

  /** Texts that are pasted or dropped. */
  private takeTexts(): void {
    document.addEventListener("paste", (event) => {
      if (event.target instanceof HTMLElement && event.target.closest("input, textarea, select")) return;
      const text = event.clipboardData?.getData("text/plain") ?? "";
      if (/^\s*(#|\[|[A-Za-z_"]+\s*=)/m.test(text)) {
        event.preventDefault();
        this.take(text, {}, "pasted.toml");
      }
    });
    document.addEventListener("dragover", (event) => event.preventDefault());
    document.addEventListener("drop", (event) => {
      event.preventDefault();
      const files = [...(event.dataTransfer?.files ?? [])];
      if (files.length) void this.takeFiles(files);
      else this.take(event.dataTransfer?.getData("text/plain") ?? "", {}, "dropped.toml");
    });
  }

  private take(text: string, files: Record<string, string>, name: string): void {
    const length = [text, ...Object.values(files)].reduce((sum, each) => sum + each.length, 0);
    if (length > MOST_FILE) {
      this.fail([{ message: `${name} has ${length} characters with its traces; accepted: up to ${MOST_FILE}` }]);
      return;
    }
    this.openText(text, files, name);
  }

  /** An experiment file, and with it the traces that it names. */
  private async takeFiles(files: readonly File[]): Promise<void> {
    const main = files.find(({ name }) => name.endsWith(".toml"));
    if (!main) {
      this.fail([
        {
          message: `${files[0]?.name ?? "it"} is no experiment file; accepted: a file that ends in .toml, and with it the traces that it names`,
        },
      ]);
      return;
    }
    const size = files.reduce((sum, each) => sum + each.size, 0);
    if (size > MOST_FILE) {
      this.fail([{ message: `${main.name} has ${size} bytes with its traces; accepted: up to ${MOST_FILE}` }]);
      return;
    }
    const others = files.filter((each) => each !== main);
    const traces = await Promise.all(
      others.map(async (each): Promise<[string, string]> => [each.name, await each.text()]),
    );
    this.take(await main.text(), Object.fromEntries(traces), main.name);
  }

  private dialog(): void {
    const place = part<HTMLDialogElement>("dialog");
    const { text } = this.runs.textOf(this.state);
    const area = make("textarea", {
      spellcheck: "false",
      autocomplete: "off",
      "aria-label": "Experiment file",
      rows: 24,
      "data-part": "text",
    });
    area.value = text;
    const input = make("input", {
      type: "file",
      accept: ".toml,.trace,.txt,.csv",
      multiple: true,
      hidden: true,
      "data-part": "open-file",
    });
    input.addEventListener("change", () => {
      place.close();
      void this.takeFiles([...(input.files ?? [])]);
    });
    const act = (label: string, pressed: () => void, name: string) =>
      make("button", { type: "button", onclick: pressed, "data-part": name }, label);
    const name = "file" in this.state ? this.state.file.name : "lab.toml";
    place.replaceChildren(
      make("h2", { id: "dialog-head" }, "Experiment file"),
      make(
        "p",
        { class: "note" },
        "redtail run lab.toml gives the same numbers. Paste another file here, or change this one, and run it.",
      ),
      area,
      make(
        "div",
        { class: "controls" },
        act(
          "Run this text",
          () => {
            place.close();
            const files = "file" in this.state ? this.state.file.files : {};
            if (area.value !== text) this.take(area.value, files, "file" in this.state ? name : "changed.toml");
          },
          "run-text",
        ),
        act("Copy as TOML", () => void this.copyText(area.value, "The experiment file", area), "copy-toml"),
        act("Save", () => download(name, new Blob([area.value], { type: "application/toml" })), "save-toml"),
        act("Open a file …", () => input.click(), "choose-file"),
        input,
        act("Close", () => place.close(), "close"),
      ),
    );
    place.showModal();
  }

  // --- What can be kept -----------------------------------------------------------------------------------------------

  private async copyText(text: string, what: string, area?: HTMLTextAreaElement): Promise<void> {
    if (await copy(text)) this.say(`${what} is in the clipboard.`);
    else {
      area?.select();
      this.say("The browser does not let this page write to the clipboard; press Ctrl+C.");
    }
  }

  private async copyLink(): Promise<void> {
    await this.writeAddress();
    const fragment = await fragmentOf(this.state);
    if (fragment === null) {
      this.say("The file is too large for a link; save it instead.");
      return;
    }
    await this.copyText(`${location.origin}${location.pathname}${fragment ? `#${fragment}` : ""}`, "The link");
  }

  private async savePicture(): Promise<void> {
    const { shown } = this;
    if (!shown) return;
    const names = this.labels();
    const titles = [
      "Queueing delay, ms",
      this.over === "goodput" ? "Throughput of each flow, Mbit/s" : "Congestion window of each flow, kB",
    ];
    const stages = this.player.shownCanvases();
    const sides = this.sides.map((side, place) => ({
      label: names[place as 0 | 1],
      colour: css(place ? "--b" : "--a"),
      lines: this.rows.slice(0, 6).map(({ title, unit, measure }) => {
        const each = told(measure.sides[place as 0 | 1], unitFor(unit, ...meansOf(measure)));
        return `${title}: ${line(each)}${each.note ? ` (${each.note})` : ""}`;
      }),
      canvases: [
        ...side.canvases().map((canvas, i) => ({ title: titles[i] ?? "", canvas })),
        ...(stages[place] ? [{ title: "Packets that wait", canvas: stages[place] }] : []),
      ],
    }));
    const made = await picture(
      part("title").textContent ?? "",
      sides,
      `${part("runs").textContent} Made with redtail ${this.catalog.version}.`,
    );
    if (made) download("redtail-lab.png", made);
  }

  private saveCsv(): void {
    const { shown, common } = this;
    if (!shown || !common) return;
    download("redtail-lab-series.csv", new Blob([seriesCsv(shown, common.link)], { type: "text/csv" }));
    download("redtail-lab-measures.csv", new Blob([measuresCsv(this.measured, this.labels())], { type: "text/csv" }));
  }

  override restyle(): void {
    super.restyle();
    this.player.restyle();
  }

  private say(text: string): void {
    const place = part("said");
    place.textContent = text;
    place.classList.add("shown");
    setTimeout(() => place.classList.remove("shown"), 4000);
  }
}

const POINTS = { text: "percentage points", scale: 0.01 };
const NO_HISTOGRAM = { delay_s: new Float64Array(), counts: new Float64Array() };

const logLabel = (value: number): boolean => /^[1]0*$|^0\.0*1$/.test(String(value));

void new Page(false).start();
