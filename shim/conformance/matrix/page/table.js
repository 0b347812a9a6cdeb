// The table: which examples are shown, in which order, and moving about in it with the keyboard.

const chosen = { text: "", framework: "", kind: "", verdicts: new Set(), apart: false, column: "", down: true };
let shown = [];

const FIXED = [
  { key: "name", title: "Example", of: (example) => example.name },
  { key: "framework", title: "Framework", of: (example) => example.framework },
  { key: "ranks", title: "Ranks", of: (example) => example.ranks },
];
// Sorted by a column of verdicts, what needs attention comes first and examples without one come last.
const URGENCY = ["fail", "crashes", "hangs", "unsupported on this backend", "document wrong", "not runnable here", "ran, nothing claimed", "pass", "not applicable"];
const VERDICTS = data.columns.map((column) => ({
  key: column.key,
  title: column.title,
  of: (example) => (example.cells[column.key] ? URGENCY.indexOf(example.cells[column.key].verdict) : URGENCY.length),
}));
const COLUMNS = [...FIXED, ...VERDICTS];

const texts = new Map(data.examples.map((example) => [example, textOf(example)]));

function textOf(example) {
  const cells = Object.values(example.cells);
  const outputs = cells.flatMap((cell) => cell.seen.flatMap((seen) => [seen.shown, seen.seen]));
  const failures = cells.flatMap((cell) => [cell.reason, cell.change, ...cell.failures.map((each) => each.text)]);
  const code = example.code.map(([, line]) => line);
  return [example.name, example.place, ...example.notes, ...code, ...outputs, ...failures].join("\n").toLowerCase();
}

function isShown(example) {
  const verdicts = Object.values(example.cells).map((cell) => cell.verdict);
  return (
    (!chosen.framework || example.framework === chosen.framework) &&
    (!chosen.kind || example.kind === chosen.kind) &&
    (!chosen.verdicts.size || verdicts.some((verdict) => chosen.verdicts.has(verdict))) &&
    (!chosen.apart || new Set(verdicts).size > 1) &&
    chosen.text.toLowerCase().split(/\s+/).every((word) => texts.get(example).includes(word))
  );
}

function compare(a, b) {
  const column = COLUMNS.find((each) => each.key === chosen.column);
  if (!column) return 0;
  const [one, other] = [column.of(a), column.of(b)];
  const order = typeof one === "string" ? one.localeCompare(other) : one - other;
  return chosen.down ? order : -order;
}

function rowOf(example) {
  const cells = data.columns.map(({ key, title }) => {
    const cell = example.cells[key];
    if (!cell) return make("td");
    const button = verdictLabel("button", cell.verdict, {
      type: "button",
      title: cell.reason || null,
      "aria-label": `${example.name}, ${title}: ${cell.verdict}`,
      "data-column": key,
    });
    button.classList.toggle("changed", cell.change !== null);
    button.addEventListener("click", () => openPanel(example, key));
    return make("td", {}, button);
  });
  return make(
    "tr",
    { "data-name": example.name },
    make("td", { className: "name" }, ...nameParts(example.name)),
    make("td", { className: "framework" }, example.framework),
    make("td", { className: "ranks" }, String(example.ranks)),
    ...cells,
  );
}

const rows = new Map(data.examples.map((example) => [example, rowOf(example)]));

function showTable() {
  shown = data.examples.filter(isShown).sort(compare);
  find("rows").replaceChildren(...shown.map((example) => rows.get(example)));
  find("number").textContent = `${shown.length} of ${data.examples.length} examples`;
  find("nothing").hidden = shown.length > 0;
  for (const head of find("heads").children) {
    const sorted = head.dataset.key === chosen.column;
    head.setAttribute("aria-sort", sorted ? (chosen.down ? "ascending" : "descending") : "none");
  }
}

function sortBy(key) {
  chosen.down = chosen.column === key ? !chosen.down : true;
  chosen.column = key;
  showTable();
}

function showHeads() {
  const heads = COLUMNS.map(({ key, title }) => {
    const button = make("button", { type: "button" }, title);
    button.addEventListener("click", () => sortBy(key));
    return make("th", { scope: "col", "data-key": key, className: key === "framework" ? "framework" : "" }, button);
  });
  find("heads").replaceChildren(...heads);
}

// The arrow keys go from verdict to verdict, over empty cells.
function moveFocus(event) {
  const by = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
  const cell = event.target.closest("#rows td");
  if (!by || !cell) return;
  event.preventDefault();
  let [row, column] = [cell.parentElement, cell.cellIndex];
  do {
    column += by[1];
    row = by[0] > 0 ? row.nextElementSibling : by[0] < 0 ? row.previousElementSibling : row;
    const button = row?.cells[column]?.querySelector("button");
    if (button) return button.focus();
  } while (row && row.cells[column]);
}
