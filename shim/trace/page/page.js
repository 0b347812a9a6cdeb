function choose(found) {
  view.chosen = found;
  const details = byId("details");
  details.replaceChildren();
  if (found) for (const [name, text] of facts(...found)) {
    const term = document.createElement("dt"), value = document.createElement("dd");
    term.textContent = name;
    value.textContent = text;
    details.append(term, value);
  }
  draw();
}

function facts(lane, call) {
  const shape = data.shapes[call[SHAPE]];
  const others = meeting(call[MEETING]);
  const last = others.reduce((one, other) => (other[1][BEGIN] > one[1][BEGIN] ? other : one));
  const told = [
    ["rank", data.ranks[lane].rank],
    ["call", shape.call],
    ["group", `${shape.group}, ranks ${shape.ranks.join(", ")}`],
    ["line", shape.source || "not known"],
    ["began", time(call[BEGIN])],
    ["took", `${time(call[DURATION])}, of which ${time(call[WAITING])} waiting for others`],
    ["last to come", `rank ${data.ranks[last[0]].rank}, ${time(last[1][BEGIN] - Math.min(...others.map((one) => one[1][BEGIN])))} after the first`],
  ];
  if (call[BACKGROUND]) told.splice(6, 0, ["in the background", call[SINCE] > call[BEGIN] ? `the program waits from ${time(call[SINCE])} on` : "the program did not wait for it"]);
  if (call[STATE]) told.push(["outcome", call[STATE]]);
  return told;
}

/** Choose the next call of the chosen one's rank, or the one before, and bring it into view. */
function step(by) {
  const lane = view.chosen ? view.chosen[0] : 0;
  const calls = data.ranks[lane].calls.filter(isShown);
  if (!calls.length) return;
  const at = view.chosen ? calls.indexOf(view.chosen[1]) + by : 0;
  const call = calls[Math.max(0, Math.min(calls.length - 1, at))];
  if (call[BEGIN] < view.from || call[BEGIN] + call[DURATION] > view.to) {
    const half = (view.to - view.from) / 2;
    look(call[BEGIN] - half, call[BEGIN] + half);
  }
  choose([lane, call]);
}

/** Choose the call of the lane above or below that met the chosen one, or the first one there. */
function change(by) {
  const lane = Math.max(0, Math.min(data.ranks.length - 1, (view.chosen ? view.chosen[0] : 0) + by));
  const met = view.chosen && meeting(view.chosen[1][MEETING]).find(([there]) => there === lane);
  const first = data.ranks[lane].calls.find(isShown);
  if (met || first) choose(met || [lane, first]);
}

function place(event) {
  const box = canvas.getBoundingClientRect();
  return [event.clientX - box.left, event.clientY - box.top];
}

let dragged = null;
canvas.addEventListener("pointerdown", (event) => {
  dragged = { x: event.clientX, from: view.from, to: view.to, moved: false };
  canvas.setPointerCapture(event.pointerId);
});
canvas.addEventListener("pointermove", (event) => {
  if (!dragged) {
    const found = callAt(...place(event));
    canvas.title = found ? `rank ${data.ranks[found[0]].rank}: ${data.shapes[found[1][SHAPE]].call}` : "";
    return;
  }
  const by = ((dragged.x - event.clientX) / width()) * (dragged.to - dragged.from);
  dragged.moved ||= Math.abs(dragged.x - event.clientX) > 3;
  if (dragged.moved) look(dragged.from + by, dragged.to + by);
});
canvas.addEventListener("pointerup", (event) => {
  if (dragged && !dragged.moved) choose(callAt(...place(event)));
  dragged = null;
});
canvas.addEventListener("wheel", (event) => {
  event.preventDefault();
  const length = view.to - view.from;
  if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
    const by = ((event.deltaX || event.deltaY) / width()) * length;
    look(view.from + by, view.to + by);
  } else zoom(Math.exp(event.deltaY * 0.002), timeAt(place(event)[0]));
}, { passive: false });

const middle = () => (view.chosen ? view.chosen[1][BEGIN] : (view.from + view.to) / 2);
const actions = {
  "+": () => zoom(0.5, middle()), "-": () => zoom(2, middle()), 0: () => look(-0.01 * data.span, 1.01 * data.span),
  ArrowLeft: () => step(-1), ArrowRight: () => step(1), ArrowUp: () => change(-1), ArrowDown: () => change(1),
  Escape: () => choose(null),
};
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches("button, input")) return;
  const action = actions[event.key];
  if (!action) return;
  event.preventDefault();
  action();
});
for (const [name, key] of [["in", "+"], ["out", "-"], ["all", 0], ["before", "ArrowLeft"], ["after", "ArrowRight"]])
  byId(name).addEventListener("click", () => actions[key]());
byId("internal").addEventListener("change", (event) => {
  view.internal = event.target.checked;
  draw();
});
window.addEventListener("resize", draw);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
fillTables();
actions[0]();
