// Metrics whose mean depends on events in few replications, whatever their values look like: they have no interval. The
// rules and their reasons are those of python/redtail/analysis/rare.py, in whose words they are told.

import { parse } from "smol-toml";
import type { QueueKind } from "./contract";

type Tree = Record<string, unknown>;
/** How many pairs of flows are expected to share a bucket, by the metric or the group ("calls.") that it decides. */
export type Sharing = ReadonlyMap<string, number>;

/** Events from which there is an interval. */
const ENOUGH = 10;
/** Quantiles of times of which a run may have few: the share beyond, and what counts the times. */
const TAILS: Record<string, [share: number, events: string]> = {
  response_time_p95: [0.05, "responses"],
  response_time_p99: [0.01, "responses"],
  slowdown_p99: [0.01, "responses"],
  page_time_p95: [0.05, "pages"],
};
/** Queues that put flows into buckets by a plain hash, and the key that says how many there are. */
const BUCKETS: Record<string, string> = { "fq-codel": "flows", "fq-pie": "flows", fq: "flows", sfq: "divisor" };
const WITHOUT_TCP = ["cbr", "voip", "on-off", "game", "call", "endpoint", "program"];

const isTree = (value: unknown): value is Tree => typeof value === "object" && value !== null && !Array.isArray(value);
const base = (name: string): string => name.slice(name.lastIndexOf(".") + 1);
const prefix = (name: string): string => name.slice(0, Math.max(0, name.lastIndexOf(".")));

/** Put a factor's value where its key says; elements of lists are named. */
function put(tree: unknown, key: string, value: unknown): void {
  const [first, ...rest] = key.split(".") as [string, ...string[]];
  if (Array.isArray(tree)) {
    for (const each of tree) if (isTree(each) && each.name === first && rest.length) put(each, rest.join("."), value);
  } else if (isTree(tree)) {
    if (!rest.length) tree[first] = value;
    else put(Object.hasOwn(tree, first) ? tree[first] : undefined, rest.join("."), value);
  }
}

function hashing(place: unknown, kinds: readonly QueueKind[]): number[] {
  if (Array.isArray(place)) return place.flatMap((each) => hashing(each, kinds));
  if (!isTree(place)) return [];
  const kind = String(place.kind);
  const key = Object.hasOwn(BUCKETS, kind) ? BUCKETS[kind]! : null;
  const usual = kinds.find((each) => each.kind === kind)?.parameters.find(({ name }) => name === key)?.default;
  const own = key === null ? [] : [Number(place[key] ?? usual)];
  return [...own.filter((count) => count > 0), ...Object.values(place).flatMap((each) => hashing(each, kinds))];
}

/** How many pairs of flows are expected to share a bucket in a case of a file that the engine has accepted. */
export function sharing(text: string, factors: Record<string, unknown>, kinds: readonly QueueKind[]): Sharing {
  const found = new Map<string, number>();
  let tree: Tree;
  try {
    tree = parse(text);
  } catch {
    return found;
  }
  for (const [key, value] of Object.entries(factors)) put(tree, key, value);
  const buckets = hashing([tree.bottleneck, tree.chain], kinds);
  const groups = Array.isArray(tree.traffic) ? tree.traffic.filter(isTree) : [];
  if (!buckets.length || !groups.length) return found;
  const counts = groups.map(({ flows, users }) => {
    const count = flows ?? users ?? 1;
    return typeof count === "number" ? count : 1;
  });
  const sum = counts.reduce((a, b) => a + b, 0);
  const most = Math.max(...buckets);
  const pairs = (of: number): number => (of * (sum - of + (of - 1) / 2)) / most;
  let [udp, all] = [0, 0];
  groups.forEach(({ name, kind, users }, place) => {
    const count = counts[place]!;
    if (WITHOUT_TCP.includes(String(kind))) {
      found.set(`${name}.`, pairs(count));
      udp += count;
    } else {
      found.set(`${name}.fairness`, pairs(count));
      if (users === undefined) all += count;
    }
  });
  if (udp) for (const name of ["udp_loss", "queue_delay_p50"]) found.set(name, pairs(udp));
  if (all) found.set("fairness", pairs(all));
  for (const [name, expected] of found) if (!(expected > 0)) found.delete(name);
  return found;
}

/** A number with two significant digits, as Python's `.2g` has it for these sizes. */
const short = (value: number): string => String(Number(value.toPrecision(2)));

/** Why a metric has no interval over `n` replications; null when it may have one. */
export function whyNoInterval(
  name: string,
  shared: Sharing,
  n: number,
  values: (name: string) => (number | null)[],
): string | null {
  const last = base(name);
  if (last.endsWith("_max") || last.endsWith("_min")) return "an extreme of each run";
  const tail = Object.hasOwn(TAILS, last) ? TAILS[last] : undefined;
  if (tail) {
    const [share, events] = tail;
    const counts = values(`${prefix(name)}.${events}`).filter((each) => each !== null);
    const beyond = counts.length ? (share * counts.reduce((a, b) => a + b, 0)) / counts.length : ENOUGH;
    if (beyond < ENOUGH) {
      return `about ${short(beyond)} of the ${events} in each run are beyond this quantile, too few`;
    }
  }
  const group = base(prefix(name));
  const keys = [`${group}.${last}`, `${group}.`, ...(shared.has(`${group}.fairness`) ? [] : [last])];
  const key = keys.find((each) => shared.has(each));
  const pairs = key === undefined ? null : shared.get(key)!;
  if (pairs === null || n * pairs >= ENOUGH) return null;
  return `flows share a bucket of the queue too seldom, about ${short(n * pairs)} times in ${n} replications`;
}
