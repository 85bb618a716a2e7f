// Theorems 10 and 11 (stacked/evidence.py) once more: a score, and a list of bounded votes. The browser tests hold both, and
// the verifier, to the same answers. All numbers are whole. Where a lead is too close to zero for a double, it is computed exactly.

const NEARLY = 2 ** -48; // doubles are exact to 2 ** -53, and a lead has a few terms

// Whether prior * divisor + votes - paid * cap is positive, or zero where the label wins ties.
function isAhead(prior, divisor, votes, paid, cap, winsTies) {
  const gained = prior * divisor, lost = paid * cap, lead = gained + votes - lost;
  if (Math.abs(lead) > NEARLY * (Math.abs(gained) + Math.abs(votes) + Math.abs(lost))) return lead > 0;
  const exact = BigInt(prior) * BigInt(divisor) + BigInt(votes) - BigInt(paid) * BigInt(cap);
  return exact > 0n || (exact === 0n && winsTies);
}

// Targets, with what each rival k lacks to win; found when a target is first asked about.
function stackedLeads({ meta, arrays }) {
  const { steps: S, slack, gated, pseudo, pseudo_votes: pseudoVotes } = meta.parameters;
  const C = meta.num_classes, { prior, gate, which, table, label } = arrays;
  const first = runningSum(arrays.num_votes), known = [];
  const allPseudo = pseudoVotes.reduce((sum, votes) => sum + votes, 0);

  function rivalOf(v, k, a, sums) {
    const row = v * C, degree = first[v + 1] - first[v], gateA = gate[row + a], gateK = gate[row + k];
    const delta = new Float64Array(degree);
    for (let j = 0; j < degree; j++) {
      const vote = which[first[v] + j] * C;
      delta[j] = gateA * table[vote + a] - gateK * table[vote + k];
    }
    delta.sort().reverse();
    const largest = new Float64Array(degree + 1); // sum of the x largest delta
    for (let j = 0; j < degree; j++) largest[j + 1] = largest[j] + delta[j];
    const byGates = gated ? 2 * (S * slack + slack * slack) : 0, byPseudo = gated ? allPseudo * slack * 2 : 0;
    return {
      k, largest,
      prior: prior[row + a] - prior[row + k] - 2 * slack,
      votes: gateA * (sums[a] + (pseudoVotes[a] ?? 0)) - gateK * (sums[k] + (pseudoVotes[k] ?? 0)) - degree * ((gateA + gateK) * slack + byGates) - byPseudo,
      cap: (gateK + (gated ? slack : 0)) * S,
      winsTies: a <= k,
    };
  }

  return (v) => {
    if (known[v]) return known[v];
    const a = label[v], sums = new Float64Array(C), rivals = [];
    for (let j = first[v]; j < first[v + 1]; j++) for (let k = 0; k < C; k++) sums[k] += table[which[j] * C + k];
    for (let k = 0; k < C; k++) if (k !== a) rivals.push(rivalOf(v, k, a, sums));
    const neighbours = which.subarray(first[v], first[v + 1]);
    return (known[v] = { degree: neighbours.length, label: a, neighbours, rivals, divisor: (d) => (pseudo ? pseudo + S * d : S) });
  };
}

// One level: so many neighbours are new, lost and altered.
function withstandsTouched({ degree, rivals, divisor }, { fresh, lost, altered }, { steps: S, pseudo, by_edge: byEdge, most_new: mostNew }) {
  const unlimited = fresh > mostNew, added = unlimited ? 0 : fresh;
  const growths = pseudo ? [[0, 0], [added, added], ...(byEdge ? [[0, added]] : [])] : [[0, added]]; // [gained, for the rival]
  for (const { prior, votes, cap, largest, winsTies } of rivals) {
    const slope = Math.min(pseudo ? prior * S - cap : -cap, byEdge ? -cap : Infinity);
    if (unlimited && slope < 0) return false;
    for (let gone = 0; gone <= Math.min(lost, degree); gone++) {
      const kept = degree - gone, turned = Math.min(altered, kept);
      const left = votes - largest[gone + turned];
      for (const [gained, paid] of growths) {
        if (!isAhead(prior, divisor(kept + gained), left, paid + turned, cap, winsTies)) return false;
      }
    }
  }
  return true;
}

// Steps by which nodes that come or go can move a vote from the label to a rival; `factor` is what they do to odds, 0 if too much to matter.
function movedByNodes(own, rival, factor, S, slack) {
  if (!factor) return own - rival + S;
  const one = 2 ** 16, low = Math.max(own - slack, 0), high = Math.min(rival + slack + 1, S);
  const fallen = wholeQuotient(S * low * one, low * one + factor * (S - low));
  const rest = one * (S - high), all = factor * high + rest;
  const risen = S - wholeQuotient(S * rest + all - 1, all); // S x / (x + y), rounded down, without a product that a double cannot hold
  return own - rival - fallen + risen;
}

function wholeQuotient(a, b) {
  const q = Math.floor(a / b);
  return q * b > a ? q - 1 : (q + 1) * b <= a ? q + 1 : q;
}

// Two levels: edges anywhere, and nodes that come or go.
function withstandsSecond({ label, neighbours, rivals }, edges, nodes, { arrays, meta }) {
  const { steps: S, slack, most_new: mostNew, factors, uses_votes: usesVotes } = meta.parameters;
  if (usesVotes && (edges > mostNew || nodes > mostNew)) return false;
  const C = meta.num_classes, number = nodes > mostNew ? 0 : nodes, price = usesVotes && edges <= mostNew ? edges : 0;
  for (const { k, prior, votes, winsTies } of rivals) {
    let loss = 0;
    if (number && usesVotes) {
      const factor = factors[number] ?? 0;
      for (const row of neighbours) loss += movedByNodes(arrays.table[row * C + label], arrays.table[row * C + k], factor, S, slack);
    }
    const paid = price + (usesVotes ? number : 0);
    if (!isAhead(prior, S, votes - loss * S, paid, S * S, winsTies)) return false;
  }
  return true;
}

// What an attack on a pair amounts to as one on a node (votes_reached in pairs/evidence.py): votes that come and go.
function inVotes(budget, { pairs }) {
  if (!pairs) return budget;
  if (pairs.rule === "trusted") return { ...budget, inject_nodes: 0, delete_nodes: 0, change_features: 0 };
  const isEnough = pairs.rule !== "common" || budget.edges_per_injected >= 2; // a common neighbour has two edges
  return {
    ...budget,
    add_edges: pairs.edge * budget.add_edges,
    delete_edges: pairs.edge * budget.delete_edges,
    inject_nodes: isEnough ? pairs.node * budget.inject_nodes : 0,
    delete_nodes: pairs.node * budget.delete_nodes,
    change_features: pairs.blind ? 0 : pairs.node * budget.change_features,
  };
}

function makeStackedRules(report) {
  const { meta, arrays } = report;
  const n = meta.num_targets, parameters = meta.parameters, leadsOf = stackedLeads(report);

  function holdsOne(budget, v) {
    if (budget.target_features) return false;
    const { joined, ...attack } = attackOf(inVotes(budget, parameters));
    if (parameters.second) {
      const nodes = joined + attack.delete_nodes + 2 * attack.change_features;
      return withstandsSecond(leadsOf(v), attack.add_edges + attack.delete_edges, nodes, report);
    }
    const altered = attack.change_features + (parameters.by_edge ? attack.change_edges : 0);
    return withstandsTouched(leadsOf(v), { fresh: attack.add_edges + joined, lost: attack.delete_edges + attack.delete_nodes, altered }, parameters);
  }

  function holds(budget) { return Uint8Array.from({ length: n }, (_, v) => (holdsOne(budget, v) ? 1 : 0)); }

  function brokenAtMost(budget) {
    const held = holds(budget), fails = [];
    for (let v = 0; v < n; v++) if (!held[v]) fails.push(v);
    if (parameters.second || parameters.pairs || budget.target_features) return fails.length; // one edge may touch many pairs
    const changed = parameters.by_edge ? budget.change_edges : 0;
    const radius = budget.change_features || changed || !arrays.structure ? arrays.radius : arrays.structure;
    const nodes = Math.min(arrays.targets_per_node.length, budget.delete_nodes + budget.change_features);
    const byNodes = arrays.targets_per_node.subarray(0, nodes).reduce((sum, one) => sum + one, 0);
    const touches = 2 * (budget.add_edges + budget.delete_edges + changed) + times(budget.inject_nodes, budget.edges_per_injected) + byNodes;
    return affordable(Float64Array.from(fails, (v) => radius[v] + 1), touches);
  }

  function largestOne(field, rest, v) { return largestAmount((amount) => holdsOne({ ...rest, [field]: amount }, v)); }

  function whyNothing(budget) {
    return budget.target_features ? "Nothing is proved: a target's own features enter its score." : null;
  }

  return { holds, brokenAtMost, holdsOne, largestOne, whyNothing };
}
