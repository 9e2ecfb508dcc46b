// What the scripts of all pages share: elements, colours of the style, and light and dark.
// Texts are set as texts, never as HTML.
"use strict";
const elements = (() => {
  const known = (value) => value !== null && value !== undefined;
  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  // An element with attributes, event handlers and children; a child that is a text is a text.
  function make(tag, given = {}, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(given)) {
      if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
      else if (value === true) element.setAttribute(name, "");
      else if (value !== false && known(value)) element.setAttribute(name, value);
    }
    element.append(...children);
    return element;
  }

  let controls = 0;
  // A menu with a label. Options are [value, text], or [group, [options]].
  function menu(text, options, value, chosen, name) {
    const id = `control-${++controls}`;
    const select = make("select", { id, "data-name": name, onchange: () => chosen(select.value) });
    const option = ([value, text]) => make("option", { value }, text);
    for (const each of options) {
      if (Array.isArray(each[1])) {
        select.append(make("optgroup", { label: each[0] }, ...each[1].map(option)));
      } else select.append(option(each));
    }
    select.value = String(value);
    return make("span", { class: "control" }, make("label", { for: id }, text), select);
  }

  function tick(text, value, chosen, name) {
    const box = make("input", { type: "checkbox", checked: value, "data-name": name, onchange: () => chosen(box.checked) });
    return make("label", { class: "control tick" }, box, text);
  }

  const button = (text, label, pressed) =>
    make("button", { type: "button", "aria-label": label, title: label, onclick: pressed }, text);

  // The button that changes between light and dark; `changed` draws anew what has colours of its own.
  function lightAndDark(changed) {
    const dark = window.matchMedia("(prefers-color-scheme: dark)");
    const theme = document.getElementById("theme");
    const chosenDark = () => (document.documentElement.dataset.theme ?? (dark.matches ? "dark" : "light")) === "dark";
    const named = () => {
      theme.textContent = chosenDark() ? "Light" : "Dark";
      theme.setAttribute("aria-pressed", String(chosenDark()));
    };
    theme.hidden = false;
    theme.addEventListener("click", () => {
      document.documentElement.dataset.theme = chosenDark() ? "light" : "dark";
      named();
      changed();
    });
    dark.addEventListener("change", () => { named(); changed(); });
    named();
  }

  return { known, css, make, menu, tick, button, lightAndDark };
})();
