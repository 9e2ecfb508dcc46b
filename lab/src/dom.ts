// Elements with attributes, handlers and children. Texts are set as texts, never as HTML.

type Given = Record<string, string | number | boolean | null | undefined | ((event: Event) => void)>;

export function make<Tag extends keyof HTMLElementTagNameMap>(
  tag: Tag,
  given: Given = {},
  ...children: (Node | string)[]
): HTMLElementTagNameMap[Tag] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(given)) {
    if (typeof value === "function") element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, String(value));
  }
  element.append(...children);
  return element;
}

export const css = (name: string): string => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/** The element with this `data-part`. */
export function part<Kind extends HTMLElement = HTMLElement>(name: string, within: ParentNode = document): Kind {
  const found = within.querySelector<Kind>(`[data-part="${name}"]`);
  if (!found) throw new Error(`the page has no part "${name}"`);
  return found;
}

let count = 0;
export const freshId = (): string => `control-${++count}`;

export function menu(
  label: string,
  options: [value: string, text: string][],
  value: string,
  chosen: (value: string) => void,
  given: Given = {},
): HTMLElement {
  const id = freshId();
  const select = make("select", { id, onchange: () => chosen(select.value), ...given });
  for (const [each, text] of options) select.append(make("option", { value: each }, text));
  select.value = value;
  return make("span", { class: "control" }, make("label", { for: id }, label), select);
}
