"use strict";
// The form for a demand: reads the settings, plans the fleets (fleet.js), and shows the result.

const form = document.getElementById("demand-form");

function significant(value) {
  if (value === 0) return "0";
  const magnitude = Math.floor(Math.log10(Math.abs(value)));
  return value.toFixed(Math.max(2 - magnitude, 0));
}

const COLOURS = ["#0072B2", "#E69F00", "#CC79A7", "#56B4E9"]; // colours of servers
const MODEL_COLOURS = [...COLOURS, "#009E73", "#D55E00"];
const MAX_MIXES = 6; // largest number of rows of the table "If all servers had the same mix"
const MAX_REASONS = 3; // above this table, a text compares the best mix with at most this many other mixes
const percent = (share) => `${(100 * share).toFixed(Math.abs(share) >= 0.0995 ? 0 : 1)}\u00a0%`;
const servers = (count) => `${count} server${count === 1 ? "" : "s"}`;
const sure = (chance) => (chance > 0.99 ? "over 99\u00a0% sure" : `${(100 * chance).toFixed(0)}\u00a0% sure`);
const total = (counts) => counts.reduce((sum, count) => sum + count, 0);

function readSettings() {
  const settings = { rps: {}, usd: {}, spot: {}, spotShare: 0, headroom: 0, minServers: 1 };
  const share = (value, most) => Math.min((value || 0) / 100, most);
  for (const input of form.querySelectorAll("input[type=number]")) {
    const [kind, ...name] = input.name.split(".");
    const value = Math.max(input.valueAsNumber, 0);
    if (kind === "rps") settings.rps[name.join(".")] = value || 0;
    else if (kind === "usd" || kind === "spot") settings[kind][name.join(".")] = value;
    else if (kind === "headroom") settings.headroom = share(value, 0.99);
    else if (kind === "spot_share") settings.spotShare = share(value, 1);
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
  const definition = element("dd", "", element("strong", value));
  if (note) {
    const small = element("span", note);
    small.className = "soft";
    definition.append(small);
  }
  return element("div", "", element("dt", label), definition);
}

function cost(fleet) {
  const proven = fleet.isProven ? "" : "; the solver ran out of time, so a cheaper fleet may exist";
  return [`$${significant(fleet.usd)} a month`, servers(total(fleet.counts)) + proven];
}

function savingCard(shared, dedicated, known) {
  if (!dedicated.counts || !dedicated.usd || !shared.offers.some((offer) => offer.shared)) return [];
  const saving = 1 - shared.usd / dedicated.usd;
  return [card("Saving of sharing", saving > TOLERANCE ? percent(saving) : "none", certaintyText(saving, known))];
}

// How certain a saving is, as text. `known` is null while the page computes the certainty, { why } if the page cannot
// compute the certainty, and otherwise { chance, low, high }: the share of the draws (random samples of the capacities)
// with a saving, and the interval of the saving.
function certaintyText(saving, known) {
  if (!known) return "computing the certainty";
  if (known.why) return `certainty not computed: ${known.why}`;
  if (saving <= TOLERANCE) return known.chance > 0 ? `with exactly known capacities, sharing would save with a probability of ${percent(known.chance)}` : "";
  const ends = [...new Set([percent(known.low), percent(known.high)])].join(" to ");
  return `95\u00a0% interval ${ends}; ${sure(known.chance)} to save`;
}

// Why the page cannot compute the certainty of the saving; "" if the page can.
function whyUncertain(offers, settings) {
  const models = asked(settings).length;
  if (!draws) return data.why_no_draws;
  if (offers.some(({ open }) => open)) return "the capacity of a server has no known upper limit";
  if (offers.length * models <= MAX_RESAMPLED) return "";
  return `there are too many possible plans (${offers.length} kinds of servers, ${models} models)`;
}

// The load of the planned servers, one row for each kind of server: `gets` has the load of one server by each model in
// requests/s, and `used` has this load as a share of the lower limit.
function loads(fleet, settings) {
  return fleet.offers.flatMap((offer, i) => {
    if (!fleet.counts[i]) return [];
    const models = Object.keys(offer.lower);
    const gets = models.map((model) => load(fleet, settings, i, model));
    const used = models.map((model, m) => gets[m] / offer.lower[model]);
    return [{ offer, count: fleet.counts[i], models, gets, used, utilisation: Math.max(...used) }];
  });
}

// The load of a planned server by one model. A bar shows this load as a share of the lower limit.
function rate(row, m) {
  const bar = element("meter");
  bar.value = row.used[m];
  bar.title = percent(row.used[m]);
  const model = row.models[m];
  return element("div", `${model} ${significant(row.gets[m])} of ${significant(row.offer.lower[model])} `, bar);
}

// The certified rate of a model on a server, and whether the planned load of the server is above this rate.
function certifiedRate(certified, load) {
  if (certified === undefined) return "not certified";
  return significant(certified) + (load > certified * (1 + TOLERANCE) ? ", below the load" : "");
}

function fleetTable(title, fleet, settings) {
  const columns = ["servers", "type", "mix", "load of each server, and its lower limit (requests/s)", "certified (requests/s)", "utilisation"];
  const rows = loads(fleet, settings).map((row) => {
    const gets = row.models.map((_, m) => rate(row, m));
    const type = row.offer.server + (row.offer.isSpot ? ", spot" : "");
    const certified = row.models.map((model, m) => element("div", certifiedRate(row.offer.certified[model], row.gets[m])));
    return [[String(row.count)], [type], [row.offer.mix], ["", ...gets], ["", ...certified], [percent(row.utilisation)]];
  });
  return tableOf(title, columns, rows);
}

// For each mix of all models with a demand: the number of servers that the demand needs if all servers have this mix.
function sameMixes(points, settings) {
  const models = asked(settings);
  const rows = offersOf(points, settings, true)
    .filter((offer) => !offer.isSpot && models.every((model) => offer.lower[model] > 0))
    .map((offer) => {
      const needed = models.map((model) => settings.rps[model] / ((1 - settings.headroom) * offer.lower[model]));
      const most = Math.max(...needed);
      const count = Math.max(Math.ceil(most * (1 - TOLERANCE)), settings.minServers);
      const scarce = models[needed.indexOf(most)];
      return { offer, count, usd: count * offer.usd, scarce, used: settings.rps[scarce] / (count * offer.lower[scarce]) };
    })
    .sort((one, other) => one.usd - other.usd || one.used - other.used);
  return models.length < 2 || rows.length < 2 ? [] : rows;
}

// A text that says why the plan shares no server, or compares the best mix with other mixes: how much would these mixes
// carry on as many servers as the best mix needs? The planned servers may have other mixes than the best mix.
function whyThisMix(rows, [best, ...others], settings) {
  if (!best) return [];
  if (!rows.some(({ offer }) => offer.shared)) return [element("p", "At this demand, shared servers are no cheaper than dedicated servers. The plan therefore uses dedicated servers, on which models do not slow each other down.")];
  const mixes = others.filter(({ offer }) => offer.server === best.offer.server).slice(0, MAX_REASONS);
  const reasons = mixes.map(({ offer, scarce, used, count }) => {
    if (count <= best.count) return `With mix ${offer.mix}, the load is ${percent(used)} of the lower limit`;
    const carried = best.count * (1 - settings.headroom) * offer.lower[scarce];
    return `With mix ${offer.mix}, ${servers(best.count)} can carry only ${significant(carried)} of the ${significant(settings.rps[scarce])} requests/s of ${scarce}`;
  });
  const carry = best.count === 1 ? "carries" : "carry";
  const isOneMix = rows.every(({ offer }) => offer.mix === best.offer.mix);
  const at = `this demand at ${percent(best.used)} of the lower limit`;
  const planned = new Set(rows.map(({ offer }) => offer.mix)).size > 1
    ? `The plan combines ${servers(total(rows.map(({ count }) => count)))} with different models or mixes. ` : "";
  const suffice = isOneMix
    ? `With mix ${best.offer.mix}, ${servers(best.count)} ${carry} ${at}`
    : `${planned}If all servers had the same mix, ${servers(best.count)} with mix ${best.offer.mix} would carry ${at}`;
  if (isOneMix && reasons.length) reasons.push("Among equally cheap sets of servers, the plan takes the set with the most spare capacity");
  return [element("p", [...sharesOfPeaks(settings, best.offer.server), suffice, ...reasons].map((text) => `${text}.`).join(" "))];
}

// A text that states the demand as shares of the dedicated peaks, so that the reader can compare the demand with the
// weights of a mix, which are shares of the dedicated peaks, too.
function sharesOfPeaks(settings, server) {
  const peak = (model) => data.points.find((point) => !point.shared && point.server === server && point.lower[model]);
  const models = asked(settings);
  if (models.length > MAX_MIXES || !models.every(peak)) return [];
  const shares = models.map((model) => settings.rps[model] / peak(model).estimate[model]);
  const parts = models.map((model, m) => `${percent(shares[m])} of the dedicated peak of ${model}`);
  const [one, other] = shares;
  const ratio = models.length === 2 ? `, a ratio of about ${one < other ? `1 : ${significant(other / one)}` : `${significant(one / other)} : 1`}` : "";
  return [`This demand is ${parts.join(" and ")}${ratio}`];
}

function sameMixTable(rows) {
  if (!rows.length) return [];
  const columns = ["mix", "type", "servers", "USD a month", "model that needs the most servers", "utilisation"];
  const shown = rows.slice(0, MAX_MIXES).map(({ offer, count, usd, scarce, used }) => [
    ...[[offer.mix], [offer.server], [String(count)], [significant(usd)], [scarce], [percent(used)]],
  ]);
  return [tableOf("If all servers had the same mix", columns, shown)];
}

function tableOf(title, columns, rows) {
  const table = element("table", "", element("caption", title));
  const head = element("tr");
  for (const name of columns) {
    const heading = element("th", name);
    heading.scope = "col";
    head.append(heading);
  }
  const cells = (row) => row.map((parts) => element("td", ...parts));
  const body = element("tbody", "", ...rows.map((row) => element("tr", "", ...cells(row))));
  table.append(element("thead", "", head), body);
  const around = element("div", "", table);
  around.className = "scroll";
  around.tabIndex = 0;
  around.setAttribute("role", "region");
  around.setAttribute("aria-label", title);
  return around;
}

// The Pareto front of the pairs of rates that one server carries for two models, by ascending rate of the first model.
function front(points, models) {
  const all = new Map(points.map(({ lower }) => models.map((model) => lower[model] || 0)).map((rates) => [String(rates), rates]));
  const rates = [...all.values()];
  const best = rates.filter(([x, y]) => !rates.some(([a, b]) => (a > x && b >= y) || (a >= x && b > y)));
  return best.sort(([one], [other]) => one - other);
}

// The boundary of all pairs of rates that a plan may give to one server, as a line with steps: for each mix, a plan
// gives a model at most the rate of this mix.
function edge(points, models) {
  const best = front(points, models);
  return best.flatMap(([x, y], i) => [[x, y], [x, best[i + 1]?.[1] ?? 0]]);
}

// The chart with the frontier of two models and the planned servers.
function frontierChart(fleet, settings) {
  const models = asked(settings);
  const series = (name, points, colour, look, names = []) => ({
    ...{ name, colour, look, names },
    ...{ x: points.map(([x]) => x), y: points.map(([, y]) => y) },
  });
  const servers = [...new Set(fleet.offers.map((offer) => offer.server))];
  const lines = servers.flatMap((server, i) => {
    const points = fleet.offers.filter((offer) => offer.server === server);
    const alone = front(points.filter((point) => !point.shared), models);
    return [
      series(`${server}: shared`, edge(points, models), COLOURS[i % COLOURS.length], "line"),
      ...(alone.length === 2 ? [series(`${server}: dedicated, same cost`, alone, "#888888", "dashed")] : []),
    ];
  });
  const rows = loads(fleet, settings);
  const where = (offer) => (servers.length > 1 ? ` on ${offer.server}` : "") + (offer.isSpot ? ", spot" : "");
  const names = rows.map(({ offer, count }) => `${count} \u00d7 ${offer.mix}${where(offer)}`);
  const limits = rows.map(({ offer }) => models.map((model) => offer.lower[model] || 0));
  const gets = rows.map((row) => models.map((model) => row.gets[row.models.indexOf(model)] || 0));
  const marks = [series("lower limit of a planned server", limits, "#009E73", "large", names), series("load of a planned server", gets, "#D55E00", "points", names)];
  const [x, y] = models.map((model) => `${model} (requests/s)`);
  const title = "What one server of each type carries, and the load of each planned server";
  return { title, x, y, zero: true, labels: [], series: [...lines, ...marks] };
}

// The chart of the planned servers if the demand has one model, or more than two models: the load by each model, as a
// share of the lower limit of the server.
function loadChart(rows) {
  const models = [...new Set(rows.flatMap((row) => row.models))];
  const bars = models.map((name, m) => ({ name, colour: MODEL_COLOURS[m % MODEL_COLOURS.length], look: "bars", x: [], y: [], names: [] }));
  const labels = [];
  let place = 0;
  for (const { offer, count, models: served, gets, used } of rows) {
    const type = `${count} \u00d7 ${offer.server}${offer.isSpot ? ", spot" : ""}`;
    labels.push([place + (served.length + 1) / 2, type]);
    served.forEach((model, m) => {
      const bar = bars[models.indexOf(model)];
      bar.x.push(++place);
      bar.y.push(100 * used[m]);
      bar.names.push(`${type}, ${offer.mix}: ${significant(gets[m])} of ${significant(offer.lower[model])} requests/s`);
    });
    place++; // a gap after each type
  }
  const limit = { name: "lower limit", colour: "#888888", look: "dashed", x: [0, place], y: [100, 100], names: [] };
  return { title: "Load of each server, as a share of its lower limits", x: "servers, as in the table", y: "% of the lower limit", zero: true, labels, series: [limit, ...bars] };
}

function planFigure({ title }) {
  const plot = element("div");
  plot.className = "plot";
  plot.setAttribute("role", "img");
  plot.setAttribute("aria-label", `${title}; the table beside it has the numbers`);
  const link = element("a", "CSV");
  link.download = "your-demand.csv";
  const hint = element("span", " All limits are lower limits. Hover for values, drag to zoom. ");
  hint.className = "soft";
  const figure = element("figure", "", element("figcaption", "", element("strong", title), hint, link), plot);
  figure.className = "chart";
  return figure;
}

// The servers of a fleet as text. The texts of two fleets are equal if the fleets have the same servers.
const chosen = ({ offers, counts }) => String(offers.map(({ server, mix, isSpot }, i) => counts[i] && [counts[i], server, mix, isSpot]).filter(Boolean));

function show(settings, shared, dedicated, known, configured) {
  const result = document.getElementById("demand-result");
  const cards = element("dl");
  cards.className = "cards";
  if (shared.why) {
    result.replaceChildren(element("p", shared.why));
    return;
  }
  const planned = (label, fleet, more = "") => {
    const enough = chanceEnough(fleet, settings, draws);
    const [value, note] = cost(fleet);
    return card(label, value, `${note}${enough === null ? "" : `, ${sure(enough)} to suffice`}${more}`);
  };
  const isSame = configured && !configured.why && chosen(configured) === chosen(shared);
  const change = isSame ? "the new price does not change the servers; configured price" : "at the configured prices";
  const before = configured && !configured.why ? `; ${change}: ${cost(configured).join(", ")}` : "";
  cards.append(planned("Cheapest servers", shared, before));
  cards.append(dedicated.why ? card("Dedicated servers", "not known", dedicated.why) : planned("Dedicated servers", dedicated));
  cards.append(...savingCard(shared, dedicated, known));
  const rows = loads(shared, settings);
  const shares = rows.some(({ offer }) => offer.shared);
  if (rows.length) cards.append(card("Utilisation", percent(Math.max(...rows.map((row) => row.utilisation))), "largest load of a model, as a share of the lower limit"));
  const tables = element("div", "", fleetTable("The cheapest servers", shared, settings));
  if (shares && dedicated.counts) tables.append(fleetTable("Dedicated servers", dedicated, settings));
  const mixes = sameMixes(data.points, settings);
  tables.append(...sameMixTable(mixes));
  const beside = element("div", "", tables);
  beside.className = "charts";
  result.replaceChildren(cards, ...whyThisMix(rows, mixes, settings), ...(rows.length ? [beside] : []));
  if (!rows.length) return;
  const chart = asked(settings).length === 2 ? frontierChart(shared, settings) : loadChart(rows);
  const figure = planFigure(chart);
  beside.prepend(figure);
  picture(figure, chart);
}

const yamlName = (name) => (/^[A-Za-z_][\w.-]*$/.test(name) ? name : JSON.stringify(name));

// The settings of the reader, but with the prices of the configuration; null if the reader changed no price.
function atConfiguredPrices(settings) {
  const prices = { usd: {}, spot: {} };
  let isSame = true;
  for (const kind of Object.keys(prices)) {
    for (const server of Object.keys(settings[kind])) {
      const { value, defaultValue } = form.elements.namedItem(`${kind}.${server}`);
      prices[kind][server] = defaultValue === "" ? NaN : Number(defaultValue);
      isSame &&= value === defaultValue;
    }
  }
  return isSame ? null : { ...settings, ...prices };
}

// YAML comments with the key `price` of each CPU server whose price the reader changed. The comments leave out servers
// of a grid, whose names contain "~", since the configuration has no entry for each of them.
function priceLines(settings) {
  const configured = atConfiguredPrices(settings);
  return Object.entries(settings.usd).flatMap(([server, usd]) => {
    const cores = server.includes("~") ? 0 : data.cores[server];
    if (!cores) return [];
    const rate = (each) => `{usd_per_vcpu_hour: ${Number((each / cores / data.hours_per_month).toPrecision(6))}}`;
    const spot = settings.spot[server];
    const isSame = !configured || (Object.is(usd, configured.usd[server]) && Object.is(spot, configured.spot[server]));
    if (isSame || !(usd > 0)) return [];
    const rates = `on_demand: ${rate(usd)}${spot > 0 ? `, spot: ${rate(spot)}` : ""}`;
    return [`# ${server} in servers:`, `#   price: {instance: own, region: own, share: 1, custom: {vcpus: ${cores}, ${rates}}}`];
  });
}

// The line `servers:` of the demand, which lists the servers with a price; nothing if all servers have a price. The
// line leaves out the part of a name after "~": in a grid, this part is the setting of the server.
function serversLine({ usd, spot, spotShare }) {
  const names = (servers) => [...new Set(servers.map((server) => server.split("~")[0]))];
  const bought = names(Object.keys(usd).filter((server) => usd[server] >= 0 || (spotShare && spot[server] >= 0)));
  const isAll = bought.length === names(Object.keys(usd)).length;
  return isAll || !bought.length ? [] : [`  servers: [${bought.map(yamlName).join(", ")}]`];
}

function configuration(settings) {
  const lines = ["demand:", "  models:"];
  for (const model of asked(settings)) lines.push(`    - {name: ${yamlName(model)}, rps: ${settings.rps[model]}}`);
  lines.push(...serversLine(settings));
  if (settings.headroom) lines.push(`  headroom: ${Number(settings.headroom.toPrecision(6))}`);
  if (settings.minServers > 1) lines.push(`  min_servers: ${settings.minServers}`);
  if (settings.spotShare) {
    const share = Number(settings.spotShare.toPrecision(6));
    lines.push(`  spot: {largest_share: ${share}, revocations_per_hour: ${data.revocations_per_hour}}`);
  }
  return [...lines, ...priceLines(settings)].join("\n");
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

// Unpacks the solver from the page, and starts it. The page calls this function once, because this takes time.
async function unpack() {
  const packed = atob(document.getElementById("highs-wasm").textContent.trim());
  const bytes = Uint8Array.from(packed, (character) => character.charCodeAt(0));
  const stream = new window["xz-decompress"].XzReadableStream(new Blob([bytes]).stream());
  return Module({ wasmBinary: await new Response(stream).arrayBuffer() });
}

const data = form && JSON.parse(document.getElementById("demand-data").textContent);
const draws = form && Math.min(...data.points.flatMap((point) => Object.keys(point.lower).map((model) => (point.draws[model] || []).length)));
const ready = form && unpack();
let latest = 0;

// Shows the fleets for the settings. Then computes the interval of the saving, a few draws at a time, so that the page
// still reacts to the reader.
async function update() {
  const mine = ++latest;
  const settings = readSettings();
  document.getElementById("demand-lines").textContent = configuration(settings);
  document.getElementById("demand-link").href = fragment();
  const solver = await ready;
  if (mine !== latest) return;
  const { dedicated, shared } = plans(solver, data.points, settings);
  const configured = atConfiguredPrices(settings);
  const before = configured && plans(solver, data.points, configured).shared;
  const offers = shared.offers || []; // also has all offers of the dedicated plan
  const why = whyUncertain(offers, settings);
  const tell = (known) => show(settings, shared, dedicated, known, before);
  tell(why ? { why } : null);
  if (why || shared.why || dedicated.why || !offers.length) return;
  const savings = [];
  const until = performance.now() + CERTAINTY_MS;
  for (let draw = 0; draw < draws; draw++) {
    if (draw % 5 === 0) await new Promise((resume) => setTimeout(resume));
    if (mine !== latest) return;
    if (performance.now() > until) return tell({ why: `the computation takes longer than ${CERTAINTY_MS / 1000} s` });
    savings.push(savingOfDraw(solver, shared, dedicated, settings, draw));
  }
  tell(certainty(savings) || { why: "for some random samples of the capacities, the solver found no plan" });
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
