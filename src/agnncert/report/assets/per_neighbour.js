// The theorems of proving/per_neighbour.py once more: every neighbour, pair or node has a group of its own. An attack adds votes,
// removes them, or alters them. What is added or removed gains a rival one vote, what is altered up to two.

// Each theorem: an attack to { fresh, turned, touched(v), altered(v) }.
function touchesFor({ arrays }) {
  const flat = (fresh, touched, altered, turned = 0) => ({ fresh, turned, touched: () => touched, altered: () => altered });

  function node(a, turned) {
    const altered = a.change_edges + a.change_features;
    return flat(a.joined + a.add_edges, altered + a.delete_edges + a.delete_nodes, altered, turned);
  }
  function perPairGraph(a) {
    return {
      fresh: a.injectedEdges + a.add_edges, turned: a.add_edges,
      touched: (v) => a.change_edges + a.delete_edges + reachedBy(arrays, a.nodes, v),
      altered: (v) => a.change_edges + reachedBy(arrays, a.change_features, v),
    };
  }
  return {
    "per-neighbour/node": (a) => node(a, 0), "per-pair/node": (a) => node(a, a.add_edges),
    "per-neighbour/graph": (a) => flat(a.inject_nodes, a.change_features + a.delete_nodes, a.change_features),
    "per-pair/graph": perPairGraph,
  };
}

// A budget to { covered, holds(v), neighboursNeeded(v), touchesNeeded(v) }.
function judgeByTouches(report, { n, C, label, size, votes: [listed], margin }) {
  const { meta, arrays } = report;
  const { absent } = meta.voting_rule;
  const theorem = touchesFor(report)[meta.theorem];
  const oneWay = arrays.one_way_votes ?? new Uint8Array(n * C), oneWaySize = arrays.one_way_size ?? new Uint8Array(n);

  // The most by which an attack closes the margin of rival k, and how many of its changes can close it by two.
  function gainOf(v, k, { fresh, touched, altered, turned }) {
    const a = label[v], row = v * C;
    const own = listed[row + a], others = size[v] - listed[row + k];
    const lost = Math.min(a === absent ? altered : touched, own); // a removed vote is one more of an empty group
    const won = Math.min(k === absent ? touched : altered, others);
    const added = times(fresh, 1 + (a === absent ? 1 : 0) - (k === absent ? 1 : 0));
    // A second direction of a pair alters its vote, which a new vote does not.
    const ownTurned = a === absent ? 0 : Math.min(turned, oneWay[row + a], own - Math.min(touched, own));
    const othersTurned = k === absent ? Math.min(turned, oneWaySize[v] - oneWay[row + k], others - Math.min(touched, others)) : 0;
    const twos = Math.min((k === absent ? touched : altered) + Math.min(turned, oneWay[row + a]), own) + (a === absent ? fresh : 0);
    return { gain: lost + won + added + ownTurned + othersTurned, twos };
  }

  function withstands(v, touches) {
    for (let k = 0; k < C; k++) {
      if (k !== label[v] && margin[v * C + k] < gainOf(v, k, touches).gain) return false;
    }
    return true;
  }

  return (budget) => {
    const covered = !budget.target_features, attack = theorem(attackOf(budget));
    const touchesOf = (v) => ({ fresh: attack.fresh, turned: attack.turned, touched: attack.touched(v), altered: attack.altered(v) });
    const holds = (v) => covered && withstands(v, touchesOf(v));

    // The fewest new neighbours with which v breaks if all else is spent on it; Infinity if v holds.
    function neighboursNeeded(v) {
      const all = touchesOf(v);
      const with_ = (most) => ({ ...all, fresh: Math.min(all.fresh, most), turned: Math.min(all.turned, most) });
      return largestAmount((most) => covered && withstands(v, with_(most))) + 1;
    }

    // The fewest changes at v (new, lost and altered votes) that can break it; Infinity if none do.
    function touchesNeeded(v) {
      if (!covered) return 0;
      const all = touchesOf(v);
      let fewest = Infinity;
      for (let k = 0; k < C; k++) {
        const { gain, twos } = gainOf(v, k, all), missing = Math.max(margin[v * C + k] + 1, 0), half = Math.ceil(missing / 2);
        if (k === label[v] || margin[v * C + k] >= gain) continue;
        fewest = Math.min(fewest, half <= twos ? half : missing - twos);
      }
      return fewest;
    }

    return { covered, holds, neighboursNeeded, touchesNeeded };
  };
}
