import assert from "node:assert/strict";
import test from "node:test";
import { sharing, whyNoInterval } from "../src/rare";
import { DEFAULT } from "../src/state";
import { toToml } from "../src/toml";

const parameters = [{ name: "flows", type: "integer", default: 1024, doc: "" }];
const kinds = [{ kind: "fq-codel", title: "", parameters }];

// The numbers of the examples of python/redtail/analysis/rare.py.
test("pairs of flows that share a bucket", () => {
  const text = `[bottleneck]
queue = { kind = "tail-drop", limit = "9 packets" }
[[traffic]]
name = "ftp"
kind = "bulk"
flows = 16
[[traffic]]
name = "cbr"
kind = "cbr"
flows = 4
`;
  const found = sharing(text, { "bottleneck.queue": { kind: "fq-codel" } }, kinds);
  assert.deepEqual([...found.keys()].sort(), ["cbr.", "fairness", "ftp.fairness", "queue_delay_p50", "udp_loss"]);
  assert.equal(found.get("fairness")!.toFixed(3), "0.180");
  assert.equal(found.get("udp_loss")!.toFixed(3), "0.068");
  assert.equal(sharing(text, {}, kinds).size, 0);
  assert.equal(sharing(text, { "traffic.ftp.flows": 2 }, kinds).size, 0);
});

test("why there is no interval, in the words of redtail", () => {
  const none = () => [];
  assert.equal(whyNoInterval("ftp.ack_wait_max", new Map(), 10, none), "an extreme of each run");
  assert.equal(
    whyNoInterval("web.response_time_p99", new Map(), 10, () => [90, 110]),
    "about 1 of the responses in each run are beyond this quantile, too few",
  );
  const shared = new Map([["cbr.", 0.07]]);
  assert.equal(
    whyNoInterval("hop1.cbr.loss", shared, 10, none),
    "flows share a bucket of the queue too seldom, about 0.7 times in 10 replications",
  );
  assert.equal(whyNoInterval("hop1.cbr.loss", shared, 200, none), null);
  const call = sharing(toToml(DEFAULT, kinds), { "bottleneck.queue": { kind: "fq-codel" } }, kinds);
  assert.match(whyNoInterval("calls.mos", call, 10, none) ?? "", /too seldom/);
  assert.equal(whyNoInterval("downloads.goodput", call, 10, none), null);
});
