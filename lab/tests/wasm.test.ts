import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import test from "node:test";
import { EngineFault, instantiate, Module, type Told } from "../src/wasm";

const FILE = new URL("../lab-engine/redtail.wasm", import.meta.url);
const without = existsSync(FILE) ? {} : { skip: "there is no target/lab-engine/redtail.wasm: make lab-engine" };

const SCENE = `name = "scene"
duration = "5 s"
warmup = "1 s"
[bottleneck]
rate = "10 Mbit/s"
delay = "20 ms"
queue = { kind = "tail-drop", limit = "40 packets" }
[[traffic]]
name = "ftp"
kind = "bulk"
flows = 3
[[traffic]]
name = "udp"
kind = "cbr"
rate = "2 Mbit/s"
packet = "1000 B"
`;

/** A module that answers with a text and columns, or ends with a message. */
function fake(answer: string, columns: number[], panic = ""): Module {
  const memory = new WebAssembly.Memory({ initial: 1 });
  new Float64Array(memory.buffer, 1024, columns.length).set(columns);
  const put = (text: string, place: number) => new TextEncoder().encodeInto(text, new Uint8Array(memory.buffer, place));
  const length = { text: put(answer, 4096).written, panic: put(panic, 8192).written };
  const exports = {
    memory,
    redtail_input: (length: number) => (length > 1000 ? 0 : 16_384),
    redtail_call: () => {
      if (panic) throw new WebAssembly.RuntimeError("unreachable");
    },
    redtail_output: () => 4096,
    redtail_output_length: () => length.text,
    redtail_columns: () => 1024,
    redtail_columns_length: () => columns.length,
    redtail_panic: () => 8192,
    redtail_panic_length: () => length.panic,
  };
  return new Module({ exports } as unknown as WebAssembly.Instance);
}

test("places of columns become arrays of their own", () => {
  const text = '{"ok": true, "a": {"column": [1, 2]}, "b": [{"column": [0, 0]}], "c": null, "d": {"columns": 1}}';
  const answer = fake(text, [1, 2, Number.NaN]).ask<{ ok: true }>({ ask: "x" });
  assert.deepEqual(answer, {
    ok: true,
    a: Float64Array.of(2, Number.NaN),
    b: [new Float64Array()],
    c: null,
    d: { columns: 1 },
  });
});

test("a request that is too long is refused, and a panic is told with its message, again and again", () => {
  const answer = fake("{}", []).ask<{ ok: true }>({ ask: "x".repeat(2000) });
  assert.ok(!answer.ok && answer.text.includes("too long"));
  const ended = fake("{}", [], "panicked at link.rs:7: time went back");
  for (let i = 0; i < 2; i++) {
    assert.throws(
      () => ended.ask({ ask: "x" }),
      (fault) => fault instanceof EngineFault && fault.message.includes("link.rs:7: time went back"),
    );
  }
});

test("a run gives series, distributions and packets in the form of the contract", without, async () => {
  const engine = await instantiate(await WebAssembly.compile(readFileSync(FILE)));
  const told: number[] = [];
  const lengths: number[] = [];
  const packets = { link: "bottleneck", from_s: 1, to_s: 2, most: 100_000 };
  const options = { series: 0.1, histograms: true, packets };
  const tell: Told = (now_s, duration_s, so_far) => {
    assert.equal(duration_s, 5);
    told.push(now_s);
    lengths.push(so_far().queues.bottleneck?.packets.length ?? 0);
  };
  const found = engine.run(SCENE, {}, 0, 0, options, tell);
  assert.equal(told.length, 24);
  assert.deepEqual([lengths[0], lengths[1], lengths[23]], [0, 2, 46]);
  assert.ok(told.every((now, i) => i === 0 || now > told[i - 1]!));
  assert.ok(found.metrics.goodput! > 1e6);
  assert.deepEqual(Object.keys(found.series.queues), ["bottleneck"]);
  assert.equal(found.series.queues.bottleneck!.packets.length, 50);
  assert.deepEqual(Object.keys(found.series.flows), ["ftp", "udp"]);
  assert.deepEqual(Object.keys(found.series.flows.ftp!), ["0", "1", "2"]);
  assert.deepEqual(Object.keys(found.series.flows.udp!), ["all"]);
  assert.equal(found.series.flows.udp!.all!.goodput.length, 50);
  const delays = found.histograms.bottleneck!;
  assert.equal(delays.counts.length, delays.delay_s.length);
  assert.ok(found.packets!.kind.length > 1000 && !found.packets!.truncated);
  assert.deepEqual(found.packets!.groups, ["ftp", "udp"]);
  // Neither steps nor what is recorded change a run.
  assert.deepEqual(engine.run(SCENE, {}, 0, 0, {}).metrics, found.metrics);
});

test("mistakes are told with line and key, and a run of them throws the whole message", without, async () => {
  const engine = await instantiate(await WebAssembly.compile(readFileSync(FILE)));
  const wrong = SCENE.replace("flows = 3", "flwos = 3");
  const checked = engine.check(wrong, {});
  assert.ok(!checked.ok);
  assert.equal(checked.errors[0]!.line, 11);
  assert.equal(checked.errors[0]!.key, "traffic.ftp.flwos");
  assert.throws(() => engine.run(wrong, {}, 0, 0, {}), /line 11: .*flwos/);
  const sound = engine.check(SCENE, {});
  assert.ok(sound.ok && sound.duration_s === 5 && sound.cases.length === 1);
  assert.deepEqual(engine.interval([1, 1, 1]), { ok: true, mean: 1, why: "all 3 replications are equal", n: 3 });
});
