// Making elements. Text only ever becomes text: nothing in an example can become markup.
"use strict";

const find = (id) => document.getElementById(id);
const data = JSON.parse(find("data").textContent);

function make(name, properties = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (key in element && !key.includes("-")) element[key] = value;
    else element.setAttribute(key, value);
  }
  element.append(...children.filter((child) => child !== null));
  return element;
}

const SIGNS = { "pass": "✓", "ran, nothing claimed": "○", "fail": "✗", "document wrong": "✎", "not runnable here": "–", "not applicable": "·" };

function verdictLabel(name, verdict, properties = {}, text = verdict) {
  const sign = make("span", { "aria-hidden": "true" }, SIGNS[verdict] || "!");
  return make(name, { className: "verdict", "data-verdict": verdict, ...properties }, sign, text);
}

// The function's name stands out from the modules before it and the number or case behind it.
function nameParts(name) {
  const [, modules, label, rest] = name.match(/^(.*?\.)?([^.#:]*)([#:].*)?$/s);
  return [make("span", {}, ...breakable(modules || "")), make("b", {}, ...breakable(label)), make("span", {}, rest || "")];
}

// A name may go on in the next line behind a dot or an underscore.
function breakable(text) {
  return text.split(/(?<=[._])/).flatMap((part) => [part, make("wbr")]);
}

function inWords(ranks) {
  if (!ranks.length) return "the program";
  return ranks.length > 1 ? `ranks ${ranks.join(", ")}` : `rank ${ranks[0]}`;
}
