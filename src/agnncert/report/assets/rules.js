// What makes the sliders answer. For all theorems that the checker in proof.js knows, it does. For the theorem of somebody's own division,
// THEOREMS holds what that says of itself (page_rule), by its name: it turns an attack into { covered, moved(v), beyond, unlisted },
// three nested limits on the votes that can move, in all, beyond the reached ones, and among the unlisted ones. Only `moved` may
// differ by target.

const MOST = 2 ** 31;

function times(a, b) { return a > 0 && b > 0 ? a * b : 0; } // nothing times infinity is nothing

// What an attack amounts to, in the words of theorems.py.
function attackOf(budget) {
  const injectedEdges = times(budget.inject_nodes, budget.edges_per_injected);
  return {
    ...budget,
    edges: budget.add_edges + budget.delete_edges + budget.change_edges,
    nodes: budget.delete_nodes + budget.change_features,
    injectedEdges,
    joined: Math.min(budget.inject_nodes, injectedEdges),
    own: budget.target_features ? 1 : 0,
  };
}

// The most votes of target v that this many nodes reach.
function reachedBy({ reach: table, reach_ptr: ptr }, nodes, v) {
  const entry = Math.min(nodes, ptr[v + 1] - ptr[v]);
  return entry > 0 ? table[ptr[v] + entry - 1] : 0;
}

// The votes for class k with which target v starts, as they are shown and as they are counted.
function givenTo({ meta, arrays }, v, k) {
  return (meta.voting_rule.class_prior[k] ?? 0) + (arrays.no_edge && arrays.no_edge[v] === k ? meta.voting_rule.no_edge_prior : 0);
}

// The same without those that follow a prediction too close to call: these are handed to the attacker.
function surelyGivenTo(report, v, k) {
  const { meta, arrays } = report;
  return arrays.no_edge && !arrays.no_edge_stable[v] ? meta.voting_rule.class_prior[k] ?? 0 : givenTo(report, v, k);
}

// Votes for each class in each tier, and how far each class is from winning.
function tallyOf(report) {
  const { meta, arrays } = report;
  const n = meta.num_targets, C = meta.num_classes;
  const { label, size, default: byDefault, default_stable: clear } = arrays;
  const votes = [Int32Array.from(arrays.votes_reached), arrays.votes_unreached ? Int32Array.from(arrays.votes_unreached) : new Int32Array(n * C), new Int32Array(n * C)];
  const margin = new Float64Array(n * C);
  for (let v = 0; v < n; v++) {
    const row = v * C, a = label[v];
    if (clear[v] && byDefault[v] >= 0) votes[2][row + byDefault[v]] = size[2 * n + v];
    const inDoubt = arrays.no_edge && !arrays.no_edge_stable[v] ? Math.abs(meta.voting_rule.no_edge_prior) : 0;
    const conceded = meta.num_groups - size[v] - size[n + v] - size[2 * n + v] + inDoubt;
    const standing = (k) => votes[0][row + k] + votes[1][row + k] + votes[2][row + k] + surelyGivenTo(report, v, k);
    const own = standing(a);
    for (let k = 0; k < C; k++) margin[row + k] = own - standing(k) - conceded - (k < a ? 1 : 0);
  }
  return { n, C, label, size, votes, margin };
}

// The most for which a test holds, as largest_amount in theorems.py finds it: Infinity if for all, -1 if not even for 0.
function largestAmount(keeps) {
  if (!keeps(0)) return -1;
  if (keeps(Infinity)) return Infinity;
  let low = 0, high = 1;
  while (high < MOST && keeps(high)) { low = high; high *= 2; }
  while (high > low + 1) {
    const middle = Math.floor((low + high) / 2);
    if (keeps(middle)) low = middle; else high = middle;
  }
  return low;
}

// How many of these can be paid for, the cheapest first.
function affordable(prices, money) {
  prices.sort();
  let count = 0;
  for (let spent = 0; count < prices.length && prices[count] < Infinity; count++) {
    spent += prices[count];
    if (spent > money) break;
  }
  return count;
}

// A budget to { covered, holds(v), neighboursNeeded(v) }: what nested limits on the votes that move decide.
function judgeByReach(report, tally) {
  const { meta } = report;
  const { n, C, label, size, votes: [inside, listed, outside], margin } = tally;
  const theorem = (attack) => THEOREMS[meta.theorem](attack, { arrays: report.arrays, parameters: meta.parameters });

  // Whether target v keeps its label if at most `all` votes move, at most `beyond` of them …
  function withstands(v, all, beyond, unlisted) {
    const row = v * C, a = label[v], own = row + a;
    const s0 = size[v], s1 = size[n + v], s2 = size[2 * n + v];
    const gainTwo = Math.min(inside[own] + Math.min(listed[own] + Math.min(outside[own], unlisted), beyond), all);
    for (let k = 0, at = row; k < C; k++, at++) {
      if (k === a) continue;
      const gainOne = Math.min(s0 - inside[at] + Math.min(s1 - listed[at] + Math.min(s2 - outside[at], unlisted), beyond), all);
      if (margin[at] < gainTwo + gainOne) return false;
    }
    return true;
  }

  return (budget) => {
    const reach = theorem(attackOf(budget));
    const covered = reach.covered && (meta.own_features || !budget.target_features) && (meta.stable_ids || budget.delete_nodes === 0);
    const holds = (v) => covered && withstands(v, reach.moved(v), reach.beyond, reach.unlisted);

    // The fewest votes beyond the reached ones that must move before v can break; Infinity if v holds.
    function neighboursNeeded(v) {
      if (holds(v)) return Infinity;
      if (!meta.by_neighbours) return 0; // votes of all targets may move at once: no edge has to be shared
      const all = reach.moved(v);
      const keeps = (moved) => covered && withstands(v, all, Math.min(reach.beyond, moved), Math.min(reach.unlisted, moved));
      if (!keeps(0)) return 0;
      let low = 0, high = Math.min(Math.max(reach.beyond, reach.unlisted), meta.num_groups); // low holds, high does not
      while (high > low + 1) {
        const middle = (low + high) >> 1;
        if (keeps(middle)) low = middle; else high = middle;
      }
      return low + 1;
    }

    return { covered, holds, neighboursNeeded };
  };
}

function makeRules(report) {
  const proof = report.proof ?? makeProof(report);
  if (proof) return rulesOfProof(report, proof);
  const n = report.meta.num_targets, judge = judgeByReach(report, tallyOf(report));

  function holds(budget) {
    const within = judge(budget);
    return Uint8Array.from({ length: n }, (_, v) => (within.holds(v) ? 1 : 0));
  }

  function brokenAtMost(budget) {
    const kept = holds(budget).reduce((sum, one) => sum + one, 0);
    if (report.meta.task === "graph") return kept < n ? 1 : 0;
    let touched = 0;
    if (budget.target_features) {
      touched = budget.delete_nodes + Math.min(budget.change_features + 1, n - kept);
      budget = { ...budget, target_features: false, change_features: budget.change_features + 1 };
    }
    const within = judge(budget), needs = Float64Array.from({ length: n }, (_, v) => within.neighboursNeeded(v));
    const arriving = 2 * budget.add_edges + times(budget.inject_nodes, budget.edges_per_injected);
    return Math.min(n, touched + affordable(needs, arriving));
  }

  return answersFrom(report, { holds, brokenAtMost, holdsOne: (budget, v) => judge(budget).holds(v), covers: (budget) => judge(budget).covered });
}

// What the page asks, from what holds of one target and of all.
function answersFrom({ meta }, { holds, brokenAtMost, holdsOne, covers }) {
  // The most of one field that target v withstands on top of the rest: Infinity if any, -1 if not even the rest.
  function largestOne(field, rest, v) { return largestAmount((amount) => holdsOne({ ...rest, [field]: amount }, v)); }

  // A sentence if nothing at all is proved about such an attack.
  function whyNothing(budget) {
    if (budget.target_features && !meta.has_votes) return "Nothing is proved: a target's own features enter its score.";
    if (budget.target_features && !meta.own_features) return "Nothing is proved: a target's own features enter every one of its votes in this division.";
    if (budget.delete_nodes > 0 && meta.has_votes && !meta.stable_ids) return "Nothing is proved: nodes are known by their row numbers, and deleting one renames all later ones.";
    return covers(budget) ? null : "Nothing is proved: this division says nothing about at least one of these changes.";
  }

  return { holds, brokenAtMost, holdsOne, largestOne, whyNothing };
}
