// The page: what it is about, the counts, the filters, and what listens to what.

function showAbout() {
  const tensors = Object.entries(data.tensors).map(([kind, version]) => `${kind} ${version}`);
  const parts = [`shim ${data.shim}`, `Python ${data.python}`, ...tensors, data.platform, `${data.seconds.toFixed(1)} s`];
  find("about").textContent = parts.join(" · ");
  find("outcome").append(verdictLabel("span", data.passed ? "pass" : "fail", {}, data.passed ? "passed" : "not passed"));
}

function card(title, remark, counts, parts) {
  const all = Object.values(counts).reduce((sum, count) => sum + count, 0);
  const share = make("div", { className: "share", "aria-hidden": "true" });
  for (const [verdict, count] of Object.entries(counts)) {
    if (count) share.append(make("i", { "data-verdict": verdict, style: `flex:${count / all}` }));
  }
  const entry = ([name, count]) => make("div", { "data-verdict": name in counts && count ? name : null }, make("dt", {}, name), make("dd", {}, String(count)));
  return make("article", { className: "card" }, make("h2", {}, title, make("span", {}, remark)), share, make("dl", {}, ...parts.map(entry)));
}

const ALWAYS = ["pass", "document wrong", "not runnable here", "fail"];

function withAlways(counts) {
  return { ...Object.fromEntries(ALWAYS.map((verdict) => [verdict, 0])), ...counts };
}

function placeOf({ framework, side, tensors }) {
  if (side !== "shim") return "on itself";
  return tensors === framework ? "on shim" : `on shim, ${tensors}`;
}

function showCounts() {
  const cards = data.subjects.map((subject) => {
    const counts = withAlways(subject.verdicts);
    const parts = [["examples", subject.found], ["run", subject.run], ...Object.entries(counts)];
    if (subject.unseen.length) parts.push(["on record, not run", subject.unseen.length]);
    return card(`${subject.framework} ${subject.version}${subject.kind === "case" ? ", cases" : ""}`, placeOf(subject), counts, parts);
  });
  const cases = data.examples.filter((example) => example.kind === "case");
  if (cases.length) {
    const counts = {};
    const ours = data.columns.filter((column) => column.side === "shim" && cases.some((example) => column.key in example.cells));
    for (const example of cases) {
      for (const { verdict } of ours.map((column) => example.cells[column.key]).filter(Boolean)) counts[verdict] = (counts[verdict] || 0) + 1;
    }
    const kinds = [...new Set(ours.map((column) => column.tensors))];
    const all = withAlways(counts);
    cards.push(card("our own cases", `on shim, ${kinds.join(", ")}`, all, [["cases", cases.length], ...Object.entries(all).filter(([name, count]) => count || name === "fail")]));
  }
  find("counts").replaceChildren(...cards);
}

function showFilters() {
  for (const name of ["framework", "kind"]) {
    const values = new Set(data.examples.map((example) => example[name]));
    find(name).append(...[...values].map((value) => make("option", { value }, value)));
    find(name).hidden = values.size < 2;
  }
  const present = new Set(data.examples.flatMap((example) => Object.values(example.cells).map((cell) => cell.verdict)));
  for (const verdict of data.verdicts.filter((each) => present.has(each))) {
    const chip = verdictLabel("button", verdict, { type: "button", "aria-pressed": "true" });
    chip.classList.add("chip");
    chip.addEventListener("click", () => {
      if (!chosen.verdicts.delete(verdict)) chosen.verdicts.add(verdict);
      showChips();
      showTable();
    });
    find("verdicts").append(chip);
  }
  find("apart-label").hidden = data.columns.length < 2;
}

function showChips() {
  for (const chip of find("verdicts").querySelectorAll("button")) {
    chip.setAttribute("aria-pressed", String(!chosen.verdicts.size || chosen.verdicts.has(chip.dataset.verdict)));
  }
}

function readFilters() {
  chosen.text = find("search").value.trim();
  chosen.framework = find("framework").value;
  chosen.kind = find("kind").value;
  chosen.apart = find("apart").checked;
  showTable();
}

function listen() {
  find("filters").addEventListener("input", readFilters);
  find("filters").addEventListener("submit", (event) => event.preventDefault());
  find("filters").addEventListener("reset", () => {
    chosen.verdicts.clear();
    chosen.column = "";
    showChips();
    setTimeout(readFilters); // after the fields are reset
  });
  find("rows").addEventListener("keydown", moveFocus);
  find("before").addEventListener("click", () => step(-1));
  find("after").addEventListener("click", () => step(1));
  find("close").addEventListener("click", () => find("panel").close());
  find("panel").addEventListener("close", panelClosed);
  find("panel").addEventListener("click", (event) => { if (event.target === find("panel")) find("panel").close(); });
  window.addEventListener("hashchange", openFromAddress);
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (find("panel").open) {
      if (event.key === "j") step(1);
      if (event.key === "k") step(-1);
    } else if (event.key === "/" && !event.target.closest("input, select")) {
      event.preventDefault();
      find("search").focus();
    }
  });
}

showAbout();
showCounts();
showFilters();
showHeads();
showTable();
listen();
openFromAddress();
