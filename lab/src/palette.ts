// Colours of flows: each its own while there are enough, else one for each group.

import type { Result } from "./contract";
import { css } from "./dom";

const COLOURS = 8;
/** The series of a group without series of its flows. */
export const WHOLE = "all";

export interface Palette {
  of(group: string, flow: string): string;
  /** What stands in the legend. */
  legend: { label: string; colour: string }[];
  by: "flow" | "group";
}

export const nameOf = (group: string): string => group.replaceAll("_", " ");

export function paletteOf(flows: Result["series"]["flows"]): Palette {
  const colours = Array.from({ length: COLOURS }, (_, i) => css(`--c${i}`));
  const groups = Object.keys(flows);
  const all = groups.flatMap((group) => Object.keys(flows[group]!).map((flow) => ({ group, flow })));
  const by = all.length <= COLOURS ? "flow" : "group";
  const place = new Map<string, number>();
  const keys = by === "flow" ? all.map(({ group, flow }) => `${group} ${flow}`) : groups;
  keys.forEach((key, i) => {
    place.set(key, i);
  });
  const at = (group: string, flow: string): string => {
    const found =
      place.get(by === "group" ? group : `${group} ${flow}`) ?? place.get(`${group} ${WHOLE}`) ?? place.size;
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
          label: single(group) ? nameOf(group) : `${nameOf(group)} (${Object.keys(flows[group]!).length})`,
          colour: at(group, WHOLE),
        }));
  return { of: at, legend, by };
}
