"use strict";
(() => {
  const root = document.documentElement;
  const EVERY = 2000;
  const charts = {};

  const isDark = () => (root.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
  const colour = (name) => getComputedStyle(root).getPropertyValue(`--${name}`).trim();
  const redraw = () => Object.values(charts).forEach((chart) => chart.redraw(false, true));

  document.getElementById("theme").addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    try { localStorage.setItem("statepool-theme", root.dataset.theme); } catch { /* not remembered */ }
    redraw();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);

  const holder = document.getElementById("charts");
  if (!holder) return;

  const digits = (value) => value == null ? "–" : Math.abs(value) >= 100 ? Math.round(value).toLocaleString("en") : +value.toPrecision(3) + "";
  const axis = (extra) => ({
    stroke: () => colour("muted"), font: "12px system-ui, sans-serif", size: 44,
    grid: { stroke: () => colour("faint"), width: 1 }, ticks: { show: false }, ...extra,
  });
  // A line takes two points; one by itself is a dot.
  const isAlone = (chart, place) => chart.data[place].filter((value) => value != null).length === 1;
  const latest = (values) => values.findLast((value) => value != null);
  const line = (label, name, extra) => ({
    label, stroke: () => colour(name), width: 2, points: { show: isAlone, size: 7, fill: () => colour(name) },
    value: (chart, value, place, at) => digits(at == null ? latest(chart.data[place]) : value), ...extra,
  });
  const wash = (name) => () => colour(name) + "22";
  const size = (element) => ({ width: element.clientWidth, height: element.clientHeight - 24 });

  const draw = (id, options) => {
    const element = document.getElementById(id);
    const chart = charts[id] = new uPlot({
      ...size(element), cursor: { drag: { setScale: false } }, padding: [10, 34, 0, 0], ...options,
    }, options.series.map(() => []), element);
    new ResizeObserver(() => chart.setSize(size(element))).observe(element);
    return chart;
  };
  const two = (number) => String(number).padStart(2, "0");
  const clock = (_, places, __, ___, step) => places.map((place) => {
    const date = new Date(place * 1000), hours = `${two(date.getHours())}:${two(date.getMinutes())}`;
    if (step >= 86400) return `${date.getDate()}/${date.getMonth() + 1}`;
    return step < 60 ? `${hours}:${two(date.getSeconds())}` : hours;
  });
  const time = { space: 76, size: 30, values: clock };
  const upwards = (least) => ({ y: { range: (_, low, high) => [0, Math.max(high == null ? 0 : high * 1.12, least)] } });

  draw("chart-loss", {
    series: [{ label: "time" }, line("learner", "blue"), line("holdout", "vermillion", { dash: [6, 4] })],
    axes: [axis(time), axis()],
    scales: { y: { range: (_, low, high) => low == null ? [0, 1] : [Math.max(0, low - 0.05), Math.min(1, high + 0.05)] } },
  });
  draw("chart-dimension", {
    series: [{ label: "time" }, line("dimension", "green", { fill: wash("green") })],
    axes: [axis(time), axis()],
    scales: { y: { range: (_, low, high) => [1, Math.max(high == null ? 0 : 1 + (high - 1) * 1.15, 1.5)] } },
  });
  draw("chart-flight", {
    series: [{ label: "time" }, line("in flight", "purple", { fill: wash("purple"), paths: uPlot.paths.stepped({ align: 1 }) })],
    axes: [axis(time), axis()], scales: upwards(5),
  });

  let edges = [];
  const bins = (_, places) => places.map((place) => Number.isInteger(place) ? edges[place] ?? "" : "");
  draw("chart-delays", {
    padding: [10, 34, 0, 0],
    series: [
      { label: "delay", value: (_, value) => value == null ? "any" : `${edges[value]} to ${edges[value + 1]}` },
      line("outcomes", "blue", { fill: () => colour("blue"), width: 0, value: (chart, value, place) => digits(value ?? chart.data[place].reduce((sum, one) => sum + one, 0)), paths: uPlot.paths.bars({ size: [0.86, 90], align: 1, radius: 0.08 }) }),
    ],
    axes: [axis({ ...time, values: bins, space: 64, incrs: [1, 2, 3, 4, 6, 8, 12, 16], grid: { show: false } }), axis({ values: (_, places) => places.map((place) => place ? digits(place) : "") })],
    scales: { x: { time: false, range: () => [0, Math.max(edges.length - 1, 1)] }, ...upwards(5) },
  });

  const ask = async (address) => {
    const answer = await fetch(address, { headers: { Accept: "application/json" } });
    if (!answer.ok) throw new Error(`${answer.status}`);
    return answer.json();
  };
  const show = async () => {
    const [curves, delays] = await Promise.all([ask(holder.dataset.curves), ask(holder.dataset.delays)]);
    charts["chart-loss"].setData([curves.time, curves.learner, curves.holdout]);
    charts["chart-dimension"].setData([curves.time, curves.dimension]);
    charts["chart-flight"].setData([curves.time, curves.in_flight]);
    edges = delays.labels;
    charts["chart-delays"].setData([delays.counts.map((_, place) => place), delays.counts]);
    holder.dataset.points = curves.time.length;
  };

  const pulse = document.getElementById("pulse"), words = document.getElementById("pulse-words");
  const tell = (live) => {
    pulse.classList.toggle("lost", !live);
    words.textContent = live ? `live, ${new Date().toLocaleTimeString()}` : "no answer, trying again";
  };
  const tick = async () => {
    if (!document.hidden) {
      try { await show(); tell(true); } catch { tell(false); }
    }
    setTimeout(tick, EVERY);
  };
  tick();

  // Panels are replaced every two seconds; only a change in the number of alarms is worth saying aloud.
  let alarms = document.getElementById("alarms").dataset.count;
  document.body.addEventListener("htmx:oobAfterSwap", () => {
    const count = document.getElementById("alarms").dataset.count;
    if (count !== alarms) document.getElementById("said").textContent = count === "0" ? "No alarms" : `Alarms: ${count}`;
    alarms = count;
  });
})();
