import assert from "node:assert/strict";
import test from "node:test";
import { cumulative, jain, joined, niceEnd } from "../src/charts";
import type { PacketEvents } from "../src/contract";
import { DROPPED, INSIDE, reelOf, SENT, upTo, waitingAt } from "../src/reel";

/** Rows of time, kind, id. */
function events(...rows: [time_s: number, kind: number, id: number][]): PacketEvents {
  const column = (of: 0 | 1 | 2) => Float64Array.from(rows, (row) => row[of]);
  const zero = new Uint32Array(rows.length);
  return {
    time_s: column(0),
    kind: column(1),
    id: column(2),
    group: zero,
    flow: zero,
    size: zero.map(() => 1500),
    groups: ["g"],
  };
}
const [ARRIVAL, DEPARTURE, DROP, MARK] = [0, 1, 2, 3];

test("events become packets with their fates", () => {
  const reel = reelOf(
    events([1, ARRIVAL, 1], [1.1, ARRIVAL, 2], [1.2, MARK, 1], [1.3, DEPARTURE, 1], [1.35, ARRIVAL, 3], [1.4, DROP, 2]),
    1,
    2,
  );
  assert.deepEqual([...reel.fate], [SENT, DROPPED, INSIDE]);
  assert.deepEqual([...reel.out], [1.3, 1.4, Number.POSITIVE_INFINITY]);
  assert.equal(reel.mark[0], 1.2);
  assert.equal(reel.mostWaiting, 2);
  assert.deepEqual(
    reel.happenings.map(({ kind }) => kind),
    ["mark", "drop"],
  );
  assert.deepEqual(waitingAt(reel, 1.25), [0, 1]);
  assert.deepEqual(waitingAt(reel, 1.38), [1, 2]);
  assert.deepEqual(waitingAt(reel, 0.9), []);
});

test("a packet that came before the window waits from its start, a drop on arrival never waits", () => {
  const reel = reelOf(events([1.2, DEPARTURE, 7], [1.3, DROP, 8]), 1, 2);
  assert.deepEqual([...reel.arrival], [1, 1.3]);
  assert.deepEqual(waitingAt(reel, 1.1), [0]);
  assert.deepEqual(waitingAt(reel, 1.3), []);
});

test("packets wait in the order in which they go out", () => {
  const reel = reelOf(events([1, ARRIVAL, 1], [1.1, ARRIVAL, 2], [1.2, DEPARTURE, 2], [1.3, DEPARTURE, 1]), 1, 2);
  assert.deepEqual(waitingAt(reel, 1.15), [1, 0]);
});

test("places in ascending order", () => {
  assert.equal(upTo([1, 2, 2, 3], 2), 3);
  assert.equal(upTo([], 2), 0);
});

test("distributions of two runs share an axis", () => {
  const of = (delay_s: number[], counts: number[]) =>
    cumulative({ delay_s: Float64Array.from(delay_s), counts: Float64Array.from(counts) });
  const [xs, left, right] = joined([of([1, 2, 3], [1, 1, 2]), of([2, 4], [1, 3])]);
  assert.deepEqual(xs, [1, 2, 3, 4]);
  assert.deepEqual(left, [0.25, 0.5, 1, 1]);
  assert.deepEqual(right, [0, 0.25, 0.25, 1]);
});

test("Jain's index, and ends of axes", () => {
  assert.equal(jain([3, 3, 3]), 1);
  assert.equal(jain([4, 0, 0, 0]), 0.25);
  assert.equal(jain([]), null);
  assert.equal(niceEnd(0.0023), 0.0025);
  assert.equal(niceEnd(241), 250);
  assert.equal(niceEnd(0), 1);
});
