// The table of measures: both sides with their intervals, and how they differ.

import { make } from "./dom";
import type { Told } from "./format";
import { line, told, unitFor, verdict } from "./format";
import type { Row } from "./measures";
import { meansOf } from "./measures";

const POINTS = { text: "percentage points", scale: 0.01 };

function cell(each: Told): HTMLElement {
  const why = each.note ? [make("span", { class: "why" }, ` ${each.note}`)] : [];
  return make("td", each.sure ? {} : { class: "unsure" }, line(each), ...why);
}

export class Table {
  private readonly body = make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Measures" });
  private readonly button = make("button", { type: "button", "aria-pressed": "false" }, "All measures");
  private every = false;
  private draw = (): void => {};

  constructor(place: HTMLElement) {
    this.button.addEventListener("click", () => {
      this.every = !this.every;
      this.button.setAttribute("aria-pressed", String(this.every));
      this.button.textContent = this.every ? "The main measures" : "All measures";
      this.draw();
    });
    const head = make("div", { class: "section-head" }, make("h2", { id: "table-head" }, "Measures"), this.button);
    place.replaceChildren(head, this.body);
  }

  /** Show the main rows, or all of them where that is chosen. A file of a single case has one column. */
  show(main: readonly Row[], all: readonly Row[], [left, right]: readonly [string, string], single: boolean): void {
    this.draw = () => {
      const titles = single ? ["Measure", left || "Value"] : ["Measure", left, right, `${right || "Right"} is`];
      const head = titles.map((text) => make("th", { scope: "col" }, text));
      const rows = (this.every ? all : main).map(({ title, unit, doc, measure }) => {
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
      this.body.replaceChildren(
        make("table", {}, make("thead", {}, make("tr", {}, ...head)), make("tbody", {}, ...rows)),
      );
    };
    this.draw();
  }
}
