// A link that holds the whole state in its fragment: knobs as JSON, a file deflated, both in base64url. What comes in a
// link is data of strangers: its length is bounded, packed and unpacked, and every value is checked.

import { readKnobs, readView } from "./knobs";
import type { GivenFile, State } from "./state";

/** Characters of a fragment. */
export const MOST_FRAGMENT = 64_000;
/** Bytes of a file with its traces; the engine has a limit of its own. */
export const MOST_FILE = 1_000_000;

/** What a fragment asks for. */
export type Asked =
  | { kind: "nothing" }
  | { kind: "state"; state: State }
  | { kind: "scene"; name: string }
  | { kind: "file"; path: string; others: string[] };

const toText = (bytes: Uint8Array): string => {
  let text = "";
  for (let at = 0; at < bytes.length; at += 8192) text += String.fromCharCode(...bytes.subarray(at, at + 8192));
  return btoa(text).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
};

const toBytes = (text: string): Uint8Array =>
  Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (each) => each.charCodeAt(0));

async function through(bytes: Uint8Array, stream: CompressionStream | DecompressionStream): Promise<Uint8Array> {
  const reader = new Blob([bytes as BlobPart]).stream().pipeThrough(stream).getReader();
  const parts: Uint8Array[] = [];
  let length = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    length += value.length;
    if (length > MOST_FILE) {
      await reader.cancel();
      throw new Error(`the link unpacks to more than ${MOST_FILE} bytes`);
    }
    parts.push(value);
  }
  const whole = new Uint8Array(length);
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

const pack = async (value: unknown): Promise<string> =>
  toText(await through(new TextEncoder().encode(JSON.stringify(value)), new CompressionStream("deflate-raw")));

const unpack = async (text: string): Promise<unknown> =>
  JSON.parse(
    new TextDecoder("utf-8", { fatal: true }).decode(
      await through(toBytes(text), new DecompressionStream("deflate-raw")),
    ),
  );

/** The fragment of a state, without "#". A state that is too large for a link gives null. */
export async function fragmentOf(state: State): Promise<string | null> {
  const made =
    "knobs" in state
      ? `k=${await pack({ knobs: state.knobs, view: state.view })}`
      : state.scene && state.view.cases[0] === 0 && state.view.cases[1] === 1
        ? `scene=${state.scene}`
        : `t=${await pack({ file: state.file, view: state.view })}`;
  return made.length <= MOST_FRAGMENT ? made : null;
}

function readFile(value: unknown): GivenFile {
  const { name, text, files } = (value ?? {}) as Partial<Record<keyof GivenFile, unknown>>;
  if (typeof name !== "string" || name.length > 200 || typeof text !== "string")
    throw new Error("the link has no file");
  if (typeof files !== "object" || files === null || Array.isArray(files))
    throw new Error("the link has no table of traces");
  const traces = Object.entries(files);
  if (traces.some(([path, each]) => path.length > 200 || typeof each !== "string")) {
    throw new Error("the link has a trace that is no text");
  }
  return { name, text, files: Object.fromEntries(traces) as Record<string, string> };
}

const PATH = /^[A-Za-z0-9_-][A-Za-z0-9._-]*(\/[A-Za-z0-9_-][A-Za-z0-9._-]*){0,4}$/;

/** What a fragment, without "#", asks for. Throws an Error that says what is wrong with it. */
export async function readFragment(fragment: string): Promise<Asked> {
  if (fragment === "") return { kind: "nothing" };
  if (fragment.length > MOST_FRAGMENT) throw new Error(`the link is longer than ${MOST_FRAGMENT} characters`);
  const given = new URLSearchParams(fragment);
  const scene = given.get("scene");
  if (scene !== null) {
    if (!/^[a-z0-9-]{1,60}$/.test(scene)) throw new Error("the link names a scene by other signs than a-z, 0-9 and -");
    return { kind: "scene", name: scene };
  }
  const path = given.get("file");
  if (path !== null) {
    const others = given.getAll("with");
    if (others.length > 20 || ![path, ...others].every((each) => PATH.test(each))) {
      throw new Error("the link names a file that is not beside the page");
    }
    return { kind: "file", path, others };
  }
  const [kind, packed] = given.has("k") ? ["k", given.get("k")] : ["t", given.get("t")];
  if (!packed) throw new Error("the link asks for nothing that the laboratory knows");
  let value: { knobs?: unknown; file?: unknown; view?: unknown };
  try {
    value = (await unpack(packed)) as typeof value;
  } catch (fault) {
    throw fault instanceof Error && fault.message.startsWith("the link")
      ? fault
      : new Error("the link is damaged: it cannot be unpacked");
  }
  if (typeof value !== "object" || value === null) throw new Error("the link holds no state");
  const view = readView(value.view);
  if (kind === "k") return { kind: "state", state: { knobs: readKnobs(value.knobs), view } };
  return { kind: "state", state: { file: readFile(value.file), view } };
}
