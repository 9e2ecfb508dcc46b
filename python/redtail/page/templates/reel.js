// The packets of the picture: decoded once, then asked what there is at a time. It draws nothing.
"use strict";
const reel = (() => {
  const SENT = 0, DROPPED = 1;
  const UNMARKED = 0, AT_ARRIVAL = 1;
  const STRIDE = 256;

  async function bytesOf(text) {
    const packed = Uint8Array.from(atob(text), (each) => each.charCodeAt(0));
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
    return new Uint8Array(await new Response(stream).arrayBuffer());
  }

  // Numbers without sign, seven bits a byte, the lowest first.
  function numbersOf(bytes) {
    let at = 0;
    return () => {
      let value = 0, scale = 1, byte;
      do {
        byte = bytes[at++];
        value += (byte & 127) * scale;
        scale *= 128;
      } while (byte > 127);
      return value;
    };
  }

  // The number of elements at or below a value, in ascending order.
  function upTo(sorted, value) {
    let low = 0, high = sorted.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (sorted[middle] <= value) low = middle + 1; else high = middle;
    }
    return low;
  }

  async function open(model) {
    const { count, base_s: base, tick_s: tick } = model.packets;
    const next = numbersOf(await bytesOf(model.packets.data));
    const column = (make) => { const found = make(count); for (let i = 0; i < count; i++) found[i] = next(); return found; };
    const floats = (size) => new Float64Array(size), words = (size) => new Uint32Array(size);
    const arrival = column(floats), out = column(floats), flow = column(words), bytes = column(words), code = column(words);
    let ticks = 0;
    for (let i = 0; i < count; i++) {
      ticks += arrival[i];
      arrival[i] = base + ticks * tick;
      out[i] = base + (ticks + out[i]) * tick;
    }
    const fate = new Uint8Array(count), mark = new Uint8Array(count), reason = new Uint16Array(count);
    code.forEach((value, i) => { fate[i] = value % 3; mark[i] = Math.floor(value / 3) % 3; reason[i] = Math.floor(value / 9); });
    const byOut = words(count).map((_, i) => i).sort((a, b) => out[a] - out[b] || a - b);
    const outs = floats(count).map((_, place) => out[byOut[place]]);
    const found = { model, count, arrival, out, flow, bytes, fate, mark, reason, byOut, outs };
    found.most = count ? bytes.reduce((a, b) => Math.max(a, b)) : 1;
    // The first packet that is still there when every so many-th arrives: nothing before it is looked at.
    const first = words(Math.floor(count / STRIDE) + 1);
    for (let block = 0, low = 0; block < first.length; block++) {
      const now = arrival[Math.min(count - 1, block * STRIDE)];
      while (low < count && out[low] <= now) low++;
      first[block] = low;
    }
    // Those that wait at this time, in the order of their arrival.
    found.waiting = (t, visit) => {
      const arrived = upTo(arrival, t);
      for (let i = first[Math.max(0, Math.floor((arrived - 1) / STRIDE))]; i < arrived; i++) if (out[i] > t) visit(i);
    };
    found.length = lengths(found);
    found.happened = happened(found);
    found.moments = floats(2 * count);
    found.moments.set(arrival);
    found.moments.set(outs, count);
    found.moments.sort();
    return found;
  }

  // The length of the queue as steps. What does not wait is not counted.
  function lengths({ count, arrival, out, outs, byOut }) {
    const waits = (i) => out[i] > arrival[i];
    const times = [], values = [];
    for (let came = 0, went = 0, length = 0; went < count;) {
      const comes = came < count && arrival[came] <= outs[went];
      const i = comes ? came : byOut[went];
      if (waits(i)) { times.push(comes ? arrival[i] : out[i]); values.push(length += comes ? 1 : -1); }
      if (comes) came++; else went++;
    }
    return { times: Float64Array.from(times), values: Float64Array.from(values) };
  }

  // Drops, marks and what flows tell, in the order of time: the packet, or the place of the flow's event.
  function happened(found) {
    const { model, count, arrival, out, fate, mark } = found;
    const rows = [];
    for (let i = 0; i < count; i++) {
      if (fate[i] === DROPPED) rows.push({ t: out[i], kind: "drop", packet: i });
      if (mark[i] !== UNMARKED) rows.push({ t: mark[i] === AT_ARRIVAL ? arrival[i] : out[i], kind: "mark", packet: i });
    }
    model.told.forEach(([t, kind, text, flow]) => rows.push({ t, kind, text, flow }));
    return rows.filter(({ t }) => t >= model.from_s && t <= model.to_s).sort((a, b) => a.t - b.t);
  }

  const isMarked = ({ mark, arrival, out }, i, t) => mark[i] !== UNMARKED && (mark[i] === AT_ARRIVAL ? arrival[i] : out[i]) <= t;

  return { SENT, DROPPED, bytesOf, upTo, open, isMarked };
})();
