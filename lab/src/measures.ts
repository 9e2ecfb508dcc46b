// Which measures are shown first, and what they are called.

import type { MetricTitle } from "./contract";
import type { Measure } from "./runs";

/** Last parts of names of metrics, what people feel first. */
const FIRST = [
  "queue_delay_p95",
  "mos",
  "quality",
  "page_time_p50",
  "page_time_p95",
  "response_time_p50",
  "response_time_p95",
  "fairness",
  "utilization",
  "goodput",
  "queue_delay_p50",
  "loss",
  "mark",
  "udp_loss",
  "end_to_end_loss",
  "loss_synchronization",
  "timeouts",
];
/** Of a link alone: groups have them too, but there they say little more. */
const OF_LINKS = new Set(["queue_delay_p95", "queue_delay_p50", "utilization", "loss", "mark", "loss_synchronization"]);

const SHORT: Record<string, string> = {
  queue_delay_p95: "Queueing delay, 95 %",
  queue_delay_p50: "Queueing delay, median",
  mos: "Call quality (1 to 5)",
  quality: "Call quality (1 to 5)",
  page_time_p50: "Page load time, median",
  page_time_p95: "Page load time, 95 %",
  response_time_p50: "Response time, median",
  response_time_p95: "Response time, 95 %",
  fairness: "Fairness (Jain)",
  utilization: "Utilization",
  goodput: "Goodput",
  loss: "Packets lost at the queue",
  mark: "Packets marked",
};

const last = (name: string): string => name.slice(name.lastIndexOf(".") + 1);
const before = (name: string): string => name.slice(0, Math.max(0, name.lastIndexOf(".")));

export const meansOf = ({ sides }: Measure): (number | null)[] => sides.map(({ mean }) => mean);

export interface Row {
  measure: Measure;
  title: string;
  unit: string;
  /** What it means. */
  doc: string;
}

/** Whether both sides measured nothing, or only zeros. */
function empty({ name, sides }: Measure): boolean {
  const zero = sides.every(({ mean }) => mean === 0);
  return sides.every(({ mean }) => mean === null) || (zero && ["mark", "udp_loss", "timeouts"].includes(last(name)));
}

export class Measures {
  private readonly titles = new Map<string, MetricTitle>();

  constructor(metrics: readonly MetricTitle[]) {
    for (const each of metrics) this.titles.set(each.name, each);
  }

  private titled(name: string): MetricTitle | undefined {
    return this.titles.get(name) ?? this.titles.get(last(name));
  }

  row(measure: Measure): Row {
    const { name } = measure;
    const found = this.titled(name);
    const title = SHORT[last(name)] ?? found?.title ?? last(name).replaceAll("_", " ");
    const of = before(name).replaceAll("_", " ");
    return { measure, title: of ? `${title}, ${of}` : title, unit: found?.measure ?? "", doc: found?.doc ?? "" };
  }

  /** All that has been measured, in the order of the engine. */
  all(measures: readonly Measure[]): Row[] {
    return measures.filter((each) => each.sides.some(({ mean }) => mean !== null)).map((each) => this.row(each));
  }

  /** The rows of the table: those that are wanted, or what people feel first. */
  first(measures: readonly Measure[], wanted: readonly string[]): Row[] {
    const byName = new Map(measures.map((each) => [each.name, each]));
    const named = wanted.flatMap((name) => byName.get(name) ?? []);
    if (named.length) return named.map((each) => this.row(each));
    return measures
      .filter(({ name }) => FIRST.includes(last(name)) && !(OF_LINKS.has(last(name)) && this.ofGroup(name, byName)))
      .filter(
        (each) =>
          !empty(each) &&
          !this.repeats(each, byName) &&
          !(last(each.name) === "fairness" && each.sides.every(({ mean }) => mean === 1)),
      )
      .sort((a, b) => FIRST.indexOf(last(a.name)) - FIRST.indexOf(last(b.name)))
      .map((each) => this.row(each));
  }

  /** Whether a measure of all groups is that of the only group that has it. */
  private repeats({ name, sides }: Measure, all: Map<string, Measure>): boolean {
    if (before(name) !== "") return false;
    const groups = [...all.values()].filter((each) => before(each.name) !== "" && last(each.name) === name);
    return groups.some((each) => each.sides.every(({ mean }, side) => mean === sides[side]!.mean));
  }

  /** Whether this is a group's share of what its link has. */
  private ofGroup(name: string, all: Map<string, Measure>): boolean {
    const group = before(name);
    return group !== "" && (all.has(`${group}.received_rate`) || all.has(`${group}.host_wait_max`));
  }
}
