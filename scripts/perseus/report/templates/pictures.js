"use strict";
// Draws charts with uPlot. The reader can hover for values, drag to zoom, double-click to zoom out, and click a name to
// hide its series. The page draws a chart when the reader scrolls to the chart.

// Converts series into the format of uPlot: all x in ascending order, and for each series a value (or undefined) and a
// label at each x. An infinite value, which is a text such as "inf", becomes null, and uPlot draws nothing.
function aligned(series) {
  const columns = [];
  const points = series.flatMap((each, s) => each.x.map((x, i) => ({ x, y: Number.isFinite(each.y[i]) ? each.y[i] : null, name: each.names[i], s })));
  points.sort((one, other) => one.x - other.x);
  for (const point of points) {
    let free = columns.length;
    while (free && columns[free - 1].x === point.x && !(point.s in columns[free - 1].of)) free--;
    if (free === columns.length) columns.push({ x: point.x, of: {} });
    columns[free].of[point.s] = point;
  }
  const values = (key) => series.map((_, s) => columns.map(({ of }) => of[s]?.[key]));
  return { data: [columns.map(({ x }) => x), ...values("y")], names: values("name") };
}

function csv(chart) {
  const quoted = (text) => `"${String(text).replace(/"/g, '""')}"`;
  const place = (x) => (chart.labels.length ? quoted(labelOf(chart, x)) : x);
  const rows = chart.series.flatMap(({ name, x, y, names }) =>
    x.map((value, i) => [quoted(name), quoted(names[i] || ""), place(value), y[i]].join(",")),
  );
  return [["series", "point", quoted(chart.x), quoted(chart.y)].join(","), ...rows].join("\n");
}

// The text of the label nearest to x. A chart without numbers on the x axis has `labels`: pairs of a place on the x
// axis and a text.
function labelOf({ labels }, x) {
  const distance = ([place]) => Math.abs(place - x);
  return labels.reduce((best, label) => (distance(label) < distance(best) ? label : best))[1];
}

const LETTER_PX = 7; // width of a letter of a label
const LEFT_PX = 80; // left of the x axis
const RIGHT_PX = 25; // right of the x axis

// The options of an x axis with labels. The axis leaves out a label that would overlap the previous label.
function labelled({ labels }) {
  const splits = (plot, _, low, high) => {
    let end = 0; // of the label before
    const fits = ([x, text]) => {
      const middle = LEFT_PX + ((x - low) / (high - low)) * (plot.width - LEFT_PX - RIGHT_PX);
      const half = (LETTER_PX * text.length) / 2;
      const isFree = low <= x && x <= high && end <= middle - half && middle + half <= plot.width;
      if (isFree) end = middle + half + 2 * LETTER_PX;
      return isFree;
    };
    return labels.filter(fits).map(([x]) => x);
  };
  return { splits, values: (_, places) => places.map((x) => labels.find(([place]) => place === x)[1]) };
}

// A bar around each point, as wide as the distance of the points or less.
const BAR = {
  x0: { unit: 1, values: ({ data }) => data[0].map((x) => x - 0.4) },
  size: { unit: 1, values: () => [0.8] },
};

const LOOKS = {
  points: { paths: () => null, points: { show: true, size: 8 } },
  large: { paths: () => null, points: { show: true, size: 16 } },
  line: { width: 2, spanGaps: true, points: { show: false } },
  joined: { width: 2, spanGaps: true, points: { show: true, size: 8 } },
  dashed: { width: 2, dash: [7, 5], spanGaps: true, points: { show: false } },
  steps: { width: 2, spanGaps: true, points: { show: false } },
  intervals: { width: 5, points: { show: false } },
  bars: { points: { show: false } },
};

// Draws each interval as a line between its two ends: the two points with the same name.
function joinedByName(names) {
  return (plot, s) => {
    const stroke = new Path2D();
    const begun = {};
    plot.data[0].forEach((x, i) => {
      const name = names[i];
      if (!name) return;
      const end = [plot.valToPos(x, "x", true), plot.valToPos(plot.data[s][i], "y", true)];
      begun[name] ??= end;
      stroke.moveTo(...begun[name]);
      stroke.lineTo(...end);
    });
    return { stroke, fill: null, clip: null, band: null, gaps: null, flags: 1 };
  };
}

function look({ look, colour }, names) {
  const found = { ...LOOKS[look], stroke: colour };
  if (look === "steps") found.paths = uPlot.paths.stepped({ align: 1 });
  if (look === "intervals") found.paths = joinedByName(names);
  if (look === "bars") Object.assign(found, { fill: colour, paths: uPlot.paths.bars({ disp: BAR }) });
  if (found.points.show) found.points = { ...found.points, fill: colour };
  return found;
}

const size = (width) => ({ width, height: Math.round(Math.min(360, Math.max(240, width * 0.55))) });

function options(chart, width, names) {
  const style = getComputedStyle(document.documentElement);
  const [text, line] = ["--text", "--line"].map((name) => style.getPropertyValue(name).trim());
  const labelFont = `bold ${width < 500 ? 10 : 12}px system-ui, sans-serif`; // fits the height on a phone
  const axis = (label, more) => ({ ...more, label, labelFont, stroke: text, grid: { stroke: line, width: 1 }, ticks: { stroke: line } });
  const formatted = (value) => (value === null || value === undefined ? "\u2013" : String(Number(value.toPrecision(4))));
  const value = (_, y, s, i) => formatted(y) + (names[s - 1]?.[i] ? ` (${names[s - 1][i]})` : "");
  const fromZero = (_, low, high) => [0, 1.08 * (high || 1)];
  const orZoomed = (plot, low, high) => (high === plot.data[0].at(-1) ? fromZero(plot, low, high) : [low, high]);
  return {
    ...size(width),
    scales: {
      x: { time: false, range: chart.zero && !chart.labels.length ? orZoomed : undefined },
      y: { distr: chart.log ? 3 : 1, range: chart.zero ? fromZero : undefined },
    },
    axes: [axis(chart.x, chart.labels.length ? labelled(chart) : {}), axis(chart.y)],
    series: [
      { label: chart.x, value: (_, x) => (chart.labels.length && Number.isFinite(x) ? labelOf(chart, x) : formatted(x)) },
      ...chart.series.map((each, s) => ({ label: each.name, value, ...look(each, names[s]) })),
    ],
  };
}

// Draws a chart into the element .plot of a figure, and offers the data of the chart as a CSV file.
function picture(figure, chart) {
  const plot = figure.querySelector(".plot");
  const { data, names } = aligned(chart.series);
  const drawn = new uPlot(options(chart, plot.clientWidth, names), data, plot);
  new ResizeObserver(() => plot.clientWidth && drawn.setSize(size(plot.clientWidth))).observe(plot);
  const link = figure.querySelector("a");
  link.href = URL.createObjectURL(new Blob([csv(chart)], { type: "text/csv" }));
  link.hidden = false;
}

const seen = new IntersectionObserver((entries) => {
  for (const { isIntersecting, target } of entries) {
    const plot = target.querySelector(".plot");
    if (!isIntersecting || !plot.clientWidth || plot.firstChild) continue;
    picture(target, JSON.parse(target.querySelector("script").textContent));
  }
});
for (const place of document.querySelectorAll(".chart:has(script)")) seen.observe(place);
