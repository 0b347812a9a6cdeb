// The panel beside the table: one example's code, and what became of it in one column.

let opened = null; // the example in the panel, and the column's key

function openPanel(example, key) {
  opened = { example, key };
  const panel = find("panel");
  const body = find("panel-body");
  body.replaceChildren(...panelParts(example, key));
  body.scrollTop = 0;
  const place = shown.indexOf(example);
  find("panel-place").textContent = place < 0 ? "" : `${place + 1} of ${shown.length}`;
  find("before").disabled = place <= 0;
  find("after").disabled = place < 0 || place === shown.length - 1;
  if (!panel.open) panel.showModal();
  body.focus();
  history.replaceState(null, "", `#${encodeURIComponent(example.name)}/${encodeURIComponent(key)}`);
}

function panelParts(example, key) {
  const cell = example.cells[key];
  const title = make("h2", { id: "panel-title" }, ...nameParts(example.name));
  const ranks = `${example.ranks} rank${example.ranks === 1 ? "" : "s"}`;
  const { engine } = data.columns.find((column) => column.key === key);
  const facts = [example.place, ranks, ...(engine ? [`engine ${engine}`] : []), `${cell.seconds.toFixed(2)} s`];
  const about = make("p", { className: "dim" }, facts.join(" · "));
  const failed = new Set(cell.failures.map((failure) => failure.line));
  return [
    title,
    about,
    tabs(example, key),
    ...remarks(example, cell),
    ...failures(cell),
    make("h2", {}, "The example"),
    codeBlock(example.code, failed, cell.verdict),
    ...outputs(cell),
  ];
}

function tabs(example, key) {
  const buttons = data.columns.filter((column) => example.cells[column.key]).map((column) => {
    const verdict = verdictLabel("span", example.cells[column.key].verdict);
    const pressed = String(column.key === key);
    const button = make("button", { type: "button", "aria-pressed": pressed, "data-column": column.key }, column.title, verdict);
    button.addEventListener("click", () => openPanel(example, column.key));
    return button;
  });
  return make("div", { className: "tabs", role: "group", "aria-label": "Columns" }, ...buttons);
}

function remarks(example, cell) {
  const note = (text, verdict = null) => make("p", { className: "note", "data-verdict": verdict }, text);
  return [
    ...(cell.reason ? [note(`${cell.verdict}: ${cell.reason}`, cell.verdict)] : []),
    ...(cell.change ? [note(`Not as recorded: ${cell.change}`, "fail")] : []),
    ...example.notes.map((text) => note(text, "document wrong")),
    ...(cell.rules.length ? [note(`Changed for this machine: ${cell.rules.join("; ")}`)] : []),
  ];
}

function failures(cell) {
  return cell.failures.map((failure) => {
    const text = failure.text.trim();
    if (!text.includes("\n")) return make("p", { className: "note failure", "data-verdict": cell.verdict }, failure.summary);
    return make("details", { className: "note failure", "data-verdict": cell.verdict, open: cell.verdict === "fail" },
      make("summary", {}, failure.summary), make("pre", {}, text));
  });
}

function codeBlock(code, failed, verdict) {
  const lines = code.map(([number, text]) => {
    const mark = failed.has(number) && verdict === "fail";
    return make("div", { className: mark ? "failed" : "" }, make("i", {}, String(number)), make("span", {}, text));
  });
  return make("code", { className: "code", tabIndex: 0, "aria-label": "Code" }, ...lines);
}

function outputs(cell) {
  const title = make("h2", {}, "What is shown and what was seen");
  if (!cell.seen.length) return [title, make("p", { className: "dim" }, "The document shows no output that a rank came to.")];
  const table = make("table", { className: "outputs" });
  const heads = ["line", "on", "expected", "seen"].map((text) => make("th", { scope: "col" }, text));
  table.append(make("thead", {}, make("tr", {}, ...heads)), make("tbody", {}, ...cell.seen.map((seen) => outputRow(seen, cell.verdict))));
  return [title, table];
}

function outputRow(seen, verdict) {
  const text = (value) => (value === null ? make("span", { className: "dim" }, "nothing is said") : make("pre", { className: "output" }, value));
  const difference = seen.difference === null ? null : make("p", { className: "dim" }, seen.difference);
  return make("tr", { className: seen.difference === null ? "" : "differs", "data-verdict": seen.difference === null ? null : verdict },
    make("td", { className: "number" }, String(seen.line)), make("td", {}, inWords(seen.ranks)),
    make("td", {}, text(seen.shown)), make("td", {}, text(seen.seen), difference));
}

// To the next example in the table's order, in the same column where it has a verdict there.
function step(by) {
  const example = shown[shown.indexOf(opened.example) + by];
  if (example) openPanel(example, example.cells[opened.key] ? opened.key : Object.keys(example.cells)[0]);
}

function panelClosed() {
  const { example, key } = opened;
  history.replaceState(null, "", location.pathname + location.search);
  [...rows.get(example).querySelectorAll("button")].find((button) => button.dataset.column === key)?.focus();
}

function openFromAddress() {
  const [name, key] = location.hash.slice(1).split("/").map(decodeURIComponent);
  const example = data.examples.find((each) => each.name === name);
  if (example) openPanel(example, example.cells[key] ? key : Object.keys(example.cells)[0]);
}
