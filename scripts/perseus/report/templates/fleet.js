"use strict";
// Finds the cheapest whole servers for a demand, by the same integer programs as in perseus.results.fleets. HiGHS
// (`solver`) solves the programs. An offer is a server with a mix and a price. An offer has `server`, `mix`, `shared`,
// by model the lower limit `lower` and the random samples `draws` of the capacity, `usd` per month, and `isSpot`, which
// is true for the spot price. `open` is true if the measurements give no upper limit for the capacity.

const TOLERANCE = 1e-9;
const GAP = 1e-4; // a fleet counts as the cheapest if no fleet is cheaper by more than this share
const TIME_LIMIT_S = 3; // time limit for the cheapest fleet; if it is exceeded, a cheaper fleet may exist
const ROOMIEST_S = 1; // time limit for the search among the cheapest fleets for the most spare capacity
const CERTAINTY_MS = 10000; // time limit for the savings in all draws
const MAX_RESAMPLED = 400; // largest number of offers x models for which the saving gets an interval

// The offers from which a plan chooses: the points that serve only models with a demand, at the prices of the settings.
function offersOf(points, settings, mayShare) {
  return points
    .filter((point) => mayShare || !point.shared)
    .filter((point) => Object.keys(point.lower).every((model) => settings.rps[model] > 0))
    .flatMap((point) => [
      { ...point, usd: settings.usd[point.server], isSpot: false },
      ...(settings.spotShare ? [{ ...point, usd: settings.spot[point.server], isSpot: true }] : []),
    ])
    .filter((offer) => offer.usd >= 0);
}

const asked = (settings) => Object.keys(settings.rps).filter((model) => settings.rps[model] > 0);

// The weighted sum of the variables x0, x1, ... as text of an LP file.
function sum(coefficients) {
  return coefficients
    .map((value, i) => (value ? `${value} x${i}` : ""))
    .filter(Boolean)
    .join(" + ");
}

// The terms of the integer program for each model with a demand. `carried` is the rate that the servers carry, divided
// by the demand. `others` has two constraints: on the number of servers with the model, and on the rate that the fleet
// carries without its spot servers.
function rowsOf(offers, settings, rates) {
  const areSpot = offers.some(({ isSpot }) => isSpot);
  return asked(settings).map((model) => {
    const usable = (1 - settings.headroom) / settings.rps[model];
    const carried = (which) => sum(offers.map((offer, i) => (which(offer) ? usable * (rates[i][model] || 0) : 0)));
    const hosts = sum(offers.map((_, i) => (rates[i][model] > 0 ? 1 : 0)));
    const staying = `${carried(({ isSpot }) => !isSpot) || "0 x0"} >= ${1 - settings.spotShare - TOLERANCE}`;
    return {
      carried: carried(() => true),
      others: [`${hosts} >= ${settings.minServers}`, ...(areSpot ? [staying] : [])],
    };
  });
}

function costs(offers) {
  const highest = Math.max(...offers.map((offer) => offer.usd)) || 1;
  return offers.map((offer) => offer.usd / highest);
}

// The number of servers of each offer that solves an integer program; null without a solution. `isProven` is true if
// the solver has proven that the solution is optimal.
function solve(solver, goal, rows, offers, limitS) {
  const names = offers.map((_, i) => `x${i}`).join(" ");
  const lp = `${goal}\nSubject To\n${rows.join("\n")}\nGeneral\n${names}\nEnd`;
  const found = solver.solve(lp, { mip_rel_gap: GAP, time_limit: limitS, output_flag: false });
  const counts = offers.map((_, i) => Math.round(found.Columns[`x${i}`]?.Primal));
  const isProven = found.Status === "Optimal";
  return counts.every(Number.isFinite) && found.Status !== "Infeasible" ? { counts, isProven } : null;
}

const costOf = (counts, offers) => counts.reduce((sum, count, i) => sum + count * offers[i].usd, 0);

function isShort(counts, offers, settings, rates) {
  return asked(settings).some((model) => {
    const usable = (which) => (1 - settings.headroom) * capacity(which, rates, model);
    const staying = counts.map((count, i) => (offers[i].isSpot ? 0 : count));
    const hosts = counts.reduce((sum, count, i) => sum + (rates[i][model] > 0 ? count : 0), 0);
    return (
      usable(counts) < settings.rps[model] * (1 - 1e-6) ||
      (staying.some((count, i) => count < counts[i]) &&
        usable(staying) < settings.rps[model] * (1 - settings.spotShare - 1e-6)) ||
      hosts < settings.minServers
    );
  });
}

// The cheapest fleet for these rates per server: { counts, usd, isProven }, or null without a fleet.
function cheapest(solver, offers, settings, rates) {
  const rows = rowsOf(offers, settings, rates).flatMap(({ carried, others }) => [`${carried} >= ${1 - TOLERANCE}`, ...others]);
  const found = solve(solver, `Minimize\n${sum(costs(offers)) || "0 x0"}`, rows, offers, TIME_LIMIT_S);
  if (!found || isShort(found.counts, offers, settings, rates)) return null;
  return { ...found, usd: costOf(found.counts, offers) };
}

// Among the fleets that cost as much as `found`, the fleet with the most spare capacity for its busiest model.
function roomiest(solver, offers, settings, rates, found) {
  const prices = costs(offers);
  const most = prices.reduce((sum, price, i) => sum + price * found.counts[i], 0);
  const rows = rowsOf(offers, settings, rates).flatMap(({ carried, others }) => [`${carried} - 1 spare >= 0`, ...others]);
  rows.push(`1 spare >= ${1 - TOLERANCE}`, `${sum(prices) || "0 x0"} <= ${most * (1 + TOLERANCE)}`);
  const made = solve(solver, "Maximize\n1 spare", rows, offers, ROOMIEST_S);
  if (!made || isShort(made.counts, offers, settings, rates)) return found;
  return { ...found, counts: made.counts, usd: costOf(made.counts, offers) };
}

// The requests/s of a model that a fleet carries if one server of each offer carries `rates`.
const capacity = (counts, rates, model) =>
  counts.reduce((sum, count, i) => sum + count * (rates[i][model] || 0), 0);

// The load of a model on each server of an offer, in requests/s. Every server with the model gets the same share of its
// capacity, but all spot servers together get at most the share of the demand that the settings allow.
function load(fleet, settings, i, model) {
  const rates = fleet.offers.map((offer) => offer.lower);
  const carried = capacity(fleet.counts, rates, model);
  const spot = capacity(fleet.counts.map((count, k) => (fleet.offers[k].isSpot ? count : 0)), rates, model);
  if (!carried) return 0;
  const onSpot = Math.min(spot / carried, settings.spotShare);
  const { isSpot } = fleet.offers[i];
  const [share, alike] = isSpot ? [onSpot, spot] : [1 - onSpot, carried - spot];
  return (settings.rps[model] * share * rates[i][model]) / alike;
}

// The plan at the lower limits of the servers: { offers, counts, usd, isProven }, or { why } without a fleet.
function plan(solver, points, settings, mayShare) {
  const models = asked(settings);
  const offers = offersOf(points, settings, mayShare);
  if (!models.length) return { offers: [], counts: [], usd: 0, isProven: true };
  const missing = models.filter((model) => !offers.some((offer) => offer.lower[model] > 0));
  if (missing.length) return { why: `No server that the plan may use has both a price and a known lower limit of its capacity for ${missing.join(", ")}.` };
  const rates = offers.map((offer) => offer.lower);
  const found = cheapest(solver, offers, settings, rates);
  if (!found) return { why: "The solver found no set of the available servers that carries the demand." };
  return { offers, ...roomiest(solver, offers, settings, rates, found) };
}

// The plan with dedicated servers only, and the plan that may share servers.
function plans(solver, points, settings) {
  const dedicated = plan(solver, points, settings, false);
  return { dedicated, shared: sharingIfCheaper(plan(solver, points, settings, true), dedicated) };
}

// The fleet that may share servers or, if dedicated servers cost no more, the dedicated fleet, in which models do not
// slow each other down.
function sharingIfCheaper(shared, dedicated) {
  if (!dedicated.counts || dedicated.usd > shared.usd * (1 + TOLERANCE)) return shared;
  if (!shared.counts) return dedicated; // the solver found no fleet with sharing in time
  const counts = [...dedicated.counts];
  return { ...shared, usd: dedicated.usd, counts: shared.offers.map((offer) => (offer.shared ? 0 : counts.shift())) };
}

const ratesOfDraw = (offers, draw) =>
  offers.map((offer) =>
    Object.fromEntries(Object.keys(offer.lower).map((model) => [model, offer.draws[model][draw]])),
  );

// The share of draws (random samples of the capacities) in which the planned servers carry the whole demand; null
// without draws.
function chanceEnough(fleet, settings, draws) {
  if (!draws || !fleet.counts) return null;
  const models = asked(settings);
  let enough = 0;
  for (let draw = 0; draw < draws; draw++) {
    const rates = ratesOfDraw(fleet.offers, draw);
    if (models.every((model) => capacity(fleet.counts, rates, model) >= settings.rps[model] * (1 - TOLERANCE)))
      enough++;
  }
  return enough / draws;
}

// The saving of sharing if the capacities are those of one draw; NaN if the solver finds no fleet.
function savingOfDraw(solver, shared, dedicated, settings, draw) {
  const [together, alone] = [shared, dedicated].map(
    ({ offers }) => cheapest(solver, offers, settings, ratesOfDraw(offers, draw))?.usd,
  );
  return 1 - together / alone;
}

// The share of draws with a saving, and the 95 % interval of the saving; null if a saving is unknown. Both ends of the
// interval are savings of draws: between two such values, an interpolated saving might belong to no fleet of whole
// servers.
function certainty(savings) {
  if (!savings.length || !savings.every(Number.isFinite)) return null;
  const sorted = [...savings].sort((one, other) => one - other);
  const chance = sorted.filter((saving) => saving > TOLERANCE).length / sorted.length;
  const last = sorted.length - 1;
  return { chance, low: sorted[Math.floor(0.025 * last)], high: sorted[Math.ceil(0.975 * last)] };
}
