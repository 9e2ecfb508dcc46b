import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import test from "node:test";
import { deflateRawSync } from "node:zlib";
import { fragmentOf, MOST_FRAGMENT, readFragment } from "../src/link";
import type { State } from "../src/state";
import { DEFAULT } from "../src/state";

const view = { cases: [0, 1], open: "queue" } as State["view"];
const packed = (value: unknown): string => deflateRawSync(JSON.stringify(value)).toString("base64url");

test("a link holds knobs, a file, a scene", async () => {
  const states: State[] = [
    { knobs: { ...DEFAULT, rate: 3, queues: [DEFAULT.queues[1], { kind: "red", parameters: { max_p: 0.2 } }] }, view },
    { file: { name: "ä.toml", text: "name = 'ü'\n", files: { "a.trace": "1\n2\n" } }, view },
  ];
  for (const state of states) {
    const fragment = await fragmentOf(state);
    assert.match(fragment!, /^[kt]=[A-Za-z0-9_-]+$/);
    assert.deepEqual(await readFragment(fragment!), { kind: "state", state });
  }
  const scene: State = { file: { name: "a.toml", text: "", files: {} }, scene: "bufferbloat", view };
  assert.equal(await fragmentOf(scene), "scene=bufferbloat");
  assert.deepEqual(await readFragment("scene=bufferbloat"), { kind: "scene", name: "bufferbloat" });
  assert.deepEqual(await readFragment("file=x/a.toml&with=x/b.trace"), {
    kind: "file",
    path: "x/a.toml",
    others: ["x/b.trace"],
  });
  assert.deepEqual(await readFragment(""), { kind: "nothing" });
});

test("a file that is too large has no link", async () => {
  const text = randomBytes(100_000).toString("base64");
  assert.ok((await fragmentOf({ file: { name: "a", text, files: {} }, view })) === null);
});

test("what strangers put into a link is refused", async () => {
  const html = '<img src=x onerror="alert(1)">';
  const wrong: [string, RegExp][] = [
    ["k=%%%", /damaged/],
    ["k=AAAA", /damaged/],
    [`k=${"A".repeat(MOST_FRAGMENT)}`, /longer than/],
    [`t=${deflateRawSync(Buffer.alloc(10_000_000)).toString("base64url")}`, /unpacks to more than/],
    [`k=${packed(null)}`, /no state/],
    [`k=${packed({ knobs: { rate: 1e9 } })}`, /rate is 1000000000; accepted: 0.5 to 500/],
    [`k=${packed({ knobs: { rate: "1" } })}`, /rate is not a number/],
    [`k=${packed({ knobs: { [html]: 1 } })}`, /has no knob/],
    [`k=${packed({ knobs: { seed: 0.5 } })}`, /whole number/],
    [
      `k=${packed({ knobs: { queues: [{ kind: html, parameters: {} }, { kind: "red" }] } })}`,
      /queues.0.kind is none of/,
    ],
    [
      `k=${packed({ knobs: { queues: [{ kind: "red", parameters: { 'a" = 1 }': 1 } }, { kind: "red" }] } })}`,
      /key that no parameter has/,
    ],
    [
      `k=${packed({ knobs: { queues: [{ kind: "red", parameters: { min_th: "5\n[x]" } }, { kind: "red" }] } })}`,
      /not a number, a short text/,
    ],
    [
      `k=${packed({
        knobs: {
          downloads: [
            { flows: 51, tcp: "cubic" },
            { flows: 0, tcp: "bbr" },
          ],
        },
      })}`,
      /accepted: 0 to 50/,
    ],
    [`k=${packed({ knobs: { downloads: [] } })}`, /list of two/],
    [`t=${packed({ file: { name: "a", text: 1, files: {} } })}`, /no file/],
    [`t=${packed({ file: { name: "a", text: "", files: { a: 1 } } })}`, /trace that is no text/],
    ["scene=../../etc/passwd", /other signs/],
    ["file=../secret.toml", /not beside the page/],
    ["file=//elsewhere/a.toml", /not beside the page/],
    ["file=https:elsewhere", /not beside the page/],
    [`file=a.toml&${"with=b&".repeat(30)}`, /not beside the page/],
    ["hello", /nothing that the laboratory knows/],
  ];
  for (const [fragment, message] of wrong) {
    await assert.rejects(readFragment(fragment), message, fragment.slice(0, 80));
  }
});

test("prototypes cannot be reached by a link", async () => {
  const text =
    '{"knobs": {"__proto__": {"rate": 5}, "queues": [{"kind": "red", "parameters": {"constructor": 1}}, {"kind": "red"}]}}';
  await assert.rejects(readFragment(`k=${deflateRawSync(text).toString("base64url")}`), /no knob/);
  assert.equal(({} as { rate?: number }).rate, undefined);
});
