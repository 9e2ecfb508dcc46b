// The small form, for a page that shows a scene in a frame: two queues and few knobs.

import "uplot/dist/uPlot.min.css";
import "./lab.css";
import { part } from "./dom";
import type { NumberKnob } from "./knobs";
import type { Row } from "./measures";
import { drawKnobs } from "./panel";
import type { Shown } from "./runs";
import { DEFAULT } from "./state";
import { runsNote, View } from "./view";

const KNOBS: NumberKnob[] = ["rate", "round_trip", "buffer"];

class Embedded extends View {
  protected ready(): void {}

  protected opened(): void {
    part("title").textContent = this.scene?.title ?? "A queue in the laboratory";
    part("open").setAttribute("href", `index.html${location.hash}`);
    const knobs = part("knobs");
    knobs.hidden = !("knobs" in this.state);
    if (!("knobs" in this.state)) return;
    drawKnobs(
      knobs,
      () => ("knobs" in this.state ? this.state.knobs : DEFAULT),
      (next) => this.change(next),
      KNOBS,
    );
  }

  protected changed(): void {}
  protected drawn(_shown: Shown, _rate: number | null): void {}

  protected drawnMeasures(_rows: Row[], runs: number, done: boolean): void {
    if (this.shown) part("runs").textContent = runsNote(runs, this.shown, done);
    document.body.dataset.runs = String(runs);
    document.body.dataset.done = String(done);
  }
}

void new Embedded(true).start();
