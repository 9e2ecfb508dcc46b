// The page: both sides, knobs, scenes, the slow motion, the table, and what can be kept.

import "uplot/dist/uPlot.min.css";
import "./lab.css";
import { Chart, cumulative, joined } from "./charts";
import { css, make, menu, part } from "./dom";
import { line, significant, told, unitFor } from "./format";
import { Inbox } from "./inbox";
import { fragmentOf } from "./link";
import type { Row } from "./measures";
import { meansOf } from "./measures";
import { drawKnobs } from "./panel";
import { Player } from "./player";
import type { Shown } from "./runs";
import { copy, download, measuresCsv, picture, seriesCsv } from "./save";
import { fetchText, sceneNames } from "./scenes";
import type { Of, Over } from "./side";
import type { Scene } from "./state";
import { DEFAULT } from "./state";
import { Table } from "./table";
import { HOME, messageOf, runsNote, View } from "./view";

const HOME_TITLE = "A home line";
const HOME_SUMMARY =
  "Downloads fill the buffer of a line to the Internet, and a call goes through the same buffer. Which queue keeps both well? Move a knob, or choose other queues.";
/** How long after the last change the address holds the state, ms. */
const SETTLED = 400;

class Page extends View {
  private player!: Player;
  private distribution!: Chart;
  private table!: Table;
  private inbox!: Inbox;
  private settle = 0;
  private rows: Row[] = [];

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
    this.table = new Table(part("table"));
    this.inbox = new Inbox({
      run: (text, files, name) => this.openText(text, files, name),
      refuse: (message) => this.fail([{ message }]),
      copy: (text, area) => void this.copyText(text, "The experiment file", area),
    });
    part("footer").textContent =
      `redtail ${this.catalog.version}. The simulator runs in this page; nothing is sent anywhere. \`redtail run\` gives the same numbers for the same experiment file.`;
    part("copy-link").addEventListener("click", () => void this.copyLink());
    part("toml").addEventListener("click", () => this.showFile());
    part("picture").addEventListener("click", () => void this.savePicture());
    part("csv").addEventListener("click", () => this.saveCsv());
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
        make("button", { type: "button", onclick: () => this.showFile() }, "Read or change the file"),
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
    // What is too large for a link leaves none: another one would be wrong.
    const fragment = isHome ? "" : ((await fragmentOf(this.state)) ?? "");
    // Somebody has gone to another address, which is opened soon.
    if (location.hash.slice(1) !== this.address) return;
    this.address = fragment;
    const { pathname, search } = location;
    history.replaceState(null, "", `${pathname}${search}${fragment ? `#${fragment}` : ""}`);
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
    part("printed-file").textContent = shown.text;
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
    const key = JSON.stringify([links, hasWindow, link, this.of, this.over]);
    if (place.dataset.key === key) return;
    place.dataset.key = key;
    const lengths: [Of, string][] = [
      ["delay", "delay"],
      ["length", "length"],
    ];
    place.replaceChildren(
      menu("Queues show their", lengths, this.of, (value) => {
        this.of = value as Of;
        this.restyle();
      }),
    );
    if (hasWindow) {
      const options: [Over, string][] = [
        ["goodput", "throughput"],
        ["cwnd", "congestion window"],
      ];
      place.append(
        menu("Flows their", options, this.over, (value) => {
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
          label: this.of === "delay" ? "Queueing delay, ms" : "Queue length, packets",
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
    this.table.show(rows, this.measures.all(this.measured), this.labels(), this.shown?.cases.length === 1);
    const { shown } = this;
    if (!shown) return;
    this.drawStrip(rows[0]);
    const note = part("runs");
    note.textContent = runsNote(runs, shown, done);
    // A screen reader says it once, when all runs are there.
    note.setAttribute("aria-busy", String(!done));
    const warned = shown.warnings.map((text) => make("li", {}, text));
    part("warnings").replaceChildren(
      ...(warned.length ? [make("summary", {}, "What the check says"), make("ul", {}, ...warned)] : []),
    );
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

  /** The experiment file of what is shown, to copy, to change, or to replace. */
  private showFile(): void {
    const { text, files } = this.runs.textOf(this.state);
    const name = "file" in this.state ? this.state.file.name : "lab.toml";
    this.inbox.show({ name, text, files });
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
      this.of === "delay" ? "Queueing delay, ms" : "Queue length, packets",
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
        ...(stages[place] ? [{ title: `Packets that wait at ${this.player.now()}`, canvas: stages[place] }] : []),
      ],
      legend: this.common?.palette.legend ?? [],
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

const NO_HISTOGRAM = { delay_s: new Float64Array(), counts: new Float64Array() };

const logLabel = (value: number): boolean => /^[1]0*$|^0\.0*1$/.test(String(value));

void new Page(false).start();
