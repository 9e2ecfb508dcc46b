// The scenes that lie beside the page. They are files of ours, but what they hold is still set as text.

import { MOST_FILE } from "./link";
import type { GivenFile, Scene } from "./state";

/** A text that lies beside the page. */
export async function fetchText(path: string, base: string): Promise<string> {
  const address = new URL(path, base);
  if (!address.href.startsWith(new URL(".", base).href)) throw new Error(`${path} is not beside the page`);
  const answer = await fetch(address, { credentials: "same-origin" });
  if (!answer.ok) throw new Error(`${path} could not be loaded: ${answer.status}`);
  const length = Number(answer.headers.get("content-length") ?? 0);
  if (length > MOST_FILE) throw new Error(`${path} has more than ${MOST_FILE} bytes`);
  const text = await answer.text();
  if (text.length > MOST_FILE) throw new Error(`${path} has more than ${MOST_FILE} characters`);
  return text;
}

export async function sceneNames(base: string): Promise<string[]> {
  return JSON.parse(await fetchText("scenes/index.json", base)) as string[];
}

export async function loadScene(name: string, base: string): Promise<{ scene: Scene; file: GivenFile }> {
  const [text, description] = await Promise.all([
    fetchText(`scenes/${name}.toml`, base),
    fetchText(`scenes/${name}.json`, base),
  ]);
  const scene = JSON.parse(description) as Scene;
  const files = await Promise.all(
    (scene.files ?? []).map(async (path): Promise<[string, string]> => [path, await fetchText(`scenes/${path}`, base)]),
  );
  return { scene, file: { name: `${name}.toml`, text, files: Object.fromEntries(files) } };
}

/** A file and its traces that `redtail explore` serves beside the page. Traces are named as from the file's folder. */
export async function loadFile(path: string, others: readonly string[], base: string): Promise<GivenFile> {
  const folder = path.slice(0, path.lastIndexOf("/") + 1);
  const text = await fetchText(path, base);
  const files = await Promise.all(
    others.map(
      async (other): Promise<[string, string]> => [
        other.startsWith(folder) ? other.slice(folder.length) : other,
        await fetchText(other, base),
      ],
    ),
  );
  return { name: path.slice(folder.length), text, files: Object.fromEntries(files) };
}
