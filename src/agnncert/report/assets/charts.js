// The curves. Observable Plot draws SVG whose colours are the page's CSS variables, so dark mode and print follow.

const SERIES = {
  certified: { dash: null, width: 2.6 },
  neighbours: { dash: "1 4", width: 2.2 },
  structure: { dash: "7 3", width: 2.2 },
  attacked: { dash: null, width: 1.6, marker: true },
  undefended: { dash: "8 4", width: 1.6 },
  mlp: { dash: "3 3", width: 1.6 },
  no_edge: { dash: "10 3 2 3", width: 1.6 },
  majority: { dash: "5 2 1 2 1 2", width: 1.6 },
  bag: { dash: "2 5", width: 2 },
  size: { dash: "1 6", width: 1, marker: true },
  ceiling: { dash: "12 3", width: 2 },
  reference: { dash: "4 4 1 4", width: 2 },
};
const SVG = "http://www.w3.org/2000/svg";
const LABEL_GAP = 17;
const WIDE = 640;

function colour(key) { return `var(--c-${key})`; }

// A picture with a name, for those who do not see it.
function named(drawing) {
  for (const svg of [drawing, ...drawing.querySelectorAll("svg")]) {
    if (svg.tagName.toLowerCase() !== "svg" || svg.getAttribute("aria-hidden") === "true") continue;
    svg.setAttribute("role", "img");
    const title = document.createElementNS(SVG, "title");
    title.textContent = svg.getAttribute("aria-label") ?? "";
    svg.prepend(title);
  }
  return drawing;
}

function redrawOnResize(box, draw) {
  let width = 0;
  new ResizeObserver(() => {
    const now = Math.round(box.clientWidth);
    if (now === width || now === 0) return;
    width = now;
    box.replaceChildren(named(draw(now)));
  }).observe(box);
}

// Labels in the right margin, moved apart where lines lie close together.
function spreadLabels(labels, top, bottom) {
  const sorted = [...labels].sort((a, b) => a.y - b.y);
  sorted.forEach((label, i) => { label.at = Math.max(label.y, i ? sorted[i - 1].at + LABEL_GAP : top); });
  for (let i = sorted.length - 1, limit = bottom; i >= 0; i--, limit -= LABEL_GAP) {
    sorted[i].at = Math.min(sorted[i].at, limit);
  }
  return sorted;
}

function stepLine(points, key, extra = {}) {
  const look = SERIES[key];
  return Plot.line(points, {
    x: "x", y: "y", curve: "step-after", stroke: colour(key), strokeWidth: look.width, strokeDasharray: look.dash, ...extra,
  });
}

function drawAccuracy(chart, width) {
  const wide = width >= WIDE;
  const height = Math.round(Math.min(400, Math.max(260, width * 0.5)));
  const margin = { top: 24, bottom: 44, left: 46, right: wide ? 206 : 14 };
  const last = chart.max_size;
  const yAt = (share) => margin.top + (1 - share) * (height - margin.top - margin.bottom);
  const labels = chart.references.map((r) => ({ key: r.key, text: `${r.name} ${atLeast(r.value)}`, y: yAt(r.value) }));
  if (chart.attacked.length) {
    const end = chart.attacked.at(-1);
    labels.push({ key: "attacked", text: `attacked ${atLeast(end.y)}`, y: yAt(end.y) });
  }
  const placed = spreadLabels(labels, margin.top, height - margin.bottom);
  const marks = [
    Plot.axisY({ tickFormat: (v) => `${Math.round(100 * v)}\u00a0%`, ticks: 5, tickSize: 0, label: null, fontSize: 12 }),
    Plot.axisX({ label: chart.x_label, labelAnchor: "center", labelArrow: "none", tickSize: 4, ticks: Math.max(3, Math.round(width / 110)), tickFormat: (v) => (Number.isInteger(v) ? WHOLE.format(v) : ""), fontSize: 12, labelOffset: 40 }),
    Plot.gridY({ ticks: 5, stroke: "var(--line)", strokeOpacity: 1 }),
    Plot.areaY(chart.certified, { x: "x", y: "y", curve: "step-after", fill: colour("certified"), fillOpacity: 0.1 }),
    ...chart.references.map((r) =>
      Plot.ruleY([r.value], { stroke: colour(r.key), strokeWidth: SERIES[r.key].width, strokeDasharray: SERIES[r.key].dash })),
    chart.neighbours.length ? stepLine(chart.neighbours, "neighbours") : null,
    chart.structure.length ? stepLine(chart.structure, "structure") : null,
    ...chart.possible.map(({ key, points }) => stepLine(points, key)),
    stepLine(chart.certified, "certified"),
    // No single rule has this curve, so its points are hollow and hardly joined.
    chart.size_only.length ? Plot.line(chart.size_only, { x: "x", y: "y", stroke: colour("size"), strokeWidth: 1, strokeDasharray: SERIES.size.dash }) : null,
    chart.size_only.length ? Plot.dot(chart.size_only, { x: "x", y: "y", fill: "var(--paper)", stroke: colour("size"), r: 3.5, symbol: "diamond" }) : null,
    chart.attacked.length ? Plot.line(chart.attacked, { x: "x", y: "y", curve: "step-after", stroke: colour("attacked"), strokeWidth: 1.6 }) : null,
    chart.attacked.length ? Plot.dot(chart.attacked, { x: "x", y: "y", fill: colour("attacked"), stroke: "var(--paper)", r: 4, symbol: "diamond" }) : null,
    wide ? Plot.text(placed, {
      x: last, y: (d) => 1 - (d.at - margin.top) / (height - margin.top - margin.bottom), dx: 18, text: "text", textAnchor: "start", fill: "currentColor", fontSize: 12.5,
    }) : null,
    wide && !chart.structure.length ? Plot.text([curveLabel(chart, yAt, placed)], { x: "x", y: "y", text: "text", textAnchor: "start", fill: "currentColor", fontWeight: 600, fontSize: 12.5 }) : null,
    Plot.tip(chart.every_size, Plot.pointerX({ x: "x", y: "y", title: (d) => `${chart.size_word} ${d.x}\n${atLeast(d.y)} ${chart.y_word}`, fill: "var(--paper)", stroke: "var(--strong-line)", fontSize: 12.5 })),
  ];
  const svg = Plot.plot({
    width, height, marginTop: margin.top, marginBottom: margin.bottom, marginLeft: margin.left, marginRight: margin.right,
    x: { domain: [0, last] }, y: { domain: [0, 1] }, style: { background: "transparent", fontSize: "12px" },
    ariaLabel: chart.summary, marks,
  });
  if (wide) for (const label of placed) svg.append(leader(label, width - margin.right));
  return svg;
}

// From the end of a line to its name, in the line's colour.
function leader({ key, y, at }, x) {
  const path = document.createElementNS(SVG, "path");
  path.setAttribute("d", `M${x + 2} ${y} L${x + 14} ${at}`);
  path.setAttribute("fill", "none");
  path.setAttribute("stroke-width", 2);
  path.style.stroke = colour(key);
  return path;
}

// Under the curve, clear of the lines that cross there.
function curveLabel(chart, yAt, lines) {
  const x = chart.max_size * 0.3;
  const here = chart.every_size.filter((d) => d.x <= x).at(-1) ?? chart.every_size[0];
  if (here.y < 0.3) return { x, y: here.y + 0.06, text: chart.y_word }; // little room below: above it there is plenty
  const end = chart.every_size.filter((d) => d.x <= 1.8 * x).at(-1) ?? here; // the curve falls while the words go on
  const dy = [16, 30, 44, 58, 72].find((down) => lines.every((line) => Math.abs(line.y - yAt(end.y) - down) > 10)) ?? 16;
  return { x, y: Math.max(0.03, 1 - (yAt(end.y) + dy - yAt(1)) / (yAt(0) - yAt(1))), text: chart.y_word };
}

function legendSwatch(key, look = SERIES[key]) {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", "0 0 35 14");
  svg.setAttribute("aria-hidden", "true"); // the words beside it say what it is
  svg.setAttribute("role", "presentation");
  const line = document.createElementNS(SVG, "line");
  for (const [k, v] of Object.entries({ x1: 0, x2: 35, y1: 7, y2: 7, "stroke-width": look.width })) line.setAttribute(k, v);
  if (look.dash) line.setAttribute("stroke-dasharray", look.dash);
  line.style.stroke = look.stroke ?? colour(key);
  svg.append(line);
  if (look.marker) {
    const dot = document.createElementNS(SVG, "path");
    dot.setAttribute("d", "M17.5 2 l5 5 l-5 5 l-5 -5 z");
    dot.style.fill = colour(key);
    svg.append(dot);
  }
  return svg;
}

// A wide chart has the names of the straight lines beside them.
function drawLegend(list, chart, wide) {
  const items = [{ key: "certified", text: chart.y_word }];
  if (chart.structure.length) items.push({ key: "structure", text: chart.structure_word });
  if (chart.neighbours.length) items.push({ key: "neighbours", text: chart.neighbours_word });
  if (chart.size_only.length) items.push({ key: "size", text: chart.size_only_word });
  for (const { key, name } of chart.possible) items.push({ key, text: name });
  if (chart.attacked.length && !wide) items.push({ key: "attacked", text: `accuracy under attack (${atLeast(chart.attacked.at(-1).y)} at ${chart.attacked.at(-1).x})` });
  for (const r of wide ? [] : chart.references) items.push({ key: r.key, text: `${r.name} ${atLeast(r.value)}` });
  list.replaceChildren(...items.map((item) => make("li", {}, legendSwatch(item.key), item.text)));
  list.hidden = items.length < 2;
}

// One curve per class, each with its colour and dash; the rarest class is the strongest line.
const CLASS_DASHES = [null, "7 3", "2 3", "10 3 2 3", "4 2", "1 4", "12 4", "6 2 1 2 1 2"];

function curveLook(i) { return { stroke: `var(--k${i})`, width: i ? 2 : 3, dash: CLASS_DASHES[i] }; }

function drawClasses(chart, width) {
  const at = (curve, x) => curve.points.filter((point) => point.x <= x).at(-1).y;
  const sizes = [...new Set(chart.curves.flatMap((curve) => curve.points.map((point) => point.x)))];
  const told = (x) => [`size ${x}`, ...chart.curves.map((curve) => `${atLeast(at(curve, x))} recall of ${curve.name}`)].join("\n");
  return Plot.plot({
    width, height: Math.round(Math.min(360, Math.max(240, width * 0.42))), marginTop: 24, marginBottom: 44, marginLeft: 46, marginRight: 16,
    x: { domain: [0, chart.max_size] }, y: { domain: [0, 1] }, style: { background: "transparent", fontSize: "12px" },
    ariaLabel: chart.summary,
    marks: [
      Plot.axisY({ tickFormat: (v) => `${Math.round(100 * v)}\u00a0%`, ticks: 5, tickSize: 0, label: null, fontSize: 12 }),
      Plot.axisX({ label: chart.x_label, labelAnchor: "center", labelArrow: "none", tickSize: 4, ticks: Math.max(3, Math.round(width / 110)), tickFormat: (v) => (Number.isInteger(v) ? WHOLE.format(v) : ""), fontSize: 12, labelOffset: 40 }),
      Plot.gridY({ ticks: 5, stroke: "var(--line)", strokeOpacity: 1 }),
      ...chart.curves.map((curve, i) => {
        const { stroke, width: strokeWidth, dash } = curveLook(i);
        return Plot.line(curve.points, { x: "x", y: "y", curve: "step-after", stroke, strokeWidth, strokeDasharray: dash });
      }).reverse(),
      Plot.tip(sizes.map((x) => ({ x, y: at(chart.curves[0], x) })), Plot.pointerX({ x: "x", y: "y", title: (d) => told(d.x), fill: "var(--paper)", stroke: "var(--strong-line)", fontSize: 12.5 })),
    ],
  });
}

function drawDegree(chart, width) {
  const height = Math.round(Math.min(360, Math.max(240, width * 0.42)));
  const [low, high] = chart.domain;
  const note = width >= WIDE && chart.ceiling && high > 1 && low < 1;
  const room = (Math.log(high) / Math.log(high / low)) * (width - 62) > 340; // to the right of 1
  const underneath = (chart.points.find((d) => d.x >= 1)?.y ?? 0) > 0.75; // then the note goes under the curve
  return Plot.plot({
    width, height, marginTop: 24, marginBottom: 44, marginLeft: 46, marginRight: 16,
    x: { type: "log", domain: chart.domain }, y: { domain: [0, 1] }, style: { background: "transparent", fontSize: "12px" },
    ariaLabel: chart.summary,
    marks: [
      Plot.axisY({ tickFormat: (v) => `${Math.round(100 * v)}\u00a0%`, ticks: 5, tickSize: 0, label: null, fontSize: 12 }),
      Plot.axisX({ label: chart.x_label, labelAnchor: "center", labelArrow: "none", ticks: chart.ticks, tickFormat: (v) => `${v}`, tickSize: 4, fontSize: 12, labelOffset: 40 }),
      Plot.gridY({ ticks: 5, stroke: "var(--line)", strokeOpacity: 1 }),
      chart.ceiling && high > 1 ? Plot.rect([{}], { x1: Math.max(1, low), x2: high, y1: 0, y2: 1, fill: "var(--ink)", fillOpacity: 0.045 }) : null,
      Plot.areaY(chart.points, { x: "x", y: "y", curve: "step-before", fill: colour("certified"), fillOpacity: 0.1 }),
      stepLine(chart.points, "certified", { curve: "step-before" }),
      chart.ceiling && low < 1 && high > 1 ? Plot.ruleX([1], { stroke: "var(--ink)", strokeDasharray: "3 3" }) : null,
      note ? Plot.text([{ x: 1, y: underneath ? 0 : 1 }], { x: "x", y: "y", text: () => chart.ceiling, textAnchor: room ? "start" : "end", lineAnchor: underneath ? "bottom" : "top", dx: room ? 8 : -8, dy: underneath ? -8 : 6, fill: "currentColor", fontSize: 12.5, lineWidth: 13, stroke: "var(--paper)", strokeWidth: 3 }) : null,
      Plot.tip(chart.points, Plot.pointerX({ x: "x", y: "y", title: (d) => `${chart.ratio_word} ${Number(d.x.toPrecision(3))}\n${atLeast(d.y)} ${chart.y_word}`, fill: "var(--paper)", stroke: "var(--strong-line)", fontSize: 12.5 })),
    ],
  });
}

function startCharts(charts) {
  redrawOnResize(byId("accuracy-chart"), (width) => {
    drawLegend(byId("accuracy-legend"), charts.accuracy, width >= WIDE);
    return drawAccuracy(charts.accuracy, width);
  });
  if (charts.classes) {
    redrawOnResize(byId("classes-chart"), (width) => drawClasses(charts.classes, width));
    byId("classes-legend").replaceChildren(...charts.classes.curves.map((curve, i) =>
      make("li", {}, legendSwatch("", curveLook(i)), `recall of ${curve.name}`)));
    byId("classes-legend").hidden = false;
  }
  if (charts.degree) redrawOnResize(byId("degree-chart"), (width) => drawDegree(charts.degree, width));
}
