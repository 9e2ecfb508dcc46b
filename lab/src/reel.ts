// Packets of a queue in a short window: from events to packets, and what waits at a time.

import type { PacketEvents } from "./contract";

export const SENT = 0;
export const DROPPED = 1;
/** Still waits when the window ends. */
export const INSIDE = 2;

export interface Reel {
  from_s: number;
  to_s: number;
  count: number;
  arrival: Float64Array;
  /** When it left the queue or was dropped; Infinity if it waits at the end. */
  out: Float64Array;
  group: Uint32Array;
  flow: Uint32Array;
  size: Float64Array;
  fate: Uint8Array;
  /** When it was marked; Infinity if never. */
  mark: Float64Array;
  groups: string[];
  /** Packets in the order in which they go out, and when. */
  byOut: Uint32Array;
  outs: Float64Array;
  /** Times of arrivals and departures in order. */
  moments: Float64Array;
  /** Drops and marks in order. */
  happenings: { time_s: number; kind: "drop" | "mark"; packet: number }[];
  mostWaiting: number;
  mostSize: number;
}

/** The number of elements at or below a value, in ascending order. */
export function upTo(sorted: ArrayLike<number>, value: number): number {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle]! <= value) low = middle + 1;
    else high = middle;
  }
  return low;
}

const [ARRIVAL, DEPARTURE, DROP, MARK] = [0, 1, 2, 3];

interface Packet {
  arrival: number;
  out: number;
  group: number;
  flow: number;
  size: number;
  fate: number;
  mark: number;
}

/** A packet whose arrival lies before the window waits from its start. */
export function reelOf(events: PacketEvents, from_s: number, to_s: number): Reel {
  const packets: Packet[] = [];
  const waiting = new Map<number, Packet>();
  for (let i = 0; i < events.time_s.length; i++) {
    const time = events.time_s[i]!;
    const kind = events.kind[i]!;
    const id = events.id[i]!;
    let packet = kind === ARRIVAL ? undefined : waiting.get(id);
    if (!packet) {
      packet = {
        arrival: kind === ARRIVAL || kind === DROP ? time : from_s,
        out: Number.POSITIVE_INFINITY,
        group: events.group[i]!,
        flow: events.flow[i]!,
        size: events.size[i]!,
        fate: INSIDE,
        mark: Number.POSITIVE_INFINITY,
      };
      packets.push(packet);
      waiting.set(id, packet);
    }
    if (kind === MARK) packet.mark = time;
    if (kind === DEPARTURE || kind === DROP) {
      packet.out = time;
      packet.fate = kind === DROP ? DROPPED : SENT;
      waiting.delete(id);
    }
  }
  packets.sort((a, b) => a.arrival - b.arrival || a.out - b.out);
  const count = packets.length;
  const column = <Kind extends Float64Array | Uint32Array | Uint8Array>(made: Kind, of: (packet: Packet) => number) => {
    packets.forEach((packet, i) => {
      made[i] = of(packet);
    });
    return made;
  };
  const arrival = column(new Float64Array(count), (packet) => packet.arrival);
  const out = column(new Float64Array(count), (packet) => packet.out);
  const byOut = new Uint32Array(count).map((_, i) => i).sort((a, b) => out[a]! - out[b]! || a - b);
  const outs = new Float64Array(count).map((_, i) => out[byOut[i]!]!);
  const ended = upTo(outs, Number.MAX_VALUE);
  const moments = new Float64Array(count + ended);
  moments.set(arrival);
  moments.set(outs.subarray(0, ended), count);
  moments.sort();
  const happenings = packets
    .flatMap((packet, i): Reel["happenings"] => [
      ...(packet.fate === DROPPED ? [{ time_s: packet.out, kind: "drop" as const, packet: i }] : []),
      ...(packet.mark < Number.POSITIVE_INFINITY ? [{ time_s: packet.mark, kind: "mark" as const, packet: i }] : []),
    ])
    .sort((a, b) => a.time_s - b.time_s);
  let mostWaiting = 0;
  for (let came = 0, went = 0; came < count; came++) {
    while (went < count && outs[went]! <= arrival[came]!) went++;
    mostWaiting = Math.max(mostWaiting, came + 1 - went);
  }
  return {
    from_s,
    to_s,
    count,
    arrival,
    out,
    group: column(new Uint32Array(count), (packet) => packet.group),
    flow: column(new Uint32Array(count), (packet) => packet.flow),
    size: column(new Float64Array(count), (packet) => packet.size),
    fate: column(new Uint8Array(count), (packet) => packet.fate),
    mark: column(new Float64Array(count), (packet) => packet.mark),
    groups: events.groups,
    byOut,
    outs,
    moments,
    happenings,
    mostWaiting,
    mostSize: packets.reduce((most, { size }) => Math.max(most, size), 1),
  };
}

/** What waits at a time, in the order in which it will go out. */
export function waitingAt(reel: Reel, t: number): number[] {
  const found: number[] = [];
  for (let place = upTo(reel.outs, t); place < reel.count; place++) {
    const i = reel.byOut[place]!;
    if (reel.arrival[i]! <= t) found.push(i);
    // What goes out much later than all that has come is not there yet.
    else if (reel.arrival[i]! > t && found.length > reel.mostWaiting) break;
  }
  return found;
}
