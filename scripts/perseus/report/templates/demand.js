"use strict";
// The form of a demand: its settings, the fleets for them (fleet.js), and what the page says of these.

const form = document.getElementById("demand-form");

function significant(value) {
  if (value === 0) return "0";
  const magnitude = Math.floor(Math.log10(Math.abs(value)));
  return value.toFixed(Math.max(2 - magnitude, 0));
}

const percent = (share) => `${(100 * share).toFixed(Math.abs(share) >= 0.0995 ? 0 : 1)}\u00a0%`;
const servers = (count) => `${count} server${count === 1 ? "" : "s"}`;
const sure = (chance) => (chance > 0.99 ? "over 99\u00a0% sure" : `${(100 * chance).toFixed(0)}\u00a0% sure`);
const total = (counts) => counts.reduce((sum, count) => sum + count, 0);

function readSettings() {
  const settings = { rps: {}, usd: {}, headroom: 0, minServers: 1 };
  for (const input of form.querySelectorAll("input[type=number]")) {
    const [kind, ...name] = input.name.split(".");
    const value = Math.max(input.valueAsNumber, 0);
    if (kind === "rps") settings.rps[name.join(".")] = value || 0;
    else if (kind === "usd") settings.usd[name.join(".")] = value;
    else if (kind === "headroom") settings.headroom = Math.min((value || 0) / 100, 0.99);
    else settings.minServers = Math.max(Math.round(value || 1), 1);
  }
  return settings;
}

function element(tag, text, ...children) {
  const made = document.createElement(tag);
  if (text) made.textContent = text;
  made.append(...children);
  return made;
}

function card(label, value, note) {
  const said = element("dd", "", element("strong", value));
  if (note) {
    const small = element("span", note);
    small.className = "soft";
    said.append(small);
  }
  return element("div", "", element("dt", label), said);
}

function cost(fleet) {
  const proven = fleet.isProven ? "" : "; the search ended early, a cheaper fleet may exist";
  return [`$${significant(fleet.usd)} a month`, servers(total(fleet.counts)) + proven];
}

function savingCard(shared, dedicated, known) {
  if (!dedicated.counts || !dedicated.usd) return [];
  const saving = 1 - shared.usd / dedicated.usd;
  const ends = known && [...new Set([percent(known.low), percent(known.high)])].join(" to ");
  const note = known ? `${ends} (95\u00a0%); ${sure(known.chance)} to save` : "";
  return [card("Saving of sharing", saving > TOLERANCE ? percent(saving) : "none", note)];
}

// Rows of what the servers of a plan get: all servers with a model get the same share of what they carry.
function loads(fleet, settings) {
  const rates = fleet.offers.map((offer) => offer.lower);
  return fleet.offers.flatMap((offer, i) => {
    if (!fleet.counts[i]) return [];
    const models = Object.keys(offer.lower);
    const used = models.map((model) => settings.rps[model] / capacity(fleet.counts, rates, model));
    return [{ offer, count: fleet.counts[i], models, used, utilisation: Math.max(...used) }];
  });
}

function fleetTable(title, fleet, settings) {
  const table = element("table", "", element("caption", title));
  const head = element("tr");
  for (const name of ["servers", "type", "mix", "each gets (requests/s)", "utilisation"]) {
    const heading = element("th", name);
    heading.scope = "col";
    head.append(heading);
  }
  const body = element("tbody");
  for (const row of loads(fleet, settings)) {
    const gets = row.models.map(
      (model, i) => `${model} ${significant(row.used[i] * row.offer.lower[model])} of ${significant(row.offer.lower[model])}`,
    );
    const cells = [String(row.count), row.offer.server, row.offer.mix, gets.join(", "), percent(row.utilisation)];
    body.append(element("tr", "", ...cells.map((text) => element("td", text))));
  }
  table.append(element("thead", "", head), body);
  const around = element("div", "", table);
  around.className = "scroll";
  around.tabIndex = 0;
  around.setAttribute("role", "region");
  around.setAttribute("aria-label", title);
  return around;
}

function show(settings, shared, dedicated, enough, known) {
  const result = document.getElementById("demand-result");
  const cards = element("dl");
  cards.className = "cards";
  if (shared.why) {
    result.replaceChildren(element("p", shared.why));
    return;
  }
  const sufficient = enough === null ? "" : `, ${sure(enough)} to suffice`;
  const [value, note] = cost(shared);
  cards.append(card("Cheapest servers", value, note + sufficient));
  cards.append(dedicated.why ? card("Dedicated servers", "impossible", dedicated.why) : card("Dedicated servers", ...cost(dedicated)));
  cards.append(...savingCard(shared, dedicated, known));
  const rows = loads(shared, settings);
  if (rows.length) cards.append(card("Utilisation", percent(Math.max(...rows.map((row) => row.utilisation))), "of the busiest model, at the lower limits"));
  const tables = [fleetTable("The cheapest servers", shared, settings)];
  if (dedicated.counts && dedicated.usd > shared.usd) tables.push(fleetTable("Dedicated servers", dedicated, settings));
  result.replaceChildren(cards, ...(rows.length ? tables : []));
}

const yamlName = (name) => (/^[A-Za-z_][\w.-]*$/.test(name) ? name : JSON.stringify(name));

function configuration(settings) {
  const lines = ["demand:", "  models:"];
  for (const model of asked(settings)) lines.push(`    - {name: ${yamlName(model)}, rps: ${settings.rps[model]}}`);
  if (settings.headroom) lines.push(`  headroom: ${Number(settings.headroom.toPrecision(6))}`);
  if (settings.minServers > 1) lines.push(`  min_servers: ${settings.minServers}`);
  return lines.join("\n");
}

function fragment() {
  const values = [...form.querySelectorAll("input[type=number]")].map((input) => [input.name, input.value]);
  return `#demand&${new URLSearchParams(values)}`;
}

function restore() {
  const [place, ...rest] = location.hash.split("&");
  if (place !== "#demand") return;
  for (const [name, value] of new URLSearchParams(rest.join("&"))) {
    const input = form.elements.namedItem(name);
    if (input) input.value = value;
  }
  for (const slider of form.querySelectorAll("input[type=range]")) follow(slider);
}

function follow(slider) {
  const field = form.elements.namedItem(slider.dataset.for);
  slider.max = Math.max(Number(slider.max), field.valueAsNumber || 0);
  slider.value = field.value || 0;
}

// The solver, unpacked once.
async function load() {
  const packed = atob(document.getElementById("highs-wasm").textContent.trim());
  const bytes = Uint8Array.from(packed, (character) => character.charCodeAt(0));
  const stream = new window["xz-decompress"].XzReadableStream(new Blob([bytes]).stream());
  return Module({ wasmBinary: await new Response(stream).arrayBuffer() });
}

const data = form && JSON.parse(document.getElementById("demand-data").textContent);
const draws = form && Math.min(...data.points.flatMap((point) => Object.keys(point.lower).map((model) => (point.draws[model] || []).length)));
const ready = form && load();
let latest = 0;

// Shows the fleets for the settings, and then how sure the saving is, a few draws at a time.
async function update() {
  const mine = ++latest;
  const settings = readSettings();
  document.getElementById("demand-lines").textContent = configuration(settings);
  document.getElementById("demand-link").href = fragment();
  const solver = await ready;
  if (mine !== latest) return;
  const shared = plan(solver, data.points, settings, true);
  const dedicated = plan(solver, data.points, settings, false);
  const enough = chanceEnough(shared, settings, draws);
  show(settings, shared, dedicated, enough, null);
  const size = asked(settings).length * (shared.offers || []).length;
  if (shared.why || dedicated.why || !size || size > MOST_RESAMPLED) return;
  const savings = [];
  const until = performance.now() + CERTAINTY_MS;
  for (let draw = 0; draw < draws; draw++) {
    if (draw % 5 === 0) await new Promise((resume) => setTimeout(resume));
    if (mine !== latest || performance.now() > until) return;
    savings.push(savingOfDraw(solver, shared, dedicated, settings, draw));
  }
  show(settings, shared, dedicated, enough, certainty(savings));
}

function keep() {
  history.replaceState(null, "", location.href.split("#")[0] + fragment());
}

async function copyLines() {
  const lines = document.getElementById("demand-lines");
  const button = document.getElementById("demand-copy");
  getSelection().selectAllChildren(lines);
  try {
    await navigator.clipboard.writeText(lines.textContent);
    button.textContent = "Copied";
  } catch {
    button.textContent = "Selected: press Ctrl+C";
  }
}

if (form) {
  restore();
  form.addEventListener("input", (event) => {
    const { target } = event;
    if (target.type === "range") form.elements.namedItem(target.dataset.for).value = significant(target.valueAsNumber);
    for (const slider of form.querySelectorAll("input[type=range]")) if (slider !== target) follow(slider);
    update();
  });
  form.addEventListener("change", keep);
  form.addEventListener("submit", (event) => event.preventDefault());
  addEventListener("hashchange", () => {
    restore();
    update();
  });
  document.getElementById("demand-copy").addEventListener("click", copyLines);
  update();
}
