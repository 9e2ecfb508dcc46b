// Colours of flows: each its own while there are enough, else one for each group.

import type { Result } from "./contract";
import { css } from "./dom";

const COLOURS = 8;

export interface Palette {
  of(group: string, flow: number): string;
  /** What stands in the legend. */
  legend: { label: string; colour: string }[];
  by: "flow" | "group";
}

export const nameOf = (group: string): string => group.replaceAll("_", " ");

export function paletteOf(flows: Result["series"]["flows"]): Palette {
  const colours = Array.from({ length: COLOURS }, (_, i) => css(`--c${i}`));
  const groups = Object.keys(flows);
  const all = groups.flatMap((group) => Object.keys(flows[group]!).map((flow) => ({ group, flow: Number(flow) })));
  const by = all.length <= COLOURS ? "flow" : "group";
  const place = new Map<string, number>();
  const keys = by === "flow" ? all.map(({ group, flow }) => `${group} ${flow}`) : groups;
  keys.forEach((key, i) => {
    place.set(key, i);
  });
  const at = (group: string, flow: number): string => {
    const found = place.get(by === "flow" ? `${group} ${flow}` : group) ?? place.size;
    return colours[found % COLOURS]!;
  };
  const single = (group: string): boolean => Object.keys(flows[group]!).length === 1;
  const legend =
    by === "flow"
      ? all.map(({ group, flow }, i) => ({
          label: single(group)
            ? nameOf(group)
            : `${nameOf(group)} ${i - all.findIndex((each) => each.group === group) + 1}`,
          colour: at(group, flow),
        }))
      : groups.map((group) => ({
          label: `${nameOf(group)} (${Object.keys(flows[group]!).length})`,
          colour: at(group, 0),
        }));
  return { of: at, legend, by };
}
