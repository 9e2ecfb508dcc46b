import assert from "node:assert/strict";
import test from "node:test";
import { parse } from "smol-toml";
import { QUEUES, RANGES, readKnobs } from "../src/knobs";
import type { Knobs } from "../src/state";
import { DEFAULT } from "../src/state";
import { fromToml, labels, toToml, withQueue } from "../src/toml";
import { instantiate } from "./fake_wasm";

const { queues: kinds } = (await instantiate({} as WebAssembly.Module)).catalog();

const SOME: Partial<Knobs>[] = [
  {},
  { rate: 0.5, round_trip: 3, buffer: 2.5 },
  { ecn: true },
  {
    ecn: true,
    queues: [{ kind: "red", parameters: { min_th: "5 ms", max_th: "15 ms", ecn: false } }, DEFAULT.queues[1]],
  },
  { ecn: true, queues: [{ kind: "red", parameters: { min_th: "5 ms", max_th: "15 ms" } }, DEFAULT.queues[1]] },
  { loss: 0.001, udp: 110, rate: 33.3 },
  { calls: 0, web_users: 3, duration: 180, seed: 2 ** 40, replications: 1 },
  {
    downloads: [
      { flows: 0, tcp: "cubic" },
      { flows: 7, tcp: "bbr3" },
    ],
  },
  { queues: [DEFAULT.queues[0], DEFAULT.queues[0]] },
  { queues: [{ kind: "fq-codel", parameters: { target: "20 ms", ecn: false } }, DEFAULT.queues[0]] },
];

for (const [place, some] of SOME.entries()) {
  test(`the file of knobs becomes these knobs again (${place})`, () => {
    const knobs = { ...DEFAULT, ...some };
    const text = toToml(knobs, kinds);
    const back = fromToml(text, kinds);
    assert.ok(back);
    // A controller of no flows is not in the file.
    assert.equal(toToml(back, kinds), text);
    assert.deepEqual(back.queues, knobs.queues);
    assert.equal(back.rate, knobs.rate);
    assert.equal(back.loss, knobs.loss);
    assert.equal(back.ecn, knobs.ecn);
  });
}

test("comments and spaces do not matter, another value does", () => {
  const text = toToml(DEFAULT, kinds);
  assert.deepEqual(fromToml(`# mine\n\n${text.replaceAll(" = ", "=")}`, kinds), DEFAULT);
  assert.equal(fromToml(text.replace('name = "Laboratory"', 'name = "Mine"'), kinds), null);
  assert.equal(fromToml(`${text}\n[report]\nmetrics = ["loss"]\n`, kinds), null);
  assert.equal(fromToml(text.replace('"20 Mbit/s"', '"20 Gbit/s"'), kinds), null);
  assert.equal(fromToml("name = ", kinds), null);
});

test("two queues of one kind have different labels", () => {
  assert.deepEqual(labels([DEFAULT.queues[0], DEFAULT.queues[0]]), ["Tail drop A", "Tail drop B"]);
});

test("a parameter is quoted as TOML has it", () => {
  const odd = {
    ...DEFAULT,
    queues: [{ kind: "red", parameters: { max_p: 1e-7, spacing: 'a"b\\' } }, DEFAULT.queues[1]],
  } as Knobs;
  const tree = parse(toToml(odd, kinds)) as unknown as {
    factors: Record<string, { max_p: number; spacing: string }[]>;
  };
  assert.equal(tree.factors["bottleneck.queue"]![0]!.max_p, 1e-7);
  assert.equal(tree.factors["bottleneck.queue"]![0]!.spacing, 'a"b\\');
});

test("another queue brings what it needs", () => {
  const knobs = withQueue(DEFAULT, 1, "red");
  assert.deepEqual(knobs.queues[1].parameters, { min_th: "42 ms", max_th: "130 ms" });
  assert.deepEqual(knobs.queues[0], DEFAULT.queues[0]);
  for (const kind of Object.keys(QUEUES)) readKnobs(withQueue(DEFAULT, 0, kind));
});

test("defaults lie on steps of their sliders", () => {
  for (const [name, range] of Object.entries(RANGES)) {
    assert.ok(range.steps.includes(DEFAULT[name as keyof typeof RANGES]), name);
  }
});
