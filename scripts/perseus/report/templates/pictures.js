"use strict";
// Draws each picture with uPlot when it comes into view: hover for values, drag to zoom, double
// click to zoom out, click a name to hide its series.

// All x in order, and the values of each series there.
function aligned(series) {
  const points = series.flatMap((each, s) => each.x.map((x, i) => ({ x, y: each.y[i], s })));
  points.sort((one, other) => one.x - other.x);
  return [points.map(({ x }) => x), ...series.map((_, s) => points.map((point) => (point.s === s ? point.y : undefined)))];
}

function csv(chart) {
  const quoted = (text) => `"${String(text).replace(/"/g, '""')}"`;
  const rows = chart.series.flatMap(({ name, x, y }) => x.map((value, i) => [quoted(name), value, y[i]].join(",")));
  return [["series", quoted(chart.x), quoted(chart.y)].join(","), ...rows].join("\n");
}

function options(chart, width) {
  const style = getComputedStyle(document.documentElement);
  const [text, line] = ["--text", "--line"].map((name) => style.getPropertyValue(name).trim());
  const axis = (label) => ({ label, stroke: text, grid: { stroke: line, width: 1 }, ticks: { stroke: line } });
  return {
    width,
    height: Math.round(Math.min(360, Math.max(240, width * 0.55))),
    scales: { x: { time: false }, y: { distr: chart.log ? 3 : 1 } },
    axes: [axis(chart.x), axis(chart.y)],
    series: [
      { label: chart.x },
      ...chart.series.map(({ name, colour, look }) =>
        look === "steps"
          ? { label: name, stroke: colour, width: 2, spanGaps: true, paths: uPlot.paths.stepped({ align: 1 }), points: { show: false } }
          : { label: name, stroke: colour, paths: () => null, points: { show: true, size: 8, fill: colour } },
      ),
    ],
  };
}

function draw(place) {
  const chart = JSON.parse(place.querySelector("script").textContent);
  const canvas = place.querySelector(".plot");
  if (!canvas.clientWidth || canvas.firstChild) return;
  new uPlot(options(chart, canvas.clientWidth), aligned(chart.series), canvas);
  const link = place.querySelector("a");
  link.href = URL.createObjectURL(new Blob([csv(chart)], { type: "text/csv" }));
  link.hidden = false;
}

const seen = new IntersectionObserver((entries) => {
  for (const entry of entries) if (entry.isIntersecting) draw(entry.target);
});
for (const place of document.querySelectorAll(".chart")) seen.observe(place);
