// One target: its votes by class, its votes one by one, and what it is certified against.

const MOST_CELLS = 3000;
const COLOURS = 8;
const ABSTAIN = -1;

function classLook(k) {
  return k === ABSTAIN ? { background: "var(--line)", color: "var(--ink)" } : { background: `var(--k${k % COLOURS})`, color: `var(--t${k % COLOURS})` };
}

// The listed votes of target v; the others all cast its default vote.
function listVotes(report, v) {
  const { arrays, meta } = report;
  if (v >= meta.num_detailed) return null;
  const listedVotes = [];
  let group = -1;
  for (let i = arrays.indptr[v]; i < arrays.indptr[v + 1]; i++) {
    group += arrays.group_step[i];
    listedVotes.push({ group, vote: arrays.vote[i], stable: (arrays.flags[i] & 1) !== 0, reached: (arrays.flags[i] & 2) !== 0, oneWay: (arrays.flags[i] & 4) !== 0 });
  }
  return listedVotes;
}

function voteName(report, k) { return k === ABSTAIN ? "abstains" : report.className(k); }

// Where the votes of class k come from: votes that are listed, the other ones, what was given in advance, and what votes
// take away from the class that empty groups would vote for. Only the sum is known if the single votes are not in the page.
function sourcesOf(report, v, k, listedVotes) {
  const { meta } = report;
  if (!meta.has_votes) return [];
  const given = givenTo(report, v, k);
  const taken = meta.per_neighbour && k === meta.voting_rule.absent;
  const rest = report.counts(v)[k] - given;
  if (!listedVotes) return [{ votes: rest, look: "", words: meta.count_words.many }, { votes: given, look: "given", words: "given in advance" }];
  const listed = listedVotes.reduce((sum, { vote }) => sum + (vote === k ? 1 : 0), 0);
  return [
    { votes: listed, look: "", words: meta.listed_short },
    taken ? { votes: -listedVotes.length, look: "pale", words: "for the votes that are cast" } : { votes: rest - listed, look: "pale", words: meta.default_short },
    { votes: given, look: "given", words: "given in advance" },
  ];
}

function classBars(report, v, listedVotes) {
  const { arrays, meta } = report;
  const counts = report.counts(v);
  const least = meta.has_votes ? 0 : Math.min(0, ...counts); // scores may be negative: bars begin at the smallest
  const cast = Math.max(1, counts.reduce((sum, one) => sum + Math.max(0, one - least), 0));
  const order = [...counts.keys()].filter((k) => counts[k] !== 0 || k === arrays.label[v]).sort((a, b) => counts[b] - counts[a] || a - b).slice(0, 12);
  const rows = order.flatMap((k) => {
    const sources = sourcesOf(report, v, k, listedVotes).filter(({ votes }) => votes !== 0);
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

// All votes in order of their subgraphs; where neighbours have groups of their own, those that are cast.
function voteCells(report, v, listedVotes) {
  const { meta, arrays } = report;
  if (meta.per_neighbour) return listedVotes;
  const byGroup = new Map(listedVotes.map((b) => [b.group, b]));
  const away = { vote: arrays.default[v], stable: arrays.default_stable[v] === 1, away: true };
  return Array.from({ length: meta.num_groups }, (_, group) => byGroup.get(group) ?? { ...away, group });
}

function voteGrid(report, v, listedVotes) {
  const { meta } = report;
  if ((meta.per_neighbour ? listedVotes.length : meta.num_groups) > MOST_CELLS) return null;
  const cells = voteCells(report, v, listedVotes).map(({ group, vote, stable, reached, away }) => {
    const look = [away ? "away" : reached && !meta.per_neighbour ? "reached" : "", stable ? "" : "shaky"].join(" ").trim();
    const title = `${meta.group_title.toLowerCase()} ${group}: ${voteName(report, vote)}${away ? " (default)" : ""}${stable ? "" : ", too close to call"}`;
    return make("span", { class: look || null, style: classLook(vote), title }, vote === ABSTAIN ? "–" : `${vote}`);
  });
  const summary = `${cells.length} votes, ${listedVotes.length} of them ${meta.listed_short}; the table below lists these.`;
  return make("div", { class: "votes", role: "img", "aria-label": summary }, ...cells);
}

function voteTable(report, listedVotes) {
  const { meta } = report;
  const columns = [[meta.group_title, (b) => `${b.group}`], ["Vote", (b) => voteName(report, b.vote)]];
  if (!meta.per_neighbour) columns.push([meta.reached_title, (b) => (b.reached ? "yes" : "no")]);
  if (meta.one_way) columns.push(["One direction only", (b) => (b.oneWay ? "yes" : "no")]);
  columns.push(["Clear of rounding", (b) => (b.stable ? "yes" : make("span", { class: "wrong" }, "no, conceded to the attacker"))]);
  const look = (i) => ({ class: i ? null : "num" });
  const head = columns.map(([title], i) => make("th", { scope: "col", ...look(i) }, title));
  const rows = listedVotes.map((b) => make("tr", {}, ...columns.map(([, cell], i) => make("td", look(i), cell(b)))));
  return make("details", { open: listedVotes.length <= 12 }, make("summary", {}, `The ${plural(listedVotes.length, "vote")} ${meta.listed_short}, one by one`),
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

// A sentence with the values of its placeholders; a value that looks like a placeholder stays as it is.
function fill(sentence, values) {
  return sentence.replace(/\{(\w+)\}/g, (found, name) => values[name] ?? found);
}

function detailSentences(report, v, listedVotes) {
  const { meta, arrays } = report;
  const label = report.className(arrays.label[v]);
  const [top, next] = report.topTwo(v);
  const truth = meta.has_truth ? (arrays.truth[v] < 0 ? "" : arrays.truth[v] === arrays.label[v] ? ", which is correct" : `; the truth is ${report.className(arrays.truth[v])}`) : "";
  const words = meta.count_words;
  const sentences = [fill(words.of_target, {
    label, truth, top: report.votes(top), next: report.votes(next), total: whole(words.total), unit: top === words.scale ? words.one : words.many,
  })];
  if (listedVotes) {
    const names = listedVotes.slice(0, 24).map((b) => b.group).join(", ") + (listedVotes.length > 24 ? ", …" : "");
    sentences.push(listedVotes.length ? `${meta.listed_sentence.replace("{count}", whole(listedVotes.length)).replace("{groups}", names)}` : meta.none_listed_sentence);
    const others = meta.per_neighbour ? 0 : meta.num_groups - listedVotes.length;
    if (others) sentences.push(meta.default_sentence.replace("{count}", whole(others)).replace("{vote}", voteName(report, arrays.default[v])));
  } else if (meta.has_votes) {
    sentences.push("Its single votes are not in this page, to keep the file small; they are in the certificate file.");
  }
  sentences.push(arrays.radius[v] < 0
    ? meta.nothing_proved
    : meta.radius_sentence.replace("{radius}", report.amount(arrays.radius[v])).replace("{structure}", arrays.structure ? report.amount(arrays.structure[v]) : ""));
  return make("p", {}, sentences.join(" "));
}

function drawTarget(report, v) {
  const { meta, arrays } = report;
  const listedVotes = meta.has_votes ? listVotes(report, v) : null;
  byId("onetarget").replaceChildren(
    make("h3", {}, `${meta.target_title} ${arrays.ids[v]}`),
    detailSentences(report, v, listedVotes),
    classBars(report, v, listedVotes),
    ...(listedVotes ? [
      make("p", { class: "small quiet" }, meta.per_neighbour ? meta.grid_sentence
        : `One square for each subgraph, from 0 to ${meta.num_groups - 1}; the number is the class voted for. ${meta.grid_sentence}`),
      voteGrid(report, v, listedVotes) ?? make("p", { class: "small quiet" }, "There are too many votes to draw each one."),
      listedVotes.length ? voteTable(report, listedVotes) : null,
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
