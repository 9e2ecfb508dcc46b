// From knobs to an experiment file, and back if a file has exactly the shape that knobs make.

import { parse, stringify } from "smol-toml";
import type { QueueKind } from "./contract";
import { QUEUES, readKnobs, startParameters } from "./knobs";
import type { Knobs, QueueKnobs, Value } from "./state";
import { DEFAULT } from "./state";

const HEAD = "# Made with the redtail laboratory. Run it with: redtail run lab.toml\n";
const NAME = "Laboratory";

const short = (value: number): number => Number(value.toPrecision(12));
const ms = (value: number): string => `${short(value)} ms`;
const inline = (value: Value): string => (typeof value === "string" ? JSON.stringify(value) : String(value));

/** A key that is not bare in TOML would have to be quoted; parameters of queues are bare. */
function table(entries: [string, Value][]): string {
  return `{ ${entries.map(([key, value]) => `${key} = ${inline(value)}`).join(", ")} }`;
}

function queueTable(queue: QueueKnobs, label: string, knobs: Knobs, kinds: readonly QueueKind[]): string {
  const known = kinds.find(({ kind }) => kind === queue.kind)?.parameters.map(({ name }) => name);
  const marks = knobs.ecn && known?.includes("ecn") && queue.parameters.ecn === undefined;
  return table([
    ["label", label],
    ["kind", queue.kind],
    ["limit", ms(knobs.buffer)],
    ...Object.entries(queue.parameters),
    ...(marks ? ([["ecn", true]] as [string, Value][]) : []),
  ]);
}

/** Names of the two queues, which differ. */
export function labels(queues: readonly [QueueKnobs, QueueKnobs]): [string, string] {
  const [left, right] = queues.map(({ kind }) => QUEUES[kind] ?? kind) as [string, string];
  return left === right ? [`${left} A`, `${right} B`] : [left, right];
}

function group(name: string, kind: string, back: string, rest: string[]): string[] {
  return ["", "[[traffic]]", `name = "${name}"`, `kind = "${kind}"`, ...rest, `return_delay = "${back}"`];
}

/** The experiment file of the knobs. The kinds of queues say which of them can mark. The same knobs give the same text. */
export function toToml(knobs: Knobs, kinds: readonly QueueKind[]): string {
  const one_way = ms(knobs.round_trip / 2);
  const tcp = (preset: string): string => (knobs.ecn ? `{ preset = "${preset}", ecn = true }` : `"${preset}"`);
  const [left, right] = labels(knobs.queues);
  const lines = [
    `name = "${NAME}"`,
    `duration = "${knobs.duration} s"`,
    `warmup = "${short(knobs.duration / 6)} s"`,
    `replications = ${knobs.replications}`,
    `seed = ${knobs.seed}`,
    "",
    "[bottleneck]",
    `rate = "${short(knobs.rate)} Mbit/s"`,
    `delay = "${one_way}"`,
    `queue = { kind = "tail-drop", limit = "${ms(knobs.buffer)}" } # replaced by [factors]`,
  ];
  if (knobs.loss > 0) lines.push("", "[bottleneck.wire]", `loss = ${short(knobs.loss / 100)}`);
  knobs.downloads.forEach(({ flows, tcp: preset }, place) => {
    if (flows === 0) return;
    const name = place === 0 ? "downloads" : "more_downloads";
    lines.push(...group(name, "bulk", one_way, [`flows = ${flows}`, `tcp = ${tcp(preset)}`]));
  });
  if (knobs.calls > 0) lines.push(...group("calls", "voip", one_way, [`flows = ${knobs.calls}`]));
  if (knobs.web_users > 0) {
    lines.push(
      ...group("web", "web", one_way, [`model = "http2"`, `users = ${knobs.web_users}`, `tcp = ${tcp("linux")}`]),
    );
  }
  if (knobs.udp > 0) {
    const rate = `${short((knobs.rate * knobs.udp) / 100)} Mbit/s`;
    lines.push(...group("udp", "cbr", one_way, [`rate = "${rate}"`, `packet = "1250 B"`, "dither = 0.5"]));
  }
  lines.push(
    "",
    "[factors]",
    `"bottleneck.queue" = [`,
    `  ${queueTable(knobs.queues[0], left, knobs, kinds)},`,
    `  ${queueTable(knobs.queues[1], right, knobs, kinds)},`,
    "]",
  );
  return `${HEAD}${lines.join("\n")}\n`;
}

type Tree = { [key: string]: unknown };
const isTree = (value: unknown): value is Tree => typeof value === "object" && value !== null && !Array.isArray(value);
const tree = (value: unknown): Tree => (isTree(value) ? value : {});

function quantity(value: unknown, unit: string): number {
  const found = typeof value === "string" ? /^([0-9.e+-]+) (\S+)$/.exec(value) : null;
  return found?.[2] === unit ? Number(found[1]) : Number.NaN;
}

function downloadsOf(given: Tree | undefined, fallback: string): { flows: unknown; tcp: unknown; ecn: boolean } {
  const preset = isTree(given?.tcp) ? given.tcp.preset : given?.tcp;
  return { flows: given?.flows ?? 0, tcp: preset ?? fallback, ecn: isTree(given?.tcp) && given.tcp.ecn === true };
}

/** The knobs of which this is the file, whatever its comments and spaces; null if no knobs make it. */
export function fromToml(text: string, kinds: readonly QueueKind[]): Knobs | null {
  try {
    const given: Tree = parse(text);
    const groups = new Map(
      (Array.isArray(given.traffic) ? given.traffic.filter(isTree) : []).map((each) => [each.name, each]),
    );
    const link = tree(given.bottleneck);
    const rate = quantity(link.rate, "Mbit/s");
    const factor = tree(given.factors)["bottleneck.queue"];
    const first = downloadsOf(groups.get("downloads"), DEFAULT.downloads[0].tcp);
    const second = downloadsOf(groups.get("more_downloads"), DEFAULT.downloads[1].tcp);
    const web = downloadsOf(groups.get("web"), "linux");
    const ecn = first.ecn || second.ecn || web.ecn;
    const queues = (Array.isArray(factor) ? factor : []).map((each) => {
      const { label: _label, kind, limit: _limit, ...parameters } = tree(each);
      return { kind, parameters };
    });
    // A queue that marks because of the knob has no parameter of its own.
    const bare = queues.map(({ kind, parameters: { ecn: mark, ...rest } }) =>
      ecn && mark === true
        ? { kind, parameters: rest }
        : { kind, parameters: mark === undefined ? rest : { ...rest, ecn: mark } },
    );
    const variants = [bare, queues];
    for (const each of variants) {
      const knobs = readKnobs({
        rate,
        round_trip: 2 * quantity(link.delay, "ms"),
        buffer: quantity(tree(link.queue).limit, "ms"),
        downloads: [
          { flows: first.flows, tcp: first.tcp },
          { flows: second.flows, tcp: second.tcp },
        ],
        calls: groups.get("calls")?.flows ?? 0,
        web_users: groups.get("web")?.users ?? 0,
        udp: groups.has("udp") ? short((quantity(groups.get("udp")?.rate, "Mbit/s") / rate) * 100) : 0,
        ecn,
        loss: short(100 * Number(tree(link.wire).loss ?? 0)),
        duration: quantity(given.duration, "s"),
        seed: given.seed,
        replications: given.replications,
        queues: each,
      });
      if (stringify(parse(toToml(knobs, kinds))) === stringify(given)) return knobs;
    }
    return null;
  } catch {
    return null;
  }
}

/** The knobs with another kind in one of the queues. */
export function withQueue(knobs: Knobs, side: 0 | 1, kind: string): Knobs {
  const queues: [QueueKnobs, QueueKnobs] = [...knobs.queues];
  queues[side] = { kind, parameters: startParameters(kind, knobs.buffer) };
  return { ...knobs, queues };
}
