import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";

// The tests are run in the folder of the page.
const css = readFileSync("src/lab.css", "utf8");

/** Variables of the block that follows a text. */
function variables(after: string): Record<string, string> {
  const block = /:root \{([^}]*)\}/.exec(css.slice(css.indexOf(after)))![1]!;
  return Object.fromEntries([...block.matchAll(/--([a-z0-9-]+): (#[0-9a-f]{6})/g)].map((each) => [each[1]!, each[2]!]));
}

/** Relative luminance (WCAG 2.2). */
function luminance(colour: string): number {
  const [red, green, blue] = [1, 3, 5].map((at) => {
    const part = Number.parseInt(colour.slice(at, at + 2), 16) / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  }) as [number, number, number];
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

function contrast(one: string, other: string): number {
  const [dark, light] = [luminance(one), luminance(other)].sort((a, b) => a - b) as [number, number];
  return (light + 0.05) / (dark + 0.05);
}

for (const [theme, after] of [
  ["light", ":root {"],
  ["dark", "prefers-color-scheme: dark"],
] as const) {
  const of = variables(after);
  test(`texts have a contrast of 4.5, and what is drawn one of 3 (WCAG AA), ${theme}`, () => {
    for (const ground of ["page", "card"]) {
      for (const text of ["text", "soft", "accent", "a", "b", "bad", "focus"]) {
        assert.ok(
          contrast(of[text]!, of[ground]!) >= 4.5,
          `--${text} on --${ground}: ${contrast(of[text]!, of[ground]!)}`,
        );
      }
    }
    assert.ok(contrast(of.text!, of["accent-soft"]!) >= 4.5);
    for (const drawn of ["c0", "c1", "c2", "c3", "c4", "c5", "c6", "c7", "warn-line"]) {
      assert.ok(contrast(of[drawn]!, of.card!) >= 3, `--${drawn}: ${contrast(of[drawn]!, of.card!)}`);
    }
  });
}
