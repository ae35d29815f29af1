"use strict";
// The cheapest whole servers for a demand, as perseus.results.fleets plans them: the same
// integer programmes, solved by HiGHS (`solver`). An offer has a server, a mix, `shared`, `lower` and `draws`
// by model, `usd` a month, and `isSpot` if it may be taken away.

const TOLERANCE = 1e-9;
const GAP = 1e-4; // share of the cost within which a fleet counts as the cheapest
const TIME_LIMIT_S = 3; // of one search; beyond that a fleet may not be the cheapest
const ROOMIEST_S = 1;
const CERTAINTY_MS = 10000; // for all draws together
const MAX_RESAMPLED = 400; // offers x models

// Of the points, those that serve only models that are asked for, at the prices of the settings.
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

// A sum of terms of an LP file, of coefficients by variable.
function sum(coefficients) {
  return coefficients
    .map((value, i) => (value ? `${value} x${i}` : ""))
    .filter(Boolean)
    .join(" + ");
}

// Of each model that is asked for: what servers carry relative to its demand, and what must hold
// beside that: how many host it, and what those that stay carry.
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

// The counts that solve an integer programme, or null; `isProven` says whether no others are better.
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

// The cheapest fleet: { counts, usd, isProven }, or null.
function cheapest(solver, offers, settings, rates) {
  const rows = rowsOf(offers, settings, rates).flatMap(({ carried, others }) => [`${carried} >= ${1 - TOLERANCE}`, ...others]);
  const found = solve(solver, `Minimize\n${sum(costs(offers)) || "0 x0"}`, rows, offers, TIME_LIMIT_S);
  if (!found || isShort(found.counts, offers, settings, rates)) return null;
  return { ...found, usd: costOf(found.counts, offers) };
}

// Of the fleets that cost as much, the one whose scarcest model has most to spare.
function roomiest(solver, offers, settings, rates, found) {
  const prices = costs(offers);
  const most = prices.reduce((sum, price, i) => sum + price * found.counts[i], 0);
  const rows = rowsOf(offers, settings, rates).flatMap(({ carried, others }) => [`${carried} - 1 spare >= 0`, ...others]);
  rows.push(`1 spare >= ${1 - TOLERANCE}`, `${sum(prices) || "0 x0"} <= ${most * (1 + TOLERANCE)}`);
  const made = solve(solver, "Maximize\n1 spare", rows, offers, ROOMIEST_S);
  if (!made || isShort(made.counts, offers, settings, rates)) return found;
  return { ...found, counts: made.counts, usd: costOf(made.counts, offers) };
}

// What a fleet carries of a model, of these rates.
const capacity = (counts, rates, model) =>
  counts.reduce((sum, count, i) => sum + count * (rates[i][model] || 0), 0);

// What each server of an offer gets of a model: all servers with it the same share of what they carry,
// but those at the spot price together no more than they may.
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

// { offers, counts, usd, isProven }, or { why } where there is no fleet.
function plan(solver, points, settings, mayShare) {
  const models = asked(settings);
  const offers = offersOf(points, settings, mayShare);
  if (!models.length) return { offers: [], counts: [], usd: 0, isProven: true };
  const missing = models.filter((model) => !offers.some((offer) => offer.lower[model] > 0));
  if (missing.length) return { why: `No server on offer was measured to carry ${missing.join(", ")}.` };
  const rates = offers.map((offer) => offer.lower);
  const found = cheapest(solver, offers, settings, rates);
  if (!found) return { why: "No fleet of the servers on offer was found." };
  return { offers, ...roomiest(solver, offers, settings, rates, found) };
}

const ratesOfDraw = (offers, draw) =>
  offers.map((offer) =>
    Object.fromEntries(Object.keys(offer.lower).map((model) => [model, offer.draws[model][draw]])),
  );

// In how many of the draws the servers of a plan carry the whole demand; null without draws.
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

// The saving of sharing in one draw; NaN where there is no fleet.
function savingOfDraw(solver, shared, dedicated, settings, draw) {
  const [together, alone] = [shared, dedicated].map(
    ({ offers }) => cheapest(solver, offers, settings, ratesOfDraw(offers, draw))?.usd,
  );
  return 1 - together / alone;
}

function quantile(sorted, share) {
  const rank = share * (sorted.length - 1);
  const low = Math.floor(rank);
  return sorted[low] + (rank - low) * (sorted[Math.ceil(rank)] - sorted[low]);
}

// How many of the draws save something, and the 95 % interval; null if a draw has no fleet.
function certainty(savings) {
  if (!savings.length || !savings.every(Number.isFinite)) return null;
  const sorted = [...savings].sort((one, other) => one - other);
  const chance = sorted.filter((saving) => saving > TOLERANCE).length / sorted.length;
  return { chance, low: quantile(sorted, 0.025), high: quantile(sorted, 0.975) };
}
