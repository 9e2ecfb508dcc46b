// Builds the page into ../target/lab, or with --tests the unit tests into ../target/lab-tests. ENGINE names the engine's
// module; --fake takes the one of the tests in place of it.
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const target = join(here, "..", "target");
const common = { bundle: true, target: "es2022", logLevel: "warning", absWorkingDir: here };

const FAKE = {
  name: "fake",
  setup: ({ onResolve }) => onResolve({ filter: /^\.\/wasm$/ }, () => ({ path: join(here, "tests", "fake_wasm.ts") })),
};

if (process.argv.includes("--tests")) {
  const out = join(target, "lab-tests");
  rmSync(out, { recursive: true, force: true });
  const tests = readdirSync(join(here, "tests")).filter((name) => name.endsWith(".test.ts"));
  await build({
    ...common,
    entryPoints: tests.map((name) => `tests/${name}`),
    outdir: out,
    platform: "node",
    format: "esm",
    outExtension: { ".js": ".mjs" },
    loader: { ".css": "empty" },
  });
} else {
  const fake = process.argv.includes("--fake");
  const out = process.env.OUT ?? join(target, "lab");
  const engine = process.env.ENGINE ?? join(target, "lab-engine", "redtail.wasm");
  if (!fake && !existsSync(engine)) {
    console.error(`there is no ${engine}: make lab-engine makes it`);
    process.exit(1);
  }
  rmSync(out, { recursive: true, force: true });
  mkdirSync(out, { recursive: true });
  await build({
    ...common,
    entryPoints: { lab: "src/main.ts", embed: "src/embed.ts", worker: "src/worker.ts" },
    outdir: out,
    platform: "browser",
    format: "iife",
    minify: true,
    legalComments: "eof",
    plugins: fake ? [FAKE] : [],
  });
  for (const page of ["index.html", "embed.html"]) {
    writeFileSync(join(out, page), readFileSync(join(here, "src", page)));
  }
  cpSync(join(here, "scenes"), join(out, "scenes"), { recursive: true });
  if (fake) writeFileSync(join(out, "redtail.wasm"), Uint8Array.from([0, 0x61, 0x73, 0x6d, 1, 0, 0, 0]));
  else cpSync(engine, join(out, "redtail.wasm"));
}
