// The search box of the page on support: it finds a name in support.json, and says what of it is there, how, and why not.
"use strict";

(() => {
  const MOST = 40; // names that are shown at once
  const STATES = { communicates: "there", there: "there", refused: "refused", absent: "not there" };

  const box = document.getElementById("support-search");
  if (!box) return;

  function element(tag, text, attributes = {}) {
    const made = document.createElement(tag);
    if (text) made.textContent = text;
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    return made;
  }

  const form = element("form", "", { role: "search" });
  const input = element("input", "", { type: "search", placeholder: "A name, such as alltoall_single", "aria-label": "Name" });
  const select = element("select", "", { "aria-label": "Framework" });
  const status = element("p", "", { role: "status" });
  const list = element("ul");
  form.append(input, select);
  box.append(form, status, list);
  form.addEventListener("submit", (event) => event.preventDefault());

  fetch(box.dataset.rows).then((answer) => answer.json()).then(start);

  function start(data) {
    select.append(element("option", "All frameworks", { value: "" }));
    for (const [frontend, version] of Object.entries(data.frontends)) {
      select.append(element("option", version, { value: frontend }));
    }
    const asked = new URLSearchParams(location.search);
    input.value = asked.get("name") || "";
    select.value = asked.get("frontend") || "";
    input.addEventListener("input", () => show(data));
    select.addEventListener("change", () => show(data));
    show(data);
  }

  function show(data) {
    // dist.all_gather, torch.distributed.all_gather and paddle.distributed.all_gather are searched for, too: what is before the last dot has
    // to be in the module's name, in which Paddle's version counts only where it is given.
    const words = input.value.trim().toLowerCase().split(".");
    const name = words.pop();
    const place = words.join(".").replace(/^dist$/, "distributed");
    list.replaceChildren();
    status.textContent = "";
    if (!name) return;
    const found = data.names.filter(
      (row) => row.name.toLowerCase().includes(name) && inModule(row.module, place) && of(select.value, row));
    found.sort((a, b) => rank(a, name) - rank(b, name));
    status.textContent = found.length
      ? `${found.length} found` + (found.length > MOST ? `, of which the first ${MOST}` : "")
      : "No frontend has a name like this. Importing it raises an error that says where it may be.";
    for (const row of found.slice(0, MOST)) list.append(described(row, data));
  }

  function inModule(module, place) {
    return module.includes(place) || module.replace(/paddle_\d/, "paddle").includes(place);
  }

  function of(frontend, row) {
    return !frontend || row.module === frontend || row.module.startsWith(frontend + ".");
  }

  function rank(row, name) {
    // An exact name first; then those that begin so; of equal ones that in the shorter module.
    const own = row.name.toLowerCase();
    return (own === name ? 0 : own.startsWith(name) ? 1000 : 2000) + row.module.length;
  }

  function described(row, data) {
    const item = element("li");
    const path = `${row.module}.${row.name}`;
    const isThere = STATES[row.state] === "there";
    const title = isThere ? element("a", "", { href: `${box.dataset.reference}${row.module}/#${path}` }) : element("span");
    title.append(element("code", path));
    item.append(title, " ", element("span", STATES[row.state], { class: `state ${row.state}` }), " ");
    // What the docstrings mark, *parameters* and `code`, is shown as code.
    sentences(row, data).join(" ").split(/[*`]+([^*`]+)[*`]+/).forEach(
      (part, index) => item.append(index % 2 ? element("code", part) : part));
    return item;
  }

  function sentences(row, data) {
    if (row.state === "refused") return [`raises UnsupportedError: ${row.why}.`];
    if (row.state === "absent") return [`because it ${row.why}.`, row.instead || ""];
    const used = row.collectives ? `uses ${row.collectives.join(", ")}${engines(row, data)}.` : "uses no collective.";
    return row.differs ? [used, `Differs: ${row.differs}`] : [used];
  }

  function engines(row, data) {
    // The engine called plain has nothing but defaults: it is a reference for tests.
    const lacking = Object.keys(data.engines).filter(
      (engine) => engine !== "plain" && row.collectives.some((collective) => !data.engines[engine].includes(collective)));
    return lacking.length ? `; on ${lacking.join(", ")} by the default` : "";
  }
})();
