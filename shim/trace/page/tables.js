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
}
