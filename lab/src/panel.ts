// The knobs as controls: sliders with a field beside each, menus, and the parameters of a queue.

import type { Parameter, QueueKind } from "./contract";
import { freshId, make, menu } from "./dom";
import type { NumberKnob, Range } from "./knobs";
import { CONTROLS, FLOWS, nearestStep, QUEUES, RANGES } from "./knobs";
import type { Knobs, Value } from "./state";

export type Change = (knobs: Knobs) => void;

interface Control {
  element: HTMLElement;
  set(value: number): void;
}

/** A slider over the steps and a field that takes any value between the first and the last. */
export function slider(range: Range, value: number, changed: (value: number) => void, name: string): Control {
  const id = freshId();
  const { steps, unit } = range;
  const [least, most] = [steps[0]!, steps.at(-1)!];
  const track = make("input", {
    type: "range",
    min: 0,
    max: steps.length - 1,
    step: 1,
    "data-knob": name,
    "aria-label": range.label,
  });
  const field = make("input", {
    id,
    type: "number",
    min: least,
    max: most,
    step: range.whole ? 1 : "any",
    inputmode: range.whole ? "numeric" : "decimal",
    "data-field": name,
  });
  const show = (now: number): void => {
    track.value = String(nearestStep(steps, now));
    track.setAttribute("aria-valuetext", `${now} ${unit}`.trim());
    if (document.activeElement !== field || Number(field.value) !== now) field.value = String(now);
  };
  track.addEventListener("input", () => {
    const now = steps[Number(track.value)]!;
    show(now);
    changed(now);
  });
  field.addEventListener("change", () => {
    const typed = field.valueAsNumber;
    const bounded = Number.isFinite(typed) ? Math.min(most, Math.max(least, typed)) : value;
    const now = range.whole ? Math.round(bounded) : bounded;
    field.value = String(now);
    show(now);
    changed(now);
  });
  show(value);
  const label = make("label", { for: id, title: range.help }, range.label);
  const row = make(
    "div",
    { class: "knob" },
    label,
    make("span", { class: "amount" }, field, unit ? ` ${unit}` : ""),
    track,
  );
  return { element: row, set: show };
}

const section = (title: string, ...rows: HTMLElement[]): HTMLElement =>
  make("fieldset", {}, make("legend", {}, title), ...rows);

const withNumber = (knobs: Knobs, name: NumberKnob, value: number): Knobs => ({ ...knobs, [name]: value });

/** All knobs but those of the queues, into a place. What a knob says is put upon the newest knobs. */
export function drawKnobs(place: HTMLElement, knobs: () => Knobs, change: Change, names?: readonly NumberKnob[]): void {
  const row = (name: NumberKnob): HTMLElement =>
    slider(RANGES[name], knobs()[name], (value) => change(withNumber(knobs(), name, value)), name).element;
  if (names) {
    place.replaceChildren(...names.map(row));
    return;
  }
  const controls = Object.entries(CONTROLS);
  const downloads = (side: 0 | 1): HTMLElement => {
    const mine = () => knobs().downloads[side];
    const put = (part: Partial<Knobs["downloads"][0]>): void => {
      const both: Knobs["downloads"] = [...knobs().downloads];
      both[side] = { ...both[side], ...part };
      change({ ...knobs(), downloads: both });
    };
    const range = { ...FLOWS, label: side === 0 ? "Downloads" : "More downloads" };
    const { element } = slider(range, mine().flows, (flows) => put({ flows }), `downloads.${side}.flows`);
    const chosen = menu("over", controls, mine().tcp, (tcp) => put({ tcp }), {
      "data-knob": `downloads.${side}.tcp`,
      "aria-label": `Congestion control of ${range.label.toLowerCase()}`,
    });
    return make("div", { class: "downloads" }, element, chosen);
  };
  const ecn = make("input", {
    type: "checkbox",
    checked: knobs().ecn,
    "data-knob": "ecn",
    onchange: () => change({ ...knobs(), ecn: ecn.checked }),
  });
  const seed = make("input", {
    id: freshId(),
    type: "number",
    min: 0,
    max: Number.MAX_SAFE_INTEGER,
    step: 1,
    value: knobs().seed,
    "data-field": "seed",
    onchange: () => {
      const typed = Math.round(seed.valueAsNumber);
      if (Number.isSafeInteger(typed) && typed >= 0) change({ ...knobs(), seed: typed });
      else seed.value = String(knobs().seed);
    },
  });
  place.replaceChildren(
    section("Link", row("rate"), row("round_trip"), row("buffer"), row("loss")),
    section(
      "Traffic",
      downloads(0),
      downloads(1),
      row("calls"),
      row("web_users"),
      row("udp"),
      make(
        "label",
        { class: "tick", title: "Senders ask for marks, and queues that can mark do" },
        ecn,
        "ECN: mark in place of dropping",
      ),
    ),
    section(
      "Runs",
      row("duration"),
      row("replications"),
      make(
        "div",
        { class: "knob" },
        make("label", { for: seed.id, title: "Of the random numbers" }, "Seed"),
        make("span", { class: "amount wide" }, seed),
      ),
    ),
  );
}

/** Parameters that are shown first. */
const MAIN = [
  "target",
  "target_delay",
  "interval",
  "min_th",
  "max_th",
  "max_p",
  "w_q",
  "threshold",
  "q_ref",
  "quantum",
  "rtt",
  "flows",
  "long_after",
  "coupling",
  "increment",
  "decrement",
  "gamma",
  "bin_size",
  "isolation",
  "depth",
  "flow_limit",
];
const HIDDEN = ["label", "limit", "class", "profiles", "tune"];

const QUANTITY = /^([0-9.]+(?:e-?[0-9]+)?)( .*)?$/;

/** Steps of a slider around a quantity: from a thirtieth to the thirtyfold. */
function around(start: number): number[] {
  const whole = Number.isInteger(start) && start >= 30;
  const steps = [
    1 / 30,
    1 / 20,
    1 / 15,
    0.1,
    0.15,
    0.2,
    0.3,
    0.4,
    0.6,
    0.8,
    1,
    1.25,
    1.5,
    2,
    3,
    4,
    6,
    8,
    10,
    15,
    20,
    30,
  ];
  return steps.map((factor) => (whole ? Math.round(start * factor) : Number((start * factor).toPrecision(3))));
}

function asText(value: unknown): string {
  if (value === null || value === undefined) return "";
  return Array.isArray(value) ? value.map(asText).join(", ") : String(value);
}

/** The parameters of one of the queues as controls. */
export function drawParameters(
  place: HTMLElement,
  kind: QueueKind,
  values: Record<string, Value>,
  change: (values: Record<string, Value>) => void,
  side: number,
): void {
  const held = { ...values };
  const put = (name: string, value: Value | null): void => {
    if (value === null) delete held[name];
    else held[name] = value;
    change({ ...held });
  };
  const known = kind.parameters.filter(({ name, type }) => !HIDDEN.includes(name) && type !== "other");
  const rank = ({ name }: Parameter): number => {
    const place = MAIN.indexOf(name);
    return place < 0 ? MAIN.length : place;
  };
  const sorted = [...known].sort((a, b) => rank(a) - rank(b));
  const main = sorted.filter(({ name }) => MAIN.includes(name)).slice(0, 5);
  const rest = sorted.filter((each) => !main.includes(each));
  const row = (parameter: Parameter): HTMLElement => control(parameter, held[parameter.name], put, side);
  const parts: HTMLElement[] = main.map(row);
  if (rest.length) {
    const title = main.length ? `${rest.length} more parameters` : `${rest.length} parameters`;
    parts.push(make("details", { class: "rest" }, make("summary", {}, title), ...rest.map(row)));
  }
  if (!parts.length) parts.push(make("p", { class: "note" }, "It has no parameter but its limit: the buffer."));
  place.replaceChildren(make("p", { class: "note" }, kind.title), ...parts);
}

function control(
  { name, type, default: usual, choices, doc }: Parameter,
  value: Value | undefined,
  put: (name: string, value: Value | null) => void,
  side: number,
): HTMLElement {
  const id = freshId();
  const data = `${side}.${name}`;
  const label = make("label", { for: id, title: doc }, name);
  if (type === "boolean") {
    const box = make("input", { id, type: "checkbox", checked: Boolean(value ?? usual), "data-parameter": data });
    box.addEventListener("change", () => put(name, box.checked === usual ? null : box.checked));
    return make("div", { class: "parameter" }, label, box);
  }
  if (choices?.length) {
    const select = make("select", { id, "data-parameter": data });
    if (usual === null || usual === undefined) select.append(make("option", { value: "" }, "not set"));
    for (const each of choices) select.append(make("option", { value: String(each) }, String(each)));
    select.value = asText(value ?? usual);
    const chosen = (text: string): Value | null => choices.find((each) => String(each) === text) ?? null;
    select.addEventListener("change", () => put(name, select.value === asText(usual) ? null : chosen(select.value)));
    return make("div", { class: "parameter" }, label, select);
  }
  const field = make("input", {
    id,
    type: "text",
    maxlength: 60,
    spellcheck: "false",
    autocomplete: "off",
    placeholder: usual === null || usual === undefined ? "not set" : asText(usual),
    "data-parameter": data,
  });
  field.value = asText(value);
  const read = (text: string): Value | null => {
    const typed = text.trim();
    if (typed === "" || typed === asText(usual)) return null;
    if (typed === "true" || typed === "false") return typed === "true";
    return /^-?[0-9.]+(e-?[0-9]+)?$/.test(typed) && Number.isFinite(Number(typed)) ? Number(typed) : typed;
  };
  field.addEventListener("change", () => put(name, read(field.value)));
  const start = QUANTITY.exec(asText(value ?? usual));
  if (!start || Number(start[1]) <= 0) return make("div", { class: "parameter" }, label, field);
  const centre = QUANTITY.exec(asText(usual)) ?? start;
  const steps = around(Number(centre[1]) || Number(start[1]));
  const unit = start[2] ?? "";
  const track = make("input", { type: "range", min: 0, max: steps.length - 1, step: 1, "aria-label": name });
  track.value = String(nearestStep(steps, Number(start[1])));
  track.setAttribute("aria-valuetext", asText(value ?? usual));
  track.dataset.slider = data;
  track.addEventListener("input", () => {
    const text = `${steps[Number(track.value)]}${unit}`;
    track.setAttribute("aria-valuetext", text);
    const now = read(text);
    field.value = asText(now);
    put(name, now);
  });
  return make("div", { class: "parameter sliding" }, label, field, track);
}

/** The menu of a queue's kind. */
export function kindMenu(
  kinds: readonly QueueKind[],
  value: string,
  side: 0 | 1,
  chosen: (kind: string) => void,
): HTMLElement {
  const known = Object.entries(QUEUES).filter(([kind]) => kinds.some((each) => each.kind === kind));
  return menu(side === 0 ? "Left queue" : "Right queue", known, value, chosen, { "data-knob": `queues.${side}.kind` });
}
