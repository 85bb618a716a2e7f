"""Every change of one edge for a GCN of two layers, by its formula instead of by calls of the model.

With A the adjacency with self-loops, d its row sums, z = x W1 and g = A (z / sqrt d), the logits of a target t are the sum
of h_i W2 / sqrt(d_t d_i) over i in N(t) and t itself, with h = relu(g / sqrt d + b1), plus b2. If the pair (u, v) is joined
or separated, d changes at u and v alone, and g where A_iu or A_iv is not zero. So the logits after each change follow from
those of the graph as given in a few products, for tens of thousands of pairs at once. All is computed in float64, and a
lead within 1e-6 of a tie decides nothing.

``agnncert_peers.exact_robustness`` tries the same changes with any model; ``packages/agnncert-peers/tests/test_exact.py`` compares the two.
"""

from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

from agnncert_peers.exact import BROKEN, ROBUST, UNDECIDED

NUMBERS = 4_000_000  # of one block
TIE = 1e-6
Array = np.ndarray[Any, Any]


class TwoLayers:
    """A GCN on one graph, and what one changed edge does to it.

    Args:
        x: Features.
        edge_index: Edges in both directions, without self-loops.
        weights: Weight and bias of the first layer, then of the second; as in PyG, weights are transposed.
    """

    def __init__(self, x: Array, edge_index: Array, weights: tuple[Array, Array, Array, Array]) -> None:
        first, self.b1, self.w2, self.b2 = (np.asarray(weight, dtype=np.float64) for weight in weights)
        self.z = np.asarray(csr_matrix(x.astype(np.float64)) @ first.T)
        n = len(x)
        ones = np.ones(edge_index.shape[1] + n)
        ends = np.concatenate([edge_index, np.tile(np.arange(n), (2, 1))], axis=1)
        self.set_adjacency(csr_matrix((ones, (ends[1], ends[0])), (n, n)))

    def set_adjacency(self, adjacency: csr_matrix) -> None:
        """Takes another graph with the same nodes; self-loops are in it."""
        self.a, self.n = adjacency, adjacency.shape[0]
        self.d = np.asarray(adjacency.sum(axis=1)).ravel()
        self.g = np.asarray(adjacency @ (self.z / np.sqrt(self.d)[:, None]))

    def neighbours(self, nodes: Array) -> Array:
        """Nodes that are joined to one of these, and these."""
        return np.unique(self.a[nodes].indices)

    def logits(self, t: int) -> Array:
        """Logits of a target in the graph as it is."""
        near = self.neighbours(np.array([t]))
        h = np.maximum(self.g[near] / np.sqrt(self.d[near])[:, None] + self.b1, 0)
        share = 1 / np.sqrt(self.d[t] * self.d[near])
        return np.asarray((share @ h) @ self.w2.T + self.b2)

    def pairs(self, t: int) -> Array:
        """Pairs that can matter, ``[p, 2]``: with an end within one hop, or with both within two.

        A node at two hops counts otherwise by its degree alone: one far node that is joined to it, and one that is not,
        stand for all.
        """
        inner = self.neighbours(np.array([t]))
        near = self.neighbours(inner)
        outer = np.setdiff1d(near, inner)
        every = np.arange(self.n)
        found = [np.stack(np.meshgrid(inner, every, indexing="ij"), axis=-1).reshape(-1, 2)]
        one, two = np.triu_indices(len(outer), 1)
        found.append(np.stack([outer[one], outer[two]], axis=1))
        far = np.setdiff1d(every, near)
        for node in outer.tolist():
            joined = np.isin(far, self.a[[node]].indices)
            others = [some[0] for some in (far[joined], far[~joined]) if len(some)]
            found.append(np.array([[node, other] for other in others], dtype=np.int64).reshape(-1, 2))
        pairs = np.sort(np.concatenate(found), axis=1)
        return np.unique(pairs[pairs[:, 0] != pairs[:, 1]], axis=0)

    def after(self, t: int, pairs: Array) -> Array:
        """Logits of a target after each pair was joined, or separated if it was joined; ``[p, classes]``."""
        near = self.neighbours(np.array([t]))
        step = max(1, NUMBERS // (self.z.shape[1] * len(near)))
        return np.concatenate([self._after(t, near, pairs[at : at + step]) for at in range(0, len(pairs), step)])

    def _after(self, t: int, near: Array, pairs: Array) -> Array:
        u, v = pairs.T
        rows = self.a[near].toarray()  # [k, n]
        sign = np.where(np.asarray(self.a[u, v]).ravel() > 0, -1.0, 1.0)
        new = {0: self.d[u] + sign, 1: self.d[v] + sign}
        g = np.repeat(self.g[near][None], len(pairs), axis=0)  # [p, k, hidden]
        degree = np.repeat(self.d[near][None], len(pairs), axis=0)
        to_target = np.repeat(rows[near == t], len(pairs), axis=0)[:, near]  # all ones
        for side, (here, there) in enumerate(((u, v), (v, u))):
            change = 1 / np.sqrt(new[side]) - 1 / np.sqrt(self.d[here])
            g += rows[:, here].T[:, :, None] * (change[:, None] * self.z[here])[:, None, :]
            p, k = np.nonzero(near[None] == here[:, None])  # this end is a neighbour of the target, or the target
            g[p, k] += (sign / np.sqrt(new[1 - side]))[p, None] * self.z[there[p]]
            degree[p, k] += sign[p]
            p, k = np.nonzero((near[None] == here[:, None]) & (there == t)[:, None] & (sign < 0)[:, None])
            to_target[p, k] = 0.0  # separated from the target
        own = self.d[t] + sign * ((u == t) | (v == t))
        h = np.maximum(g / np.sqrt(degree)[:, :, None] + self.b1, 0)
        total = np.einsum("pk,pkc->pc", to_target / np.sqrt(own[:, None] * degree), h)
        for side, (here, there) in enumerate(((u, v), (v, u))):
            p = np.flatnonzero((there == t) & (sign > 0))  # a new neighbour of the target
            w = here[p]
            change = 1 / np.sqrt(new[side][p]) - 1 / np.sqrt(self.d[w])
            far = self.g[w] + change[:, None] * self.z[w] + self.z[[t]] / np.sqrt(new[1 - side][p])[:, None]
            h = np.maximum(far / np.sqrt(new[side][p])[:, None] + self.b1, 0)
            total[p] += h / np.sqrt(own[p] * new[side][p])[:, None]
        return np.asarray(total @ self.w2.T + self.b2)

    def scan(self, t: int, label: int) -> tuple[str, Array, Array]:
        """Whether one change alters the label; the pairs that were tried, and the lead of the label after each."""
        pairs = self.pairs(t)
        logits = self.after(t, pairs)
        lead = logits[:, label] - np.delete(logits, label, axis=1).max(axis=1)
        found = BROKEN if (lead < -TIE).any() else UNDECIDED if (lead <= TIE).any() else ROBUST
        return found, pairs, lead

    def outcome(self, t: int, label: int, size: int, most_first: int) -> str:
        """What becomes of a target; at size 2 only the ``most_first`` worst first changes are followed by a second."""
        found, pairs, lead = self.scan(t, label)
        if size == 1 or found != ROBUST:
            return found
        given, order = self.a, np.argsort(lead, kind="stable")
        for u, v in pairs[order[:most_first]].tolist():
            changed = given.tolil()
            changed[u, v] = changed[v, u] = 1.0 - given[u, v]
            self.set_adjacency(changed.tocsr())
            self.a.eliminate_zeros()
            second = self.scan(t, label)[0]
            self.set_adjacency(given)
            if second != ROBUST:
                return second
        return ROBUST if len(pairs) <= most_first else UNDECIDED
