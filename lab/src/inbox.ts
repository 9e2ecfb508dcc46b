// Experiment files that people give: pasted, dropped, opened, or changed in the dialog. Nothing is read that is too large.

import { make, part } from "./dom";
import { MOST_FILE } from "./link";
import { download } from "./save";
import type { GivenFile } from "./state";

export interface Acts {
  run(text: string, files: Record<string, string>, name: string): void;
  refuse(message: string): void;
  copy(text: string, area: HTMLTextAreaElement): void;
}

/** Whether a pasted text may be TOML: a comment, a table or a key at the start of a line. */
const TOML = /^\s*(#|\[|[A-Za-z_"]+\s*=)/m;

export class Inbox {
  constructor(private readonly acts: Acts) {
    document.addEventListener("paste", (event) => {
      if (event.target instanceof HTMLElement && event.target.closest("input, textarea, select")) return;
      const text = event.clipboardData?.getData("text/plain") ?? "";
      if (!TOML.test(text.slice(0, 10_000))) return;
      event.preventDefault();
      this.take(text, {}, "pasted.toml");
    });
    document.addEventListener("dragover", (event) => event.preventDefault());
    document.addEventListener("drop", (event) => {
      event.preventDefault();
      const files = [...(event.dataTransfer?.files ?? [])];
      if (files.length) void this.takeFiles(files);
      else this.take(event.dataTransfer?.getData("text/plain") ?? "", {}, "dropped.toml");
    });
  }

  private take(text: string, files: Record<string, string>, name: string): void {
    const length = [text, ...Object.values(files)].reduce((sum, each) => sum + each.length, 0);
    if (length > MOST_FILE) {
      this.acts.refuse(`${name} has ${length} characters with its traces; accepted: up to ${MOST_FILE}`);
    } else this.acts.run(text, files, name);
  }

  /** An experiment file, and with it the traces that it names. */
  private async takeFiles(files: readonly File[]): Promise<void> {
    const main = files.find(({ name }) => name.endsWith(".toml"));
    if (!main) {
      const accepted = "a file that ends in .toml, and with it the traces that it names";
      this.acts.refuse(`${files[0]?.name ?? "it"} is no experiment file; accepted: ${accepted}`);
      return;
    }
    const size = files.reduce((sum, each) => sum + each.size, 0);
    if (size > MOST_FILE) {
      this.acts.refuse(`${main.name} has ${size} bytes with its traces; accepted: up to ${MOST_FILE}`);
      return;
    }
    const others = files.filter((each) => each !== main);
    const traces = await Promise.all(
      others.map(async (each): Promise<[string, string]> => [each.name, await each.text()]),
    );
    this.take(await main.text(), Object.fromEntries(traces), main.name);
  }

  /** The dialog with a file; a text that is changed runs with the traces of the file. */
  show({ name, text, files }: GivenFile): void {
    const place = part<HTMLDialogElement>("dialog");
    const area = make("textarea", { spellcheck: "false", autocomplete: "off", rows: 24, "data-part": "text" });
    area.setAttribute("aria-label", "Experiment file");
    area.value = text;
    const input = make("input", { type: "file", accept: ".toml,.trace,.txt,.csv", multiple: true, hidden: true });
    input.dataset.part = "open-file";
    input.addEventListener("change", () => {
      place.close();
      void this.takeFiles([...(input.files ?? [])]);
    });
    const button = (label: string, pressed: () => void, of: string) =>
      make("button", { type: "button", onclick: pressed, "data-part": of }, label);
    const run = (): void => {
      place.close();
      if (area.value !== text) this.take(area.value, files, name);
    };
    const save = (): void => download(name, new Blob([area.value], { type: "application/toml" }));
    place.replaceChildren(
      make("h2", { id: "dialog-head" }, "Experiment file"),
      make(
        "p",
        { class: "note" },
        `redtail run ${name} gives the same numbers. Paste another file here, or change this one, and run it.`,
      ),
      area,
      make(
        "div",
        { class: "controls" },
        button("Run this text", run, "run-text"),
        button("Copy as TOML", () => this.acts.copy(area.value, area), "copy-toml"),
        button("Save", save, "save-toml"),
        button("Open a file …", () => input.click(), "choose-file"),
        input,
        button("Close", () => place.close(), "close"),
      ),
    );
    place.showModal();
  }
}
