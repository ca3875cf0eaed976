"use strict";
(() => {
  const root = document.documentElement;
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
    label, stroke: () => colour(name), width: 2, spanGaps: true, points: { show: isAlone, size: 7, fill: () => colour(name) },
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
  const whole = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 2e4, 5e4, 1e5];
  const upwards = (least) => ({ y: { range: (_, low, high) => [0, Math.max(high == null ? 0 : high * 1.12, least)] } });

  draw("chart-outcomes", {
    series: [{ label: "time" }, line("learner", "blue"), line("holdout", "vermillion", { dash: [6, 4] })],
    axes: [axis(time), axis({ size: 56 })],
  });
  draw("chart-decisions", {
    series: [{ label: "time" }, line("decisions", "green", { fill: wash("green") })],
    axes: [axis(time), axis({ size: 56, incrs: whole })], scales: upwards(1),
  });

  // The panels and the points of the charts come with the poll of htmx, every two seconds.
  const pulse = document.getElementById("pulse"), words = document.getElementById("pulse-words");
  const tell = (live) => {
    pulse.classList.toggle("lost", !live);
    words.textContent = live ? `live, ${new Date().toLocaleTimeString()}` : "no answer, trying again";
  };
  // A chart without a point shows its sentence instead.
  const fill = (id, columns) => {
    charts[id].setData(columns);
    document.getElementById(id).classList.toggle("empty", !columns.slice(1).flat().some((value) => value != null));
  };
  const show = () => {
    const given = document.getElementById("curves").dataset, curves = JSON.parse(given.curves);
    fill("chart-outcomes", [curves.time, curves.learner, curves.holdout]);
    fill("chart-decisions", [curves.time, curves.decisions]);
    document.getElementById("pace").textContent = given.pace;
    holder.dataset.points = curves.time.length;
  };
  show();
  tell(true);
  document.body.addEventListener("htmx:beforeRequest", (event) => { if (document.hidden) event.preventDefault(); });
  document.body.addEventListener("htmx:afterRequest", (event) => {
    if (event.detail.successful) show();
    tell(event.detail.successful);
  });

  // Panels are replaced every two seconds; only a change in the number of alarms is worth saying aloud.
  let alarms = document.getElementById("alarms").dataset.count;
  document.body.addEventListener("htmx:oobAfterSwap", () => {
    const count = document.getElementById("alarms").dataset.count;
    if (count !== alarms) document.getElementById("said").textContent = count === "0" ? "No alarms" : `Alarms: ${count}`;
    alarms = count;
  });
})();
