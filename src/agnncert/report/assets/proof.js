// What follows from the votes of this page, decided by the checker that is extracted from the proofs in Coq (vendor/checker.js,
// formal/browser). This file hands it the numbers of the page, and adds no arithmetic of its own.

const MOST_COUNT = 2 ** 31; // the checker takes all numbers from 2 ** 30 on for infinite
const ANY_NEIGHBOURS = -10;
const STABLE = 1, REACHED = 2, ONE_WAY = 4;

function listFor(numbers) { // an array of OCaml begins with its tag
  const list = [0];
  for (const number of numbers) list.push(number);
  return list;
}

function countFor(amount) { return amount === Infinity ? -1 : Math.min(amount, MOST_COUNT); }

function queryFor(budget) {
  return agnncertChecker.query(listFor(COUNT_FIELDS.map((field) => countFor(budget[field]))), budget.target_features ? 1 : 0);
}

// Every listed vote of a target in order of its group, as far as the page has them one by one.
function singleVotes({ arrays }, v) {
  const groups = [0], classes = [0], flags = [0];
  let group = -1;
  for (let i = arrays.indptr[v]; i < arrays.indptr[v + 1]; i++) {
    group += arrays.group_step[i];
    groups.push(group);
    classes.push(arrays.vote[i]);
    flags.push(arrays.flags[i]);
  }
  return { groups, classes, flags };
}

// As many votes of each sort as the page counts, for targets whose single votes are not in it. Which group casts which of
// them makes no difference. Votes that are no longer stable are of the classes for which the counts leave room.
function countedVotes(report, v) {
  const { meta, arrays } = report;
  const n = meta.num_targets, C = meta.num_classes, row = v * C;
  const classes = [0], flags = [0];
  const cast = (k, flag, times) => { for (let i = 0; i < times; i++) { classes.push(k); flags.push(flag); } };
  const oneWay = (k) => arrays.one_way_votes?.[row + k] ?? 0;
  for (let k = 0; k < C; k++) {
    const reached = arrays.votes_reached[row + k], both = Math.min(reached, oneWay(k));
    cast(k, STABLE | REACHED | ONE_WAY, both);
    cast(k, STABLE | REACHED, reached - both);
    cast(k, STABLE, arrays.votes_unreached?.[row + k] ?? 0);
  }
  let stillReached = arrays.num_reached[v] - arrays.size[v]; // stable abstentions are among the size, without a class
  const abstentions = (size, of) => size - of.subarray(row, row + C).reduce((sum, one) => sum + one, 0);
  cast(-1, STABLE | REACHED, abstentions(arrays.size[v], arrays.votes_reached));
  if (arrays.votes_unreached) cast(-1, STABLE, abstentions(arrays.size[n + v], arrays.votes_unreached));
  else cast(-1, STABLE, arrays.size[n + v]);
  let left = arrays.num_listed[v] - (classes.length - 1);
  const rest = meta.num_groups - arrays.num_listed[v];
  for (let k = 0; k < C && left > 0; k++) {
    const unlisted = meta.per_neighbour ? (k === meta.voting_rule.absent ? -arrays.num_listed[v] : 0) : arrays.default[v] === k ? rest : 0;
    const shown = report.counts(v)[k] - givenTo(report, v, k) - unlisted;
    const stable = arrays.votes_reached[row + k] + (arrays.votes_unreached?.[row + k] ?? 0);
    for (let open = shown - stable; open > 0 && left > 0; open--, left--) cast(k, stillReached-- > 0 ? REACHED : 0, 1);
  }
  for (; left > 0; left--) cast(-1, stillReached-- > 0 ? REACHED : 0, 1);
  return { groups: classes.map((_, place) => Math.max(0, place - 1)), classes, flags };
}

function votesProof(report) {
  const { meta, arrays } = report, { division, flags, numbers, prior, price } = meta.checker;
  const settings = agnncertChecker.settings(division, listFor(flags), listFor(numbers), listFor(prior), listFor(price));
  const hubs = listFor(arrays.targets_per_node ?? []), known = [];

  function counted(v) {
    if (known[v]) return known[v];
    const votes = (v < meta.num_detailed ? singleVotes : countedVotes)(report, v);
    const cover = listFor(arrays.reach.subarray(arrays.reach_ptr[v], arrays.reach_ptr[v + 1]));
    const noEdge = arrays.no_edge ? [arrays.no_edge[v], arrays.no_edge_stable[v]] : [-1, 1];
    const defaults = listFor([arrays.default[v], arrays.default_stable[v], ...noEdge]);
    return (known[v] = agnncertChecker.count(settings, votes.groups, votes.classes, votes.flags, cover, defaults));
  }

  function broken(query, fails) {
    const needs = [0], touches = [0], ofNodes = meta.task !== "graph";
    for (let v = 0; ofNodes && v < meta.num_targets; v++) {
      needs.push(agnncertChecker.need(settings, counted(v), query));
      if (meta.per_neighbour) touches.push(agnncertChecker.touchNeed(settings, counted(v), query));
    }
    return agnncertChecker.broken(settings, query, [0, meta.num_targets, fails], needs, touches, hubs);
  }

  return {
    broken,
    covered: (query) => meta.num_targets === 0 || agnncertChecker.covered(settings, counted(0), query) === 1,
    holds: (v, query) => agnncertChecker.holds(settings, counted(v), query) === 1,
    label: (v) => agnncertChecker.label(counted(v)),
    radius: (v, size) => agnncertChecker.radius(settings, counted(v), size) === 1,
    structureRadius: (v, size) => agnncertChecker.structureRadius(settings, counted(v), size) === 1,
    newNeighbours: (v, number) => agnncertChecker.newNeighbours(settings, counted(v), number) === 1,
  };
}

function stackedProof(report) {
  const { meta, arrays } = report, { kind, flags, numbers, pseudo_votes: pseudoVotes, rule, blind } = meta.checker;
  const settings = agnncertChecker.stackedSettings(listFor(flags), listFor(numbers), listFor(pseudoVotes));
  const C = meta.num_classes, first = runningSum(arrays.num_votes), hubs = listFor(arrays.targets_per_node);
  const structure = arrays.structure ?? arrays.radius, inPairs = kind === "pairs", known = [], rows = [];
  const rowOf = (array, row) => listFor(array.subarray(row * C, (row + 1) * C));
  const voteOf = (row) => (rows[row] ??= rowOf(arrays.table, row));

  function counted(v) {
    if (known[v]) return known[v];
    const votes = [0];
    for (let j = first[v]; j < first[v + 1]; j++) votes.push(voteOf(arrays.which[j]));
    return (known[v] = agnncertChecker.stackedCount(settings, rowOf(arrays.prior, v), rowOf(arrays.gate, v), votes));
  }

  function broken(query, fails) {
    if (inPairs) return fails; // one edge may touch many pairs
    const needs = [0];
    for (let v = 0; v < meta.num_targets; v++) {
      needs.push(agnncertChecker.stackedNeed(settings, counted(v), query, arrays.radius[v], structure[v]));
    }
    return agnncertChecker.stackedBroken(settings, query, fails, needs, hubs);
  }

  const { stackedHolds, pairsHold, stackedRadius, pairsRadius, stackedStructureRadius, pairsStructureRadius, stackedNewNeighbours,
    pairsNewNeighbours } = agnncertChecker;
  return {
    broken,
    covered: () => true,
    holds: (v, query) => (inPairs ? pairsHold(rule, blind, settings, counted(v), query) : stackedHolds(settings, counted(v), query)) === 1,
    label: (v) => agnncertChecker.stackedLabel(counted(v)),
    radius: (v, size) => (inPairs ? pairsRadius(rule, blind, settings, counted(v), size) : stackedRadius(settings, counted(v), size)) === 1,
    structureRadius: (v, size) =>
      (inPairs ? pairsStructureRadius(rule, settings, counted(v), size) : stackedStructureRadius(settings, counted(v), size)) === 1,
    newNeighbours: (v, number) =>
      (inPairs ? pairsNewNeighbours(rule, blind, settings, counted(v), number) : stackedNewNeighbours(settings, counted(v), number)) === 1,
  };
}

function makeProof(report) {
  if (!report.meta.checker) return null;
  return (report.meta.checker.kind === "votes" ? votesProof : stackedProof)(report);
}

// The answers of the sliders.
function rulesOfProof(report, proof) {
  const n = report.meta.num_targets;
  let asked = null, held = null; // the last budget, about which more than one thing is asked

  function holds(budget) {
    if (asked === budget) return held;
    const query = queryFor(budget);
    held = Uint8Array.from({ length: n }, (_, v) => (proof.holds(v, query) ? 1 : 0));
    asked = budget;
    return held;
  }

  function brokenAtMost(budget) {
    const fails = holds(budget).reduce((sum, one) => sum + 1 - one, 0);
    return proof.broken(queryFor(budget), fails);
  }

  return answersFrom(report, { holds, brokenAtMost, holdsOne: (budget, v) => proof.holds(v, queryFor(budget)), covers: (budget) => proof.covered(queryFor(budget)) });
}
