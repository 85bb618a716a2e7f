// One target: its votes by class, its ballots one by one, and what it is certified against.

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
    ballots.push({ group, ballot: arrays.ballot[i], stable: (arrays.flags[i] & 1) !== 0, reached: (arrays.flags[i] & 2) !== 0, oneWay: (arrays.flags[i] & 4) !== 0 });
  }
  return ballots;
}

function ballotName(report, k) { return k === ABSTAIN ? "abstains" : report.className(k); }

// Where the votes of class k come from: ballots that are listed, the other ones, what was given in advance, and what ballots
// take away from the class that empty groups would vote for. Only the sum is known if the single ballots are not in the page.
function sourcesOf(report, v, k, ballots) {
  const { meta } = report;
  if (!meta.rule) return [];
  const given = givenTo(report, v, k);
  const taken = meta.per_neighbour && k === meta.vote.absent;
  const rest = report.counts(v)[k] - given;
  if (!ballots) return [{ votes: rest, look: "", words: meta.ballot_word }, { votes: given, look: "given", words: "given in advance" }];
  const listed = ballots.reduce((sum, { ballot }) => sum + (ballot === k ? 1 : 0), 0);
  return [
    { votes: listed, look: "", words: meta.listed_short },
    taken ? { votes: -ballots.length, look: "pale", words: "for the ballots that are cast" } : { votes: rest - listed, look: "pale", words: meta.default_short },
    { votes: given, look: "given", words: "given in advance" },
  ];
}

function classBars(report, v, ballots) {
  const { arrays, meta } = report;
  const counts = report.counts(v);
  const least = meta.steps === 1 ? 0 : Math.min(...counts); // scores may all be negative: bars begin at the smallest
  const cast = Math.max(1, counts.reduce((sum, one) => sum + Math.max(0, one - least), 0));
  const order = [...counts.keys()].filter((k) => counts[k] !== 0 || k === arrays.label[v]).sort((a, b) => counts[b] - counts[a] || a - b).slice(0, 12);
  const rows = order.flatMap((k) => {
    const sources = sourcesOf(report, v, k, ballots).filter(({ votes }) => votes !== 0);
    const bars = sources.length && sources.every(({ votes }) => votes > 0) ? sources : [{ votes: Math.max(0, counts[k] - least), look: "" }];
    const split = sources.length > 1 ? ` (${sources.map(({ votes, words }) => `${whole(votes)} ${words}`).join(", ")})` : "";
    return [
      make("span", { class: "name", title: report.className(k) }, make("span", { class: "swatch", style: classLook(k) }), report.className(k)),
      make("span", { class: "track", "aria-hidden": "true" }, ...bars.map(({ votes, look }) =>
        make("span", { class: look || null, style: { width: `${(100 * votes) / cast}%`, "background-color": `var(--k${k % COLOURS})` } }))),
      make("span", { class: "count" }, `${report.votes(counts[k])}${split}`),
    ];
  });
  return make("div", { class: "classbars" }, ...rows);
}

// All ballots in order of their subgraphs; where neighbours have groups of their own, those that are cast.
function ballotCells(report, v, ballots) {
  const { meta, arrays } = report;
  if (meta.per_neighbour) return ballots;
  const byGroup = new Map(ballots.map((b) => [b.group, b]));
  const away = { ballot: arrays.default[v], stable: arrays.default_stable[v] === 1, away: true };
  return Array.from({ length: meta.num_groups }, (_, group) => byGroup.get(group) ?? { ...away, group });
}

function ballotGrid(report, v, ballots) {
  const { meta } = report;
  if ((meta.per_neighbour ? ballots.length : meta.num_groups) > MOST_CELLS) return null;
  const cells = ballotCells(report, v, ballots).map(({ group, ballot, stable, reached, away }) => {
    const look = [away ? "away" : reached && !meta.per_neighbour ? "reached" : "", stable ? "" : "shaky"].join(" ").trim();
    const title = `${meta.group_title.toLowerCase()} ${group}: ${ballotName(report, ballot)}${away ? " (default)" : ""}${stable ? "" : ", too close to call"}`;
    return make("span", { class: look || null, style: classLook(ballot), title }, ballot === ABSTAIN ? "–" : `${ballot}`);
  });
  const summary = `${cells.length} ballots, ${ballots.length} of them ${meta.listed_short}; the table below lists these.`;
  return make("div", { class: "ballots", role: "img", "aria-label": summary }, ...cells);
}

function ballotTable(report, ballots) {
  const { meta } = report;
  const columns = [[meta.group_title, (b) => `${b.group}`], ["Ballot", (b) => ballotName(report, b.ballot)]];
  if (!meta.per_neighbour) columns.push([meta.reached_title, (b) => (b.reached ? "yes" : "no")]);
  if (meta.one_way) columns.push(["One direction only", (b) => (b.oneWay ? "yes" : "no")]);
  columns.push(["Clear of rounding", (b) => (b.stable ? "yes" : make("span", { class: "wrong" }, "no, conceded to the attacker"))]);
  const look = (i) => ({ class: i ? null : "num" });
  const head = columns.map(([title], i) => make("th", { scope: "col", ...look(i) }, title));
  const rows = ballots.map((b) => make("tr", {}, ...columns.map(([, cell], i) => make("td", look(i), cell(b)))));
  return make("details", { open: ballots.length <= 12 }, make("summary", {}, `The ${plural(ballots.length, "ballot")} ${meta.listed_short}, one by one`),
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
  const sentences = [meta.steps > 1
    ? `The score of ${label} is ${report.votes(top)}${truth}. The runner-up has ${report.votes(next)}.`
    : meta.vote?.unusual
    ? `${label} has ${plural(top, "vote")}${truth}. The runner-up has ${whole(next)}.`
    : `${whole(top)} of ${whole(meta.num_ballots)} ${meta.ballot_word} are for ${label}${truth}. The runner-up has ${whole(next)}.`];
  if (ballots) {
    const names = ballots.slice(0, 24).map((b) => b.group).join(", ") + (ballots.length > 24 ? ", …" : "");
    sentences.push(ballots.length ? `${meta.listed_sentence.replace("{count}", whole(ballots.length)).replace("{groups}", names)}` : meta.none_listed_sentence);
    const others = meta.per_neighbour ? 0 : meta.num_groups - ballots.length;
    if (others) sentences.push(meta.default_sentence.replace("{count}", whole(others)).replace("{ballot}", ballotName(report, arrays.default[v])));
  } else if (meta.has_ballots) {
    sentences.push("Its single ballots are not in this page, to keep the file small; they are in the certificate file.");
  }
  sentences.push(arrays.radius[v] < 0
    ? "Nothing is certified for it: ballots too close to call, all conceded to the attacker, may decide the vote."
    : meta.radius_sentence.replace("{radius}", report.amount(arrays.radius[v])).replace("{structure}", arrays.structure ? report.amount(arrays.structure[v]) : ""));
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
      make("p", { class: "small quiet" }, meta.per_neighbour ? meta.grid_sentence
        : `One square for each subgraph, from 0 to ${meta.num_groups - 1}; the number is the class voted for. ${meta.grid_sentence}`),
      ballotGrid(report, v, ballots) ?? make("p", { class: "small quiet" }, "There are too many ballots to draw each one."),
      ballots.length ? ballotTable(report, ballots) : null,
    ].filter(Boolean) : []),
    ...(report.rules ? [make("h4", {}, "What it is certified against"), withstoodTable(report, v)] : []),
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
