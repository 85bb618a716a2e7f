// The page checks itself: what it states of each target has to follow from the votes in it, by the checker in proof.js.
// "open" is what nothing is stated of, or what the page does not hold enough for.

const PROVED = "proved", REFUTED = "refuted", OPEN = "open";
const AT_ONCE_MS = 40; // then the page may answer its reader
const MOST_NAMED = 8;

// What is stated of single targets: a name, and what the checker says of target v.
function statementsOf({ meta, arrays }, proof) {
  const judge = (follows) => (follows ? PROVED : REFUTED);
  const sized = (sizes, check) => (v) => {
    if (sizes[v] === meta.any) return OPEN; // too large a number for the page to hold
    return sizes[v] < 0 ? (check(v, sizes[v]) ? OPEN : REFUTED) : judge(check(v, sizes[v]));
  };
  const listed = [
    { name: "Labels", of: (v) => judge(proof.label(v) === arrays.label[v]) },
    { name: "Radii", of: sized(arrays.radius, proof.radius) },
  ];
  if (arrays.structure) listed.push({ name: "Radii if no values change", of: sized(arrays.structure, proof.structureRadius) });
  if (arrays.neighbours && meta.task !== "graph") {
    const check = (v) => proof.newNeighbours(v, arrays.neighbours[v] === meta.any ? ANY_NEIGHBOURS : arrays.neighbours[v]);
    listed.push({ name: meta.neighbours_title, of: (v) => (arrays.neighbours[v] < 0 ? (check(v) ? OPEN : REFUTED) : judge(check(v))) });
  }
  return listed;
}

// The points of the curve that radii do not give. They are written with six places.
function wrongPoints({ meta, arrays }) {
  const counts = (v) => !meta.has_truth || arrays.truth[v] === arrays.label[v];
  const share = (size) => arrays.radius.reduce((sum, radius, v) => sum + (radius >= size && counts(v) ? 1 : 0), 0) / meta.num_judged;
  const { certified, every_size: every } = meta.charts.accuracy;
  const stated = [...certified, ...every];
  return { all: stated.length, wrong: stated.filter(({ x, y }) => !(Math.abs(share(x) - y) < 1e-6)).length };
}

async function checkPage(report, proof) {
  const begin = performance.now(), n = report.meta.num_targets;
  const rows = statementsOf(report, proof).map(({ name, of }) => ({ name, of, proved: 0, refuted: 0, open: 0, wrong: [] }));
  let pause = begin + AT_ONCE_MS;
  for (let v = 0; v < n; v++) {
    for (const row of rows) {
      const said = row.of(v);
      row[said]++;
      if (said === REFUTED) row.wrong.push(v);
    }
    if (performance.now() > pause) {
      await new Promise((resume) => { setTimeout(resume); });
      pause = performance.now() + AT_ONCE_MS;
    }
  }
  const { all, wrong } = wrongPoints(report);
  rows.push({ name: "Points of the curve", proved: all - wrong, refuted: wrong, open: 0, wrong: [] });
  return { rows, seconds: (performance.now() - begin) / 1000 };
}

function drawCheck(report, { rows, seconds }) {
  const { meta } = report;
  const sum = (kind) => rows.reduce((total, row) => total + row[kind], 0);
  const [proved, refuted, open] = [PROVED, REFUTED, OPEN].map(sum);
  const wrong = [...new Set(rows.flatMap((row) => row.wrong))], ids = wrong.slice(0, MOST_NAMED).map((v) => report.arrays.ids[v]);
  const more = wrong.length > MOST_NAMED ? ` and ${whole(wrong.length - MOST_NAMED)} more` : "";
  byId("self-check").hidden = false;
  byId("self-check").classList.toggle("alarm", refuted > 0);
  byId("self-check").textContent = refuted
    ? `Refuted: ${plural(refuted, "number")} of this page ${refuted === 1 ? "does" : "do"} not follow from its votes${ids.length ? `: see ${meta.target_title.toLowerCase()} ${ids.join(", ")}${more}` : ""}. Do not rely on it.`
    : `This page has checked itself: ${plural(proved, "number")} of it follow from its votes${open ? `, ${whole(open)} are open` : ""}, none is refuted.`;
  byId("self-check-rows").replaceChildren(...rows.map((row) => make("tr", {}, make("th", { scope: "row" }, row.name),
    ...[PROVED, REFUTED, OPEN].map((kind) => make("td", { class: "num" }, whole(row[kind]))))));
  byId("self-check-table").hidden = false;
  const single = meta.checker.kind === "votes" ? meta.num_detailed : meta.num_targets;
  byId("self-check-time").textContent = `It took ${seconds < 0.1 ? "less than 0.1" : seconds.toFixed(1)} s. ${single < meta.num_targets
    ? `Of ${plural(single, "target")} the page holds every vote; of the others it holds how many votes there are of each sort.` : "The page holds every vote."}`;
  Object.assign(document.documentElement.dataset, { checked: refuted ? REFUTED : PROVED });
  Object.assign(byId("self-check").dataset, { proved, refuted, open });
}

async function startCheck(report) {
  if (report.proof) drawCheck(report, await checkPage(report, report.proof));
}
