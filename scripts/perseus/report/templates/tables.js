"use strict";
// Lets the reader sort and filter tables, and opens the folded parts of the page around the target of a link.

const LONG = 8; // a table with more rows has a filter

// The number at the start of a text, and the latency if the text is an SLA such as "p95 \u2264 60 ms"; null without a
// number. A bound such as "<" or "at most" may stand before the number.
function numbers(text) {
  const plain = text.replace(/\u2212/g, "-").replace(/\u221e/g, "Infinity");
  const found = plain.match(
    /^(?:[<>] |at (?:least|most) |p)?(-?(?:Infinity|\d+(?:\.\d+)?(?:e-?\d+)?))(?![\d.]*-)(?:\s\u2264\s([\d.]+))?/,
  );
  return found && [Number(found[1]), Number(found[2] || 0)];
}

// Sorts numbers by value, and texts by the alphabet; missing values come last in both directions.
function compare(one, other, sign) {
  const missing = [one, other].map((text) => text === "" || text === "\u2013");
  if (missing[0] || missing[1]) return missing[0] - missing[1];
  const [mine, others] = [numbers(one), numbers(other)];
  const differing = mine && others ? mine.findIndex((value, i) => value !== others[i]) : -1;
  if (differing >= 0) return sign * (mine[differing] - others[differing]);
  return sign * one.localeCompare(other, "en", { numeric: true });
}

function sort(table, heading) {
  const sign = heading.getAttribute("aria-sort") === "ascending" ? -1 : 1;
  const column = heading.cellIndex;
  const body = table.tBodies[0];
  const text = (row) => row.cells[column].textContent.trim();
  for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
  heading.setAttribute("aria-sort", sign > 0 ? "ascending" : "descending");
  body.append(...[...body.rows].sort((one, other) => compare(text(one), text(other), sign)));
}

function addSorting(table) {
  for (const heading of table.tHead.rows[0].cells) {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...heading.childNodes);
    button.addEventListener("click", () => sort(table, heading));
    heading.append(button);
  }
}

function addFilter(table) {
  const rows = [...table.tBodies[0].rows];
  const line = document.createElement("p");
  const label = document.createElement("label");
  const input = document.createElement("input");
  const found = document.createElement("output");
  line.className = "filter";
  input.type = "search";
  label.append("Rows with", input);
  line.append(label, found);
  input.addEventListener("input", () => {
    const words = input.value.toLowerCase().split(/\s+/);
    for (const row of rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = !words.every((word) => text.includes(word));
    }
    const left = rows.filter((row) => !row.hidden).length;
    found.textContent = `${left} of ${rows.length} rows`;
  });
  table.parentElement.before(line);
}

function openTarget() {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1).split("&")[0]));
  if (!target) return;
  let closed;
  while ((closed = target.closest("details:not([open])"))) closed.open = true;
  target.scrollIntoView();
}

for (const table of document.querySelectorAll("table.data")) {
  const rows = table.tBodies[0].rows.length;
  if (rows > 1) addSorting(table);
  if (rows > LONG) addFilter(table);
}
addEventListener("hashchange", openTarget);
openTarget();
