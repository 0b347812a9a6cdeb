// The search box of the parity record: it shows each function of parity.json with its history, its examples' verdicts and the reports about it.
// Its address says what is shown: parity/?name=torch.distributed.barrier.
"use strict";

(() => {
  const MOST = 20; // functions that are shown at once
  const PASSES = ["pass", "ran, nothing claimed"];
  const FILTERS = {
    "": ["All functions", () => true],
    red: ["Example fails on the framework itself", (entry) => entry.examples.some((row) => fails(row.framework))],
    reported: ["With a report", (entry) => entry.reports.length > 0],
    changed: ["Signature changed", (entry) => entry.history.length > 1],
  };

  const box = document.getElementById("parity-search");
  if (!box) return;

  function element(tag, text, attributes = {}, ...children) {
    const made = document.createElement(tag);
    if (text) made.textContent = text;
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    made.append(...children);
    return made;
  }

  const options = Object.entries(FILTERS).map(([value, [text]]) => element("option", text, { value }));
  const input = element("input", "", { type: "search", placeholder: "A name, such as barrier", "aria-label": "Name" });
  const framework = element("select", "", { "aria-label": "Framework" }, element("option", "All frameworks", { value: "" }));
  const filter = element("select", "", { "aria-label": "Filter" }, ...options);
  const status = element("p", "", { role: "status" });
  const list = element("ul");
  const form = element("form", "", { role: "search" }, input, framework, filter);
  form.addEventListener("submit", (event) => event.preventDefault());
  box.append(form, status, list);

  fetch(box.dataset.rows).then((answer) => answer.json()).then(start);

  function start(data) {
    for (const name of Object.keys(data.releases)) framework.append(element("option", name, { value: name }));
    const asked = new URLSearchParams(location.search);
    input.value = asked.get("name") || "";
    framework.value = asked.get("framework") || "";
    filter.value = asked.get("filter") || "";
    for (const each of [input, framework, filter]) each.addEventListener("input", () => { show(data); remember(); });
    show(data);
  }

  function remember() {
    const asked = Object.entries({ name: input.value, framework: framework.value, filter: filter.value });
    const query = new URLSearchParams(asked.filter(([, value]) => value)).toString();
    history.replaceState(null, "", query ? `?${query}` : location.pathname);
  }

  function show(data) {
    const word = input.value.trim().toLowerCase();
    list.replaceChildren();
    status.textContent = "";
    if (!word && !filter.value) return;
    const found = data.names.filter((entry) => entry.name.toLowerCase().includes(word)
      && (!framework.value || entry.module.startsWith(framework.value)) && FILTERS[filter.value][1](entry));
    found.sort((a, b) => ends(b, word) - ends(a, word) || a.name.length - b.name.length);
    status.textContent = `${found.length} found` + (found.length > MOST ? `, of which the first ${MOST}` : "");
    list.append(...found.slice(0, MOST).map(described));
  }

  function ends(entry, word) {
    return `.${entry.name.toLowerCase()}`.endsWith(`.${word}`) ? 1 : 0;
  }

  function fails(told) {
    return Boolean(told.verdict) && !PASSES.includes(told.verdict);
  }

  function described(entry) {
    const module = `${entry.frontend}${entry.module.slice(entry.module.split(".")[0].length)}`.replace("shim.frontends.", "");
    const anchor = entry.name.split(".").pop().toLowerCase();
    const lines = entry.history.map((at) => element("li", `${at.release}: ${signature(at.signature)}`));
    for (const row of entry.examples) {
      const told = { [`${row.release} itself`]: row.framework, here: row.shim, ...row.columns };
      const verdicts = Object.entries(told).map(([where, each]) => `${where}: ${each.verdict || "not run"}`);
      lines.push(element("li", `Example: ${verdicts.join("; ")}`, fails(row.framework) ? { class: "red" } : {}));
    }
    for (const report of entry.reports) {
      const links = [element("a", report.title, { href: `../upstream/${report.name}/` })];
      if (report.upstream) links.push(" (", element("a", "known upstream", { href: report.upstream }), ")");
      lines.push(element("li", "Report: ", {}, ...links));
    }
    const title = element("a", "", { href: `${module}/#${anchor}` }, element("code", entry.name));
    return element("li", "", {}, title, ` in shim.frontends.${module}`, element("ul", "", {}, ...lines));
  }

  function signature(record) {
    return record === null ? "not there" : typeof record === "string" ? record : "a class";
  }
})();
