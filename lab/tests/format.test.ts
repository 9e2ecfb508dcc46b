import assert from "node:assert/strict";
import test from "node:test";
import { line, told, unitFor, verdict } from "../src/format";
import { field } from "../src/save";

const ms = { text: "ms", scale: 1e-3 };
const none = { text: "", scale: 1 };

test("a value has no more digits than its interval carries", () => {
  assert.equal(line(told({ mean: 0.2463456, half_width: 0.0058 }, ms)), "246 ± 6 ms");
  assert.equal(line(told({ mean: 0.2463456, half_width: 0.00173 }, ms)), "246.3 ± 1.7 ms");
  assert.equal(line(told({ mean: 4.33012, half_width: 0.02 }, none)), "4.33 ± 0.02");
  assert.equal(line(told({ mean: 4.35721, half_width: 0.00002 }, none)), "4.357 ± < 0.001");
  assert.equal(line(told({ mean: 12_345, half_width: 678 }, none)), "12345 ± 678");
});

test("one run is said to be one", () => {
  const one = told({ mean: 0.2463456, why: "one run" }, ms);
  assert.deepEqual([line(one), one.note, one.sure], ["250 ms", "one run", false]);
  assert.equal(told({ mean: null, why: "not measured" }, ms).value, "–");
});

test("a difference is told only where its interval leaves out 0", () => {
  assert.equal(line(verdict({ mean: -0.2, half_width: 0.01 }, ms)), "lower by 200 ± 10 ms");
  assert.equal(line(verdict({ mean: 0.0123, half_width: 0.001 }, ms)), "higher by 12.3 ± 1.0 ms");
  assert.equal(line(verdict({ mean: -0.2, half_width: 0.2 }, ms)), "undecided");
  assert.equal(line(verdict({ mean: -0.2, why: "one run" }, ms)), "undecided");
  assert.equal(line(verdict({ mean: 0, why: "one run" }, ms)), "undecided");
  assert.equal(line(verdict({ mean: 0, why: "all 10 replications are 0" }, ms)), "equal");
});

test("units are those in which the larger value reads well", () => {
  assert.equal(unitFor("s", 0.0021, 0.3).text, "ms");
  assert.equal(unitFor("bit/s", null, 18e6).text, "Mbit/s");
  assert.equal(unitFor("s", null, null).text, "µs");
});

test("a spreadsheet takes no text for a formula", () => {
  assert.equal(field("=1+1"), "'=1+1");
  assert.equal(field('a,"b"'), '"a,""b"""');
  assert.equal(field(Number.NaN), "");
});
