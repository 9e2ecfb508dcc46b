// The page in Firefox, over WebDriver BiDi: node firefox.mjs FIREFOX ADDRESS PICTURE. Prints what it saw as JSON.
// Playwright's Firefox is a build of its own, and Playwright 1.65 asks a Firefox of others for a command that Firefox ESR
// does not have; so the few commands that are needed are sent here. WebSocket is built into Node.js from 22 on.
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const [firefox, address, picture] = process.argv.slice(2);
const profile = mkdtempSync(join(tmpdir(), "redtail-firefox-"));
const browser = spawn(firefox, ["--headless", "--no-remote", "--profile", profile, "--remote-debugging-port", "0"], {
  stdio: ["ignore", "ignore", "pipe"],
});

try {
  console.log(JSON.stringify(await look(await listening())));
} finally {
  browser.kill();
  await new Promise((resolve) => (browser.exitCode === null ? browser.once("exit", resolve) : resolve()));
  rmSync(profile, { recursive: true, force: true, maxRetries: 5 });
}

/** The address at which the browser takes commands. */
function listening() {
  return new Promise((resolve, reject) => {
    let said = "";
    browser.stderr.on("data", (data) => {
      said += data;
      const found = /WebDriver BiDi listening on (ws:\S+)/.exec(said);
      if (found) resolve(found[1]);
    });
    browser.once("exit", () => reject(new Error(`Firefox ended: ${said}`)));
  });
}

async function look(commands) {
  const socket = new WebSocket(`${commands}/session`);
  await new Promise((resolve, reject) => {
    socket.onopen = resolve;
    socket.onerror = () => reject(new Error("Firefox takes no commands"));
  });
  const waiting = new Map();
  const seen = { asked: [], said: [] };
  socket.onmessage = ({ data }) => {
    const message = JSON.parse(data);
    if (message.method === "network.beforeRequestSent") seen.asked.push(message.params.request.url);
    else if (message.method === "log.entryAdded") seen.said.push(message.params.text);
    else if (message.type === "success") waiting.get(message.id).resolve(message.result);
    else if (message.type === "error") waiting.get(message.id).reject(new Error(message.message));
  };
  let last = 0;
  const send = (method, params) =>
    new Promise((resolve, reject) => {
      waiting.set(++last, { resolve, reject });
      socket.send(JSON.stringify({ id: last, method, params }));
    });
  await send("session.new", { capabilities: {} });
  await send("session.subscribe", { events: ["network.beforeRequestSent", "log.entryAdded"] });
  const [{ context }] = (await send("browsingContext.getTree", {})).contexts;
  await send("browsingContext.setViewport", { context, viewport: { width: 1280, height: 900 } });
  const evaluate = async (expression) => {
    const answer = await send("script.evaluate", { expression, target: { context }, awaitPromise: true });
    if (answer.type === "exception") throw new Error(answer.exceptionDetails.text);
    return JSON.parse(answer.result.value);
  };
  const until = async (expression) => {
    while (!(await evaluate(`JSON.stringify(${expression})`))) await new Promise((resolve) => setTimeout(resolve, 100));
  };
  const charts = () =>
    evaluate(`JSON.stringify([...document.querySelectorAll(".side canvas")].map((it) => it.toDataURL().length))`);
  await send("browsingContext.navigate", { context, url: address, wait: "complete" });
  await until(`document.body.dataset.done === "true"`);
  seen.charts = await charts();
  seen.runs = await evaluate(`JSON.stringify(document.querySelector("[data-part=runs]").textContent)`);
  const draws = await evaluate(`JSON.stringify(document.body.dataset.draws)`);
  await evaluate(`(() => {
    const slider = document.querySelector("[data-knob=buffer]");
    slider.value = String(Number(slider.value) - 5);
    slider.dispatchEvent(new Event("input"));
    return "null";
  })()`);
  await until(`document.body.dataset.draws !== ${JSON.stringify(draws)} && document.body.dataset.done === "true"`);
  seen.moved = await charts();
  await until(`location.hash.startsWith("#k=")`);
  seen.address = await evaluate("JSON.stringify(location.href)");
  const { data } = await send("browsingContext.captureScreenshot", { context });
  writeFileSync(picture, Buffer.from(data, "base64"));
  socket.close();
  return seen;
}
