"""Statements from random samples derived a second time, for the verifier.

Written again on purpose, and by other ways than in ``samples``, which made the statements; it shares no code with it:

    bounds on probabilities   halving an interval, with binomial tails summed term by term (there: an inverse beta function)
    noise that flips          regions filled one after the other (there: a curve interpolated)
    noise that deletes        one linear program for all tests (there: a formula for each)

A probability is right to about 1e-14. It is moved by ``MARGIN`` against the label wherever it is used, as the prover
does, so that rounding can neither certify too much nor make the two disagree where probabilities tie.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np
import numpy.typing as npt

from agnncert.errors import BudgetError, CertificateError
from agnncert.proof.budget import Budget

Numbers = npt.NDArray[Any]

MARGIN = 1e-12
MOST_SAMPLES = 10**8  # tails of more take too long to sum
MOST_FLIPS = 2000  # nothing is stated about more flips at once …
MOST_MIXED = 100  # … and no radius is larger than this if additions and deletions differ in their rates
MOST_INJECTED = 2**31  # where the search for a radius stops

_SETTINGS = {"method", "noise", "alpha", "scope", "seed", "task"}
_NOISE = {
    "flips": {"kind", "p_add", "p_delete", "p_add_feature", "p_delete_feature", "num_features", "where"},
    "deletions": {"kind", "p_edge", "p_node", "test", "edges_per_injected"},
}


@dataclass(frozen=True)
class Bounds:
    """Label of each target, a lower bound on its probability and an upper bound on every other's, each ``[n]``."""

    label: Numbers
    top: Numbers
    other: Numbers

    @property
    def decided(self) -> npt.NDArray[np.bool_]:
        """Where the samples tell that the label is the most probable class."""
        return np.asarray(self.top > self.other)


def check_samples(arrays: Mapping[str, Numbers], settings: Mapping[str, Any]) -> None:
    """Refuses counts and settings that no defence can have produced.

    Raises:
        CertificateError: With the first thing found wrong.
    """
    _require(set(arrays) == {"selection", "estimation"}, f"the arrays are {sorted(arrays)}")
    _require(set(settings) == _SETTINGS, f"the settings are {sorted(settings)}, expected {sorted(_SETTINGS)}")
    shapes = {counts.shape for counts in arrays.values()}
    _require(len(shapes) == 1 and all(len(s) == 2 and s[1] > 0 for s in shapes), "counts are not [targets, classes]")
    for name, counts in arrays.items():
        _require(counts.dtype.kind in "iu", f"{name} counts are no whole numbers")
        _require(bool(((counts >= 0) & (counts <= MOST_SAMPLES)).all()), f"{name} counts are negative or too large")
        sums = np.unique(counts.sum(axis=1)).tolist()
        _require(len(sums) <= 1 and all(0 < s <= MOST_SAMPLES for s in sums), f"{name} counts sum to {sums[:3]}")
    _require(isinstance(settings["method"], str), "the method has no name")
    _require(_is_number(settings["alpha"]) and 0 < settings["alpha"] < 1, f"alpha is {settings['alpha']!r}")
    _require(settings["scope"] in ("each target", "all targets together"), f"the scope is {settings['scope']!r}")
    _require(settings["task"] in ("node", "graph"), f"the task is {settings['task']!r}")
    _check_noise(settings["noise"])


def _check_noise(noise: Any) -> None:
    _require(isinstance(noise, dict) and noise.get("kind") in ("flips", "deletions"), f"the noise is {noise!r}")
    known = _NOISE[noise["kind"]]
    _require(set(noise) == known, f"{noise['kind']} noise has {sorted(noise)}, expected {sorted(known)}")
    rates = {name: value for name, value in noise.items() if name.startswith("p_")}
    _require(all(_is_number(p) and 0 <= p < 1 for p in rates.values()), f"probabilities are {rates}")
    _require(any(rates.values()), "without noise nothing can be certified")
    if noise["kind"] == "deletions":
        _require(noise["test"] in ("B1", "B2", "sharp", "legacy-unsound"), f"the test is {noise['test']!r}")
        try:
            Budget(edges_per_injected=_edges_per_injected(noise))
        except BudgetError as error:
            raise CertificateError(f"the evidence from samples is damaged: {error}") from error
    else:
        sums = noise["p_add"] + noise["p_delete"], noise["p_add_feature"] + noise["p_delete_feature"]
        _require(max(sums) < 1, "such noise says nothing about the input")
        features = noise["num_features"]
        _require(isinstance(features, int) and features >= (sums[1] > 0), f"num_features is {features!r}")
        _require(noise["where"] in ("graph", "target row"), f"noise is on {noise['where']!r}")


def _require(good: bool, otherwise: str) -> None:
    if not good:
        raise CertificateError(f"the evidence from samples is damaged: {otherwise}.")


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _edges_per_injected(noise: Mapping[str, Any]) -> Any:
    return math.inf if noise["edges_per_injected"] == "inf" else noise["edges_per_injected"]


def bound_classes(selection: Numbers, estimation: Numbers, alpha: float) -> Bounds:
    """What the counts say about each target; its bounds are all right with probability ``1 - alpha``.

    One bound is enough for two classes, since the other class has what remains. More classes share ``alpha``.
    """
    n, num_classes = estimation.shape
    label = selection.argmax(axis=1)
    mine = np.arange(num_classes) == label[:, None]
    trials = int(estimation[0].sum()) if n else 1
    share = alpha / num_classes if num_classes > 2 else alpha
    top = _least_probability(estimation[mine], trials, share)
    other = 1 - top
    if num_classes > 2:
        most = 1 - _least_probability(trials - estimation, trials, share)
        other = np.minimum(other, np.where(mine, 0, most).max(axis=1))
    return Bounds(label, top, other)


def _least_probability(successes: Numbers, trials: int, alpha: float) -> Numbers:
    """The probability for which as many successes or more are as rare as ``alpha`` (Clopper and Pearson, 1934)."""
    distinct, place = np.unique(successes, return_inverse=True)
    low, high = np.zeros(len(distinct)), distinct / trials
    for _ in range(60):
        middle = (low + high) / 2
        rare = _tail(distinct, trials, middle) <= alpha
        low, high = np.where(rare, middle, low), np.where(rare, high, middle)
    return np.asarray(np.maximum(low - MARGIN, 0)[place].reshape(successes.shape))


def _tail(successes: Numbers, trials: int, p: Numbers) -> Numbers:
    """Probability of at least so many successes.

    All probabilities are counted in units of that of exactly ``successes``, from which each next one follows by a
    simple ratio. Everything is positive, so nothing cancels.
    """
    p = np.clip(p, 1e-300, 1 - 1e-16)
    odds = p / (1 - p)
    more = _series(lambda j: np.maximum(trials - successes - j, 0) / (successes + j + 1) * odds)
    fewer = _series(lambda j: np.maximum(successes - j, 0) / (trials - successes + j + 1) / odds)
    return np.asarray((1 + more) / (1 + more + fewer))


def _series(ratio: Callable[[Numbers], Numbers]) -> Numbers:
    """Sum of the products of the first 1, 2, 3, … ratios, which fall; infinite if it exceeds every float."""
    total, last = np.zeros(1), np.ones(1)
    for start in count(0, 64):
        ratios = ratio(start + np.arange(64)[:, None])
        with np.errstate(over="ignore", invalid="ignore"):
            terms = last * np.cumprod(ratios, axis=0)
            total, last = np.nan_to_num(total + terms.sum(axis=0), nan=math.inf, posinf=math.inf), terms[-1]
            # What is left out is less than a geometric series, since ratios fall.
            little = (ratios[-1] < 1) & (last * ratios[-1] <= 1e-18 * total * (1 - ratios[-1]))
        if (little | np.isinf(total)).all():
            return total
    raise AssertionError  # not reached: ratios end at zero


def right_radius(noise: Mapping[str, Any], bounds: Bounds, stated: Numbers) -> npt.NDArray[np.bool_]:
    """Whether each target withstands the stated size and not the next one, shape ``[n]``.

    Fewer changes never hurt, so the sizes in between need no look. The prover searches up to a last size only.
    """
    if noise["kind"] == "deletions":
        last = MOST_INJECTED - 1
    else:
        last = MOST_FLIPS if len(set(_rates(noise))) == 1 else MOST_MIXED
    size = np.maximum(stated, -1)
    withstood = (size < 0) | _withstands_size(noise, bounds, np.maximum(size, 0), last)
    next_fails = ~_withstands_size(noise, bounds, np.minimum(size, last - 1) + 1, last)
    return np.asarray((stated >= -1) & withstood & (next_fails | (size >= last)))


def holds(noise: Mapping[str, Any], bounds: Bounds, budget: Budget) -> npt.NDArray[np.bool_]:
    """Whether each target keeps its label against ``budget``, shape ``[n]``; False where nothing is proved."""
    edges, injected = (budget.add_edges, budget.delete_edges), budget.inject_nodes
    nodes = budget.change_features + budget.target_features
    nowhere = np.zeros(len(bounds.label), dtype=bool)
    if budget.change_edges or budget.delete_nodes:
        return nowhere
    if noise["kind"] == "deletions":
        if any(edges) or nodes:
            return nowhere
        return _withstands_injected(noise, bounds, np.full(len(nowhere), float(injected)), budget.edges_per_injected)
    edges_covered = _on_edges(noise) and noise["where"] == "graph"
    features_covered = noise["p_add_feature"] + noise["p_delete_feature"] > 0
    if injected or (any(edges) and not edges_covered) or (nodes and not features_covered):
        return nowhere
    entries = nodes * noise["num_features"] if nodes else 0  # all entries of a node may flip, in any mix
    if max(sum(edges), entries) > MOST_FLIPS:
        return nowhere
    add, delete = map(int, edges)
    return _withstands_flips(noise, bounds, [(add, delete, *mix) for mix in _mixes(int(entries))])


def _withstands_size(noise: Mapping[str, Any], bounds: Bounds, size: Numbers, last: int) -> npt.NDArray[np.bool_]:
    """Whether each target withstands every change of its size, in steps of the radius, shape ``[n]``."""
    if noise["kind"] == "deletions":
        injected = _withstands_injected(noise, bounds, size.astype(np.float64), _edges_per_injected(noise))
        return injected & (size <= MOST_INJECTED)
    p_add, p_delete = _rates(noise)
    answer = np.zeros(len(size), dtype=bool)
    for one in np.unique(size[size <= last]).tolist():
        here = np.flatnonzero(size == one)
        mixes = [(one, 0)] if p_add == p_delete else _mixes(one)  # with one rate, all mixes have the same regions
        flips = [(*mix, 0, 0) if _on_edges(noise) else (0, 0, *mix) for mix in mixes]
        answer[here] = _withstands_flips(noise, Bounds(*(part[here] for part in vars(bounds).values())), flips)
    return answer


def _on_edges(noise: Mapping[str, Any]) -> bool:
    return bool(noise["p_add"] + noise["p_delete"] > 0)


def _rates(noise: Mapping[str, Any]) -> tuple[float, float]:
    """How often noise adds and deletes what the radius counts: edges, or feature entries if no edge is noisy."""
    kind = "" if _on_edges(noise) else "_feature"
    return noise[f"p_add{kind}"], noise[f"p_delete{kind}"]


def _mixes(total: int) -> list[tuple[int, int]]:
    """All splits into additions and deletions; the uneven ones first, because most targets fail there."""
    return [(add, total - add) for add in sorted(range(total + 1), key=lambda add: min(add, total - add))]


def _withstands_flips(
    noise: Mapping[str, Any], bounds: Bounds, attacks: list[tuple[int, int, int, int]]
) -> npt.NDArray[np.bool_]:
    """Whether each target withstands all these numbers of (edges added, deleted, entries added, deleted)."""
    alive = np.flatnonzero(bounds.decided)
    for edges_added, edges_deleted, added, deleted in attacks:
        if not len(alive):
            break
        of_edges = _regions(edges_added, edges_deleted, noise["p_add"], noise["p_delete"])
        of_entries = _regions(added, deleted, noise["p_add_feature"], noise["p_delete_feature"])
        clean, attacked = (np.outer(a, b).ravel() for a, b in zip(of_edges, of_entries, strict=True))
        alive = alive[_label_stays(clean, attacked, bounds.top[alive], bounds.other[alive])]
    return np.isin(np.arange(len(bounds.label)), alive)


def _regions(added: int, deleted: int, p_add: float, p_delete: float) -> tuple[Numbers, Numbers]:
    """Probabilities that 0, 1, … of the flipped entries look as in the attacked input: from the clean input's noise,
    and from the attacked one's. Given this number, noisy inputs are as probable from one as from the other, up to
    a constant.
    """
    clean = np.convolve(_binomial(added, p_add), _binomial(deleted, p_delete))
    return clean, np.convolve(_binomial(added, 1 - p_delete), _binomial(deleted, 1 - p_add))


def _binomial(trials: int, p: float) -> Numbers:
    """Probabilities of 0 … ``trials`` successes: in units of the most probable one, then scaled to sum to 1."""
    if p in (0, 1):
        return np.eye(trials + 1)[trials if p else 0]
    mode = min(int((trials + 1) * p), trials)
    up, down = np.arange(mode, trials), np.arange(mode, 0, -1)
    more = np.cumprod((trials - up) / (up + 1) * (p / (1 - p)))
    fewer = np.cumprod(down / (trials - down + 1) * ((1 - p) / p))
    masses = np.concatenate([fewer[::-1], [1.0], more])
    return np.asarray(masses / masses.sum())


def _label_stays(clean: Numbers, attacked: Numbers, top: Numbers, other: Numbers) -> npt.NDArray[np.bool_]:
    """Whether a class of probability ``top`` must still beat one of probability ``other`` (Neyman and Pearson, 1933).

    The worst classifier spends its probability for the label on regions that are rare around the attacked input, and
    its probability for the other class on regions that are frequent there.
    """
    possible = (clean > 0) | (attacked > 0)
    clean, attacked = clean[possible], attacked[possible]
    with np.errstate(divide="ignore"):
        order = np.argsort(np.log(attacked) - np.log(clean), kind="stable")
    clean, attacked = clean[order], attacked[order]
    low = _filled(clean, attacked, top - MARGIN, beyond=-1.0) - MARGIN
    up = _filled(clean[::-1], attacked[::-1], other + MARGIN, beyond=1.0) + MARGIN
    return np.asarray(np.maximum(low, 0) > np.minimum(up, 1))


def _filled(clean: Numbers, attacked: Numbers, p: Numbers, beyond: float) -> Numbers:
    """Probability around the attacked input of the event that fills regions in this order until it has ``p``.

    What ``p`` exceeds all regions by, through rounding, counts ``beyond`` times.
    """
    clean, attacked, p = np.append(clean, 1.0), np.append(attacked, beyond), np.maximum(p, 0)
    before, gained = (np.concatenate([[0.0], np.cumsum(masses)]) for masses in (clean, attacked))
    last = np.searchsorted(before, p, side="right") - 1  # the region that is filled in part
    return np.asarray(gained[last] + (p - before[last]) / clean[last] * attacked[last])


def _withstands_injected(
    noise: Mapping[str, Any], bounds: Bounds, injected: Numbers, edges_each: float
) -> npt.NDArray[np.bool_]:
    """Whether each target withstands ``injected`` nodes, shape ``[n]``, of ``edges_each`` edges.

    Let r(w) be the probability that noise deletes all new edges, given the coins w of the old graph. Then the label
    leads by at least E[(1 if label) r + (1 unless other) r] - 1. Known are the mean of r and its least value, and
    the lead is the least over all such r: r is lowered where that costs most, on the label first, then where neither
    class is predicted.
    """
    p_edge, p_node = noise["p_edge"], noise["p_node"]
    mean = _isolated(p_node, (1 - p_edge) * (1 - p_node), injected, edges_each)  # old nodes lose their edges too
    least = _isolated(p_node, 1 - p_edge, injected, edges_each)  # or all old nodes stay
    known = {
        "B1": (least, least),
        "B2": (0.0, mean),
        "sharp": (least, mean),
        "legacy-unsound": (mean, mean),  # as released: takes r for a constant, which it is not
    }
    floor, mean = known[noise["test"]]
    neither = np.maximum(1 - bounds.top - bounds.other, 0)
    on_label = np.minimum(1 - mean, bounds.top * (1 - floor))
    on_neither = np.minimum(1 - mean - on_label, neither * (1 - floor))
    lead = bounds.top - bounds.other - 2 * on_label - on_neither
    return np.asarray(bounds.decided & (lead > MARGIN))


def _isolated(p_node: float, edge_stays: float, injected: Numbers, edges_each: float) -> Numbers:
    """Probability that each injected node is deleted itself or loses all its edges, one by one."""
    if not edges_each:
        return np.ones(len(injected))
    some_edge_stays = -math.expm1(edges_each * math.log1p(-edge_stays)) if edge_stays < 1 else 1.0
    connected = (1 - p_node) * some_edge_stays
    if connected == 1:
        return np.where(injected > 0, 0.0, 1.0)
    return np.exp(injected * math.log1p(-connected))
