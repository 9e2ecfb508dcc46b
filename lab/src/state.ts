// What the page shows, as data: either knobs, from which an experiment file is made, or a file that somebody gave.

/** A value of a parameter, as TOML has it: "5 ms", 0.1, true. */
export type Value = string | number | boolean;

/** One of the two queues. */
export interface QueueKnobs {
  /** Its kind in the experiment file, such as "fq-codel". */
  kind: string;
  /** Parameters that are not at their default, by name. `limit` is not among them: it is the buffer. */
  parameters: Record<string, Value>;
}

/** Bulk TCP flows with one congestion control. */
export interface FlowKnobs {
  flows: number;
  /** A preset of `redtail list tcp`. */
  tcp: string;
}

/** All that a person sets, in the units of the knobs. */
export interface Knobs {
  /** Rate of the link, Mbit/s. */
  rate: number;
  /** Propagation delay there and back, ms. */
  round_trip: number;
  /** Limit of both queues, as the time that the link takes to send it, ms. */
  buffer: number;
  /** Two groups of downloads; the second may have no flows. */
  downloads: [FlowKnobs, FlowKnobs];
  /** Telephone calls (G.711). */
  calls: number;
  /** Web users (HTTP/2 pages of today). */
  web_users: number;
  /** UDP at a constant rate, percent of the link's rate. */
  udp: number;
  /** Senders ask for marks in place of drops, and queues that can mark do. */
  ecn: boolean;
  /** Packets that the wire loses at random, percent. */
  loss: number;
  /** Simulated time, s. The first sixth of it is not measured (warm-up). */
  duration: number;
  seed: number;
  /** Runs of each queue with other random numbers, for intervals. */
  replications: number;
  queues: [QueueKnobs, QueueKnobs];
}

/** A file that somebody pasted, dropped or opened: it runs as it is. */
export interface GivenFile {
  name: string;
  text: string;
  /** Traces that it names, by their path in it. */
  files: Record<string, string>;
}

/** How the page looks, which a link holds too. */
export interface View {
  /** Cases that are shown, by their place in the file: left and right. */
  cases: [number, number];
  /** What opens first. */
  open: "queue" | "delay" | "flows" | "packets";
}

export type State = { view: View } & ({ knobs: Knobs } | { file: GivenFile; scene?: string });

/** The text of a scene, beside its experiment file: `scenes/NAME.json`. */
export interface Scene {
  title: string;
  /** One sentence. */
  summary: string;
  /** What to look for, five sentences. */
  look: string[];
  /** What a teacher would ask, with answers. */
  questions: { question: string; answer: string }[];
  /** Kinds of queues whose page in the documentation embeds the scene. */
  queues: string[];
  sources: string[];
  view: View["open"];
  /** Traces that the file names, as files beside it. */
  files?: string[];
  /** Metrics of the file that the table shows first, by name; without it the page chooses. */
  metrics?: string[];
  /** Where the slow motion begins, s. */
  packets_from?: number;
}

/** A home line: one download fills a buffer that is far too large, and a call suffers. */
export const DEFAULT: Knobs = {
  rate: 20,
  round_trip: 30,
  buffer: 250,
  downloads: [
    { flows: 2, tcp: "cubic" },
    { flows: 0, tcp: "bbr" },
  ],
  calls: 1,
  web_users: 0,
  udp: 0,
  ecn: false,
  loss: 0,
  duration: 30,
  seed: 1,
  replications: 10,
  queues: [
    { kind: "tail-drop", parameters: {} },
    { kind: "fq-codel", parameters: {} },
  ],
};
