// One target: its votes by class, its ballots one by one, and what it withstands.

const MOST_CELLS = 3000;
const COLOURS = 8;
const ABSTAIN = -1;

function classLook(k) {
  return k === ABSTAIN ? { background: "var(--line)", color: "var(--ink)" } : { background: `var(--k${k % COLOURS})`, color: `var(--t${k % COLOURS})` };
}

// The listed ballots of target v; the others all cast its default ballot.
function listedBallots(report, v) {
  const { arrays, meta } = report;
  if (v >= meta.num_detailed) return null;
  const ballots = [];
  let group = -1;
  for (let i = arrays.indptr[v]; i < arrays.indptr[v + 1]; i++) {
    group += arrays.group_step[i];
    ballots.push({ group, ballot: arrays.ballot[i], stable: (arrays.flags[i] & 1) !== 0, reached: (arrays.flags[i] & 2) !== 0 });
  }
  return ballots;
}

function ballotName(report, k) { return k === ABSTAIN ? "abstains" : report.className(k); }

function classBars(report, v, ballots) {
  const { meta, arrays } = report;
  const listed = new Float64Array(meta.num_classes);
  for (const { ballot } of ballots ?? []) if (ballot >= 0) listed[ballot] += 1;
  const counts = report.counts(v);
  const cast = Math.max(1, counts.reduce((sum, one) => sum + one, 0));
  const order = [...counts.keys()].filter((k) => counts[k] > 0 || k === arrays.label[v]).sort((a, b) => counts[b] - counts[a] || a - b).slice(0, 12);
  const rows = order.flatMap((k) => {
    const away = counts[k] - listed[k];
    const part = (count, pale) => make("span", { class: pale ? "pale" : null, style: { width: `${(100 * count) / cast}%`, background: `var(--k${k % COLOURS})` } });
    const split = ballots && listed[k] > 0 && away > 0 ? ` (${whole(listed[k])} ${meta.listed_short}, ${whole(away)} default)` : "";
    return [
      make("span", { class: "name", title: report.className(k) }, make("span", { class: "swatch", style: classLook(k) }), report.className(k)),
      make("span", { class: "track", "aria-hidden": "true" }, ballots ? part(listed[k], false) : null, part(ballots ? away : counts[k], Boolean(ballots))),
      make("span", { class: "count" }, `${whole(counts[k])}${split}`),
    ];
  });
  return make("div", { class: "classbars" }, ...rows);
}

function ballotGrid(report, v, ballots) {
  const { meta, arrays } = report;
  if (meta.num_groups > MOST_CELLS) return null;
  const byGroup = new Map(ballots.map((b) => [b.group, b]));
  const cells = [];
  for (let g = 0; g < meta.num_groups; g++) {
    const one = byGroup.get(g);
    const k = one ? one.ballot : arrays.default[v];
    const stable = one ? one.stable : arrays.default_stable[v] === 1;
    const look = [one ? (one.reached ? "reached" : "") : "away", stable ? "" : "shaky"].join(" ").trim();
    cells.push(make("span", { class: look || null, style: classLook(k), title: `subgraph ${g}: ${ballotName(report, k)}${one ? "" : " (default)"}${stable ? "" : ", too close to call"}` }, k === ABSTAIN ? "–" : `${k}`));
  }
  const summary = `${meta.num_groups} ballots, ${ballots.length} of them ${meta.listed_short}; the table below lists these.`;
  return make("div", { class: "ballots", role: "img", "aria-label": summary }, ...cells);
}

function ballotTable(report, ballots) {
  const rows = ballots.map((b) => make("tr", {},
    make("td", { class: "num" }, `${b.group}`), make("td", {}, ballotName(report, b.ballot)),
    make("td", {}, b.reached ? "yes" : "no"), make("td", {}, b.stable ? "yes" : make("span", { class: "wrong" }, "no, conceded to the attacker"))));
  const head = ["Subgraph", "Ballot", report.meta.reached_title, "Clear of rounding"].map((title, i) => make("th", { scope: "col", class: i ? null : "num" }, title));
  return make("details", { open: ballots.length <= 12 }, make("summary", {}, `The ${plural(ballots.length, "ballot")} ${report.meta.listed_short}, one by one`),
    make("div", { class: "tablebox" }, make("table", { class: "values" }, make("thead", {}, make("tr", {}, ...head)), make("tbody", {}, ...rows))));
}

function withstoodTable(report, v) {
  const { meta, rules } = report;
  const rows = meta.withstood.map(({ name, field, unlimited }) => {
    const base = { ...emptyBudget(), ...Object.fromEntries(unlimited.map((f) => [f, Infinity])) };
    const most = field === "target_features"
      ? (rules.holdsOne({ ...base, target_features: true }, v) ? "yes" : "no")
      : report.amount(rules.largestOne(field, base, v));
    return make("tr", {}, make("td", {}, name), make("td", { class: "num" }, most));
  });
  return make("div", { class: "tablebox" }, make("table", { class: "values" },
    make("thead", {}, make("tr", {}, make("th", { scope: "col" }, "If the attacker does only this:"), make("th", { scope: "col", class: "num" }, "at most"))),
    make("tbody", {}, ...rows)));
}

function detailSentences(report, v, ballots) {
  const { meta, arrays } = report;
  const label = report.className(arrays.label[v]);
  const [top, next] = report.topTwo(v);
  const truth = meta.has_truth ? (arrays.truth[v] < 0 ? "" : arrays.truth[v] === arrays.label[v] ? ", which is correct" : `; the truth is ${report.className(arrays.truth[v])}`) : "";
  const sentences = [`${whole(top)} of ${whole(meta.num_ballots)} ${meta.ballot_word} are for ${label}${truth}. The runner-up has ${whole(next)}.`];
  if (ballots) {
    const names = ballots.slice(0, 24).map((b) => b.group).join(", ") + (ballots.length > 24 ? ", …" : "");
    sentences.push(ballots.length ? `${meta.listed_sentence.replace("{count}", whole(ballots.length)).replace("{groups}", names)}` : meta.none_listed_sentence);
    const others = meta.num_groups - ballots.length;
    if (others) sentences.push(meta.default_sentence.replace("{count}", whole(others)).replace("{ballot}", ballotName(report, arrays.default[v])));
  } else if (meta.has_ballots) {
    sentences.push("Its single ballots are not in this page, to keep the file small; they are in the certificate file.");
  }
  sentences.push(arrays.radius[v] < 0
    ? "Nothing is certified for it: ballots too close to call, all conceded to the attacker, may decide the vote."
    : meta.radius_sentence.replace("{radius}", report.amount(arrays.radius[v])));
  return make("p", {}, sentences.join(" "));
}

function drawTarget(report, v) {
  const { meta, arrays } = report;
  const ballots = meta.has_ballots ? listedBallots(report, v) : null;
  byId("onetarget").replaceChildren(
    make("h3", {}, `${meta.task === "node" ? "Node" : "Graph"} ${arrays.ids[v]}`),
    detailSentences(report, v, ballots),
    classBars(report, v, ballots),
    ...(ballots ? [
      make("p", { class: "small quiet" }, `One square for each subgraph, from 0 to ${meta.num_groups - 1}; the number is the class voted for. ${meta.grid_sentence}`),
      ballotGrid(report, v, ballots) ?? make("p", { class: "small quiet" }, "There are too many subgraphs to draw each one."),
      ballots.length ? ballotTable(report, ballots) : null,
    ].filter(Boolean) : []),
    ...(report.rules ? [make("h4", {}, "What it withstands"), withstoodTable(report, v)] : []),
  );
  wireTableBoxes(byId("onetarget"));
}

function startDetail(report) {
  const { arrays, meta } = report;
  const rowOf = new Map(arrays.ids.map((id, v) => [id, v]));
  byId("choose").addEventListener("submit", (event) => {
    event.preventDefault();
    const typed = byId("choose-id").value, wanted = typed.trim();
    const v = rowOf.get(typed) ?? rowOf.get(wanted) ?? arrays.ids.findIndex((id) => id.trim() === wanted);
    byId("choose-status").textContent = v >= 0 ? "" : `There is no target with the id “${wanted}”.`;
    if (v >= 0) report.showTarget(v, false);
  });
  if (meta.num_targets) report.showTarget(meta.example, false);
}
