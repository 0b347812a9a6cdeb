// The lanes: a canvas on which each rank has a row for what its program is in, and below it one for what goes on in the background.
const BEGIN = 0, DURATION = 1, SINCE = 2, WAITING = 3, SHAPE = 4, MEETING = 5, BACKGROUND = 6, STATE = 7;
const LEFT = 64, TOP = 22, ROW = 26, BELOW = 8, GAP = 12, LANE = ROW + BELOW + GAP;
const canvas = byId("lanes");
const view = { from: 0, to: data.span, chosen: null, internal: false };

const width = () => canvas.clientWidth - LEFT - 8;
const xOf = (us) => LEFT + ((us - view.from) / (view.to - view.from)) * width();
const timeAt = (x) => view.from + ((x - LEFT) / width()) * (view.to - view.from);
const isShown = (call) => view.internal || !data.shapes[call[SHAPE]].internal;

function color(name) {
  return getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
}

/** Show the time from one moment to another, or as much of it as there is. */
function look(from, to) {
  const least = 0.05, most = data.span * 1.02;
  const length = Math.min(most, Math.max(least, to - from));
  const start = Math.min(Math.max(from, -0.01 * data.span), 1.01 * data.span - length);
  view.from = start;
  view.to = start + length;
  draw();
}

function zoom(factor, around) {
  look(around - (around - view.from) * factor, around + (view.to - around) * factor);
}

function draw() {
  const scale = window.devicePixelRatio || 1;
  const height = TOP + data.ranks.length * LANE;
  canvas.style.height = height + "px";
  canvas.width = Math.round(canvas.clientWidth * scale);
  canvas.height = Math.round(height * scale);
  const pen = canvas.getContext("2d");
  pen.setTransform(scale, 0, 0, scale, 0, 0);
  pen.clearRect(0, 0, canvas.clientWidth, height);
  pen.font = "12px system-ui, sans-serif";
  pen.textBaseline = "middle";
  drawTimes(pen, height);
  const colors = Object.fromEntries(["waiting", "moving", "background", "bad", "text", "dim", "chosen"].map((name) => [name, color(name)]));
  data.ranks.forEach((rank, lane) => drawLane(pen, colors, rank, TOP + lane * LANE));
  drawMeeting(pen, colors);
  byId("range").textContent = `${time(Math.max(0, view.from))} to ${time(Math.min(data.span, view.to))}`;
}

function drawTimes(pen, height) {
  const rough = ((view.to - view.from) / width()) * 110;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((one) => one * power).find((one) => one >= rough);
  pen.fillStyle = color("dim");
  pen.strokeStyle = color("line");
  for (let at = Math.ceil(view.from / step) * step; at < view.to; at += step) {
    pen.beginPath();
    pen.moveTo(xOf(at), TOP - 4);
    pen.lineTo(xOf(at), height);
    pen.stroke();
    pen.fillText(time(at), xOf(at) + 3, 10);
  }
}

function drawLane(pen, colors, rank, top) {
  pen.fillStyle = colors.text;
  pen.fillText("rank " + rank.rank, 8, top + ROW / 2);
  pen.save();
  pen.beginPath();
  pen.rect(LEFT, 0, width() + 8, canvas.clientHeight);
  pen.clip();
  for (const call of rank.calls) {
    if (call[BEGIN] > view.to || call[BEGIN] + call[DURATION] < view.from || !isShown(call)) continue;
    const end = call[BEGIN] + call[DURATION];
    if (call[BACKGROUND]) bar(pen, call[STATE] ? colors.bad : colors.background, call[BEGIN], end, top + ROW + 1, BELOW - 1);
    if (call[BACKGROUND] && call[SINCE] <= call[BEGIN]) continue; // the program did not wait for it
    bar(pen, call[STATE] ? colors.bad : colors.moving, call[SINCE], end, top, ROW);
    if (call[WAITING]) bar(pen, colors.waiting, call[SINCE], call[SINCE] + call[WAITING], top, call[STATE] ? ROW - 6 : ROW);
    label(pen, call, end, top);
  }
  pen.restore();
}

function bar(pen, fill, from, to, top, height) {
  const left = Math.max(LEFT, xOf(from)), right = Math.min(LEFT + width() + 8, xOf(to));
  pen.fillStyle = fill;
  pen.fillRect(left, top, Math.max(1, right - left), height);
}

function label(pen, call, end, top) {
  const left = Math.max(LEFT, xOf(call[SINCE])), room = Math.min(LEFT + width(), xOf(end)) - left;
  const text = data.shapes[call[SHAPE]].collective;
  if (room < 8 * text.length) return;
  pen.fillStyle = call[WAITING] > call[DURATION] / 3 ? "#1c2128" : "#fff";
  pen.fillText(text, left + 5, top + ROW / 2);
}

/** Join the calls that met the chosen one, in the order in which they began. */
function drawMeeting(pen, colors) {
  if (!view.chosen) return;
  pen.strokeStyle = colors.chosen;
  pen.lineWidth = 2;
  for (const [lane, call] of meeting(view.chosen[1][MEETING])) {
    const left = xOf(call[BEGIN]), right = xOf(call[BEGIN] + call[DURATION]);
    pen.strokeRect(left, TOP + lane * LANE - 1, Math.max(2, right - left), ROW + 2);
  }
  pen.lineWidth = 1;
}

const meetings = new Map();
data.ranks.forEach((rank, lane) => rank.calls.forEach((call) => {
  if (!meetings.has(call[MEETING])) meetings.set(call[MEETING], []);
  meetings.get(call[MEETING]).push([lane, call]);
}));
const meeting = (number) => meetings.get(number);

/** Return the call at a point of the canvas, or null. */
function callAt(x, y) {
  const lane = Math.floor((y - TOP) / LANE);
  if (lane < 0 || lane >= data.ranks.length || x < LEFT) return null;
  const at = timeAt(x), slack = (3 / width()) * (view.to - view.from);
  const inBackground = y - TOP - lane * LANE > ROW ? 1 : 0;
  let best = null;
  for (const call of data.ranks[lane].calls) {
    if (!isShown(call) || (inBackground && !call[BACKGROUND])) continue;
    const from = inBackground ? call[BEGIN] : call[SINCE], to = call[BEGIN] + call[DURATION];
    if (at < from - slack || at > to + slack) continue;
    if (!best || call[DURATION] < best[1][DURATION]) best = [lane, call];
  }
  return best;
}
