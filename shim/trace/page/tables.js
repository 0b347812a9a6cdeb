"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const byId = (name) => document.getElementById(name);

/** Show a number of microseconds in the unit that a reader expects. */
function time(us) {
  const size = Math.abs(us);
  if (size >= 1e6) return (us / 1e6).toFixed(3) + " s";
  if (size >= 1e3) return (us / 1e3).toFixed(2) + " ms";
  return us.toFixed(us && size < 10 ? 2 : 0) + " µs";
}

function fill(table, heads, rows, isSlowest) {
  const head = table.createTHead().insertRow();
  for (const [name, isText] of heads) {
    const cell = document.createElement("th");
    cell.textContent = name;
    cell.className = isText ? "text" : "";
    head.append(cell);
  }
  const body = table.createTBody();
  rows.forEach((row, number) => {
    const line = body.insertRow();
    line.className = isSlowest(number) ? "slowest" : "";
    row.forEach((text, column) => {
      const cell = line.insertCell();
      cell.textContent = text;
      cell.className = heads[column][1] ? "text" : "";
    });
  });
}

function fillTables() {
  byId("title").textContent = data.title;
  byId("about").textContent = data.about;
  byId("slowest").textContent = data.slowest;
  fill(
    byId("operations"),
    [["operation", true], ["group", true], ["calls"], ["MB"], ["waiting"], ["moving"], ["slowest rank"]],
    data.operations.map((one) => [
      one.operation, one.group, one.calls, (one.bytes / 1e6).toFixed(3), time(one.waiting), time(one.moving),
      one.slowest ? `${one.slowest[0]} (${Math.round(one.slowest[1] * 100)}%)` : "",
    ]),
    () => false,
  );
  const worst = Math.max(...data.ranks.map((one) => one.awaited));
  fill(
    byId("ranks"),
    [["rank"], ["host", true], ["waiting"], ["moving"], ["awaited by others"]],
    data.ranks.map((one) => [one.rank, one.host, time(one.waiting), time(one.moving), time(one.awaited)]),
    (number) => worst > 0 && data.ranks[number].awaited === worst,
  );
  fillHosts(byId("hosts"), data.hosts);
}

/** Show how many MB go from each line's host to each column's, the more the darker. */
function fillHosts(table, pairs) {
  const most_shown = 64;
  const names = [...new Set(pairs.flatMap(([one, other]) => [one, other]))].sort((one, other) => one - other).slice(0, most_shown);
  table.hidden = !names.length;
  if (table.hidden) return;
  const size = new Map(pairs.map(([one, other, bytes]) => [`${one} ${other}`, bytes]));
  const most = pairs.reduce((largest, [, , bytes]) => Math.max(largest, bytes), 0);
  const rows = names.map((one) => [one, ...names.map((other) => ((size.get(`${one} ${other}`) ?? 0) / 1e6).toFixed(1))]);
  fill(table, [["MB between hosts", true], ...names.map((name) => [String(name)])], rows, () => false);
  names.forEach((one, line) => names.forEach((other, column) => {
    const share = (size.get(`${one} ${other}`) ?? 0) / most;
    const colour = `color-mix(in srgb, var(--background) ${Math.round(share * 100)}%, transparent)`;
    table.tBodies[0].rows[line].cells[column + 1].style.background = colour;
  }));
}
