"""Statements from random samples derived a second time, for the verifier.

It shares no code with ``samples``, which made the statements, and works in other ways on purpose:

                         here                                                     in ``samples``
    probabilities        found by search; binomial tails are integrated           an inverse beta function
    noise that flips     regions are filled one after the other                   a curve is interpolated
    noise that deletes   one linear program for all tests                         a formula for each test
    intercepted paths    factors are sorted and multiplied for each target        tables of logarithms

Probabilities are exact to about 1e-14. Wherever they are used they are first moved by ``MARGIN`` against the label, as
the prover does, so that rounding neither certifies too much nor makes the two disagree where probabilities tie.
"""

import math
import reprlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
import numpy.typing as npt

from agnncert.certificates.budget import Budget
from agnncert.certificates.file import Contents
from agnncert.errors import CertificateError
from agnncert.verifier.check import check_claim, check_targets, does_not_follow
from agnncert_peers.sample_claim import make_sample_claim

Numbers = npt.NDArray[Any]
Flags = npt.NDArray[np.bool_]
Noise = Mapping[str, Any]  # kind and parameters, as files store them

MARGIN = 1e-12
MOST_SAMPLES = 10**7  # up to here bounds were compared with exact ones
MOST_CLASSES = 32_767
MOST_STEPS = 12_000_000  # of work on all stated budgets together, see steps; a few seconds
LEAST_ALPHA = 1e-100  # divided by the number of targets and classes it must still be a positive float
MOST_ALPHA = 0.9  # up to here bounds were compared with exact ones
MOST_FLIPS = 2000  # larger attacks are never certified
MOST_MIXED = 100  # largest radius if additions and deletions have different rates
MOST_NODES = 2**31  # largest radius that counts nodes
MOST_HOPS = 16

_SETTINGS = {"method", "noise", "alpha", "scope", "seed", "task"}
_PARAMETERS = {
    "flips": {"kind", "p_add", "p_delete", "p_add_feature", "p_delete_feature", "num_features", "where"},
    "deletions": {"kind", "p_edge", "p_node", "test", "edges_per_injected"},
    "interception": {"kind", "p_delete", "p_ablate", "hops"},
}


def not_checked(contents: Contents) -> tuple[str, ...]:
    """Returns what the file alone cannot show, and what to pass to have it checked."""
    always = (
        "whether the targets, ids, true classes and degrees are those of a graph: pass data",
        "whether the samples were drawn from a model and this noise: pass data and model, and set recheck",
    )
    if "paths" in contents.evidence:
        return (*always, "whether the paths to the targets are those of a graph: pass data")
    return always


def breaks(contents: Contents) -> Callable[[Budget], Flags]:
    """Returns a function from a budget to the targets whose label may change, shape ``[n]``."""

    def of_budget(budget: Budget) -> Flags:
        return np.asarray(possible(contents, budget).sum(axis=1) > 1)

    return of_budget


def check(contents: Contents) -> list[str]:
    """What is wrong with the statements of a file that holds counts of random samples.

    Raises:
        CertificateError: The counts are damaged or contradict themselves, so that nothing can be derived from them.
    """
    check_samples(contents.evidence, contents.settings)
    settings, claim = contents.settings, contents.claim
    selection, estimation = (contents.evidence[name].astype(np.int64) for name in ("selection", "estimation"))
    noise, alpha, num_targets = settings["noise"], settings["alpha"], len(estimation)
    check_work(noise, contents.budgets, num_targets)
    expected = make_sample_claim(
        method=settings["method"],
        noise=noise,
        task=settings["task"],
        alpha=alpha,
        scope=settings["scope"],
        ids=claim.ids,
    )
    wrong = [*check_targets(contents, num_targets), *check_claim(claim, expected, {"graph", "model"})]
    if wrong:
        return wrong
    # What one attacked graph can break speaks about all targets at once, whatever the scope.
    sources = intercepted(noise, contents.evidence)
    together = bound_classes(selection, estimation, alpha / max(num_targets, 1), sources)
    one_by_one = settings["scope"] == "each target"
    bounds = bound_classes(selection, estimation, alpha, sources) if one_by_one else together
    bad = {
        "label": contents.arrays["label"] != bounds.label,
        "radius": ~right_radius(noise, bounds, contents.arrays["radius"]),
        "number of new neighbours": contents.arrays["new_neighbours"] != -1,  # noise never covers unlimited changes
    }
    for i, budget in enumerate(contents.budgets):
        bad[f"answer for {budget}"] = contents.arrays["holds"][i] != holds(noise, bounds, budget)
    reasons = [does_not_follow(name, int(where.sum()), "samples") for name, where in bad.items() if where.any()]
    for budget, stated in zip(contents.budgets, contents.broken_at_most, strict=True):
        fails = ~holds(noise, together, budget)
        if stated != (fails.any() if settings["task"] == "graph" else fails.sum()):
            reasons.append(f"the stated number of targets that {budget} can break does not follow from the samples")
    return reasons


def check_samples(arrays: Mapping[str, Numbers], settings: Mapping[str, Any]) -> None:
    """Refuses counts and settings that no defence can have produced.

    Raises:
        CertificateError: Naming the first thing that is wrong.
    """
    _require(
        set(settings) == _SETTINGS, f"the settings are {reprlib.repr(sorted(settings))}, expected {sorted(_SETTINGS)}"
    )
    _check_noise(settings["noise"], settings["task"])
    of_paths = {"start", "paths"} if settings["noise"]["kind"] == "interception" else set()
    known = {"selection", "estimation"} | of_paths
    _require(set(arrays) == known, f"the arrays are {reprlib.repr(sorted(arrays))}, expected {sorted(known)}")
    counted = {name: arrays[name] for name in ("selection", "estimation")}
    shapes = {counts.shape for counts in counted.values()}
    fits = len(shapes) == 1 and all(len(s) == 2 and 0 < s[1] <= MOST_CLASSES for s in shapes)
    _require(fits, f"counts are not [targets, classes], of at most {MOST_CLASSES:,} classes")
    for name, counts in counted.items():
        _require(counts.dtype.kind in "iu", f"{name} counts are no whole numbers")
        _require(bool(((counts >= 0) & (counts <= MOST_SAMPLES)).all()), f"{name} counts are negative or too large")
        sums = np.unique(counts.sum(axis=1)).tolist()
        _require(len(sums) <= 1 and all(0 < s <= MOST_SAMPLES for s in sums), f"{name} counts sum to {sums[:3]}")
    _require(isinstance(settings["method"], str), "the method has no name")
    alpha = settings["alpha"]
    _require(_is_probability(alpha) and LEAST_ALPHA < alpha <= MOST_ALPHA, f"alpha is {reprlib.repr(alpha)}")
    _require(
        settings["scope"] in ("each target", "all targets together"), f"the scope is {reprlib.repr(settings['scope'])}"
    )
    _require(settings["task"] in ("node", "graph"), f"the task is {reprlib.repr(settings['task'])}")
    seed = settings["seed"]
    _require(isinstance(seed, int) and not isinstance(seed, bool) and seed >= 0, f"the seed is {reprlib.repr(seed)}")
    if of_paths:
        _check_paths(arrays["start"], arrays["paths"], len(counted["selection"]), settings["noise"]["hops"])


def _check_paths(start: Numbers, paths: Numbers, num_targets: int, hops: int) -> None:
    """Refuses lists of paths that no graph has: one list for each target, and a path or more in each line of it."""
    whole = start.dtype.kind in "iu" and paths.dtype.kind in "iu"
    _require(whole and start.shape == (num_targets + 1,), "the paths are not whole numbers for every target")
    ends = start.astype(np.int64)
    rising = ends[0] == 0 and bool((np.diff(ends) >= 0).all())
    _require(rising and paths.shape == (ends[-1], hops), "the lists of paths do not belong to the targets")
    _require(bool((paths >= 0).all()) and bool(paths.any(axis=1).all()), "a node reaches its target over no path")


def _check_noise(noise: Any, task: str) -> None:
    _require(isinstance(noise, dict) and noise.get("kind") in list(_PARAMETERS), f"the noise is {reprlib.repr(noise)}")
    known = _PARAMETERS[noise["kind"]] | ({"skip"} & set(noise) if noise["kind"] == "interception" else set())
    _require(set(noise) == known, f"{noise['kind']} noise has {reprlib.repr(sorted(noise))}, expected {sorted(known)}")
    rates = {name: value for name, value in noise.items() if name.startswith("p_")}
    _require(
        all(map(_is_probability, rates.values())) and any(rates.values()), f"probabilities are {reprlib.repr(rates)}"
    )
    if noise["kind"] == "deletions":
        _require(noise["test"] in ("B1", "B2", "sharp", "legacy-unsound"), f"the test is {reprlib.repr(noise['test'])}")
        most = noise["edges_per_injected"]
        _require(most == "inf" or _is_whole(most), f"edges_per_injected is {reprlib.repr(most)}")
        # A readout sees injected nodes even if they have lost all edges.
        _require(task == "node", "noise that deletes proves nothing about whole graphs")
    elif noise["kind"] == "interception":
        hops = noise["hops"]
        _require(type(hops) is int and 1 <= hops <= MOST_HOPS, f"hops is {reprlib.repr(hops)}")
        _require(noise.get("skip", True) is True, f"skip is {reprlib.repr(noise.get('skip'))}")
        _require(task == "node", "noise that intercepts messages proves nothing about whole graphs")
    else:
        on_edges, on_features = _noise_on(noise, ""), _noise_on(noise, "_feature")
        _require(max(on_edges, on_features) < 1, "such noise says nothing about the input")
        features = noise["num_features"]
        _require(_is_whole(features) and features >= (on_features > 0), f"num_features is {reprlib.repr(features)}")
        _require(noise["where"] in ("graph", "target row"), f"noise is on {reprlib.repr(noise['where'])}")
        _require(task == "node" or noise["where"] == "graph", "a whole graph has no target row")


def _require(good: bool, otherwise: str) -> None:
    if not good:
        raise CertificateError(f"the evidence from samples is damaged: {otherwise}.")


def _is_probability(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < 1


def _is_whole(value: Any) -> bool:
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return number and 0 <= value <= 2**53 and value == int(value)


def _noise_on(noise: Noise, what: str) -> float:
    """How much noise there is on edges (``""``) or on feature entries (``"_feature"``)."""
    return float(noise[f"p_add{what}"] + noise[f"p_delete{what}"])


@dataclass(frozen=True)
class Bounds:
    """Label of each target, a lower bound on its probability and an upper bound on every other's, each ``[n]``.

    For noise that intercepts messages also, for each target, the probabilities that the messages of its sources are
    intercepted, from the most dangerous source on.
    """

    label: Numbers
    top: Numbers
    other: Numbers
    sources: list[list[float]] | None = None

    @property
    def decided(self) -> Flags:
        """Whether the samples show that the label is the most probable class, shape ``[n]``."""
        return np.asarray(self.top > self.other)


def intercepted(noise: Noise, arrays: Mapping[str, Numbers]) -> list[list[float]] | None:
    """For each target, how probable it is that noise intercepts each of its sources, ascending; else ``None``.

    A source is intercepted if its features are deleted, or else if every path from it is cut. By the inequality of
    Harris (1960) the paths are cut with at least the product of their probabilities.
    """
    if noise["kind"] != "interception":
        return None
    arrives = [(1 - noise["p_delete"]) ** length for length in range(1, int(noise["hops"]) + 1)]
    lists = []
    for first, last in zip(arrays["start"][:-1].tolist(), arrays["start"][1:].tolist(), strict=True):
        chances = []
        for paths in arrays["paths"][first:last].tolist():
            all_cut = math.prod((1 - p) ** number for p, number in zip(arrives, paths, strict=True))
            chances.append(1 - (1 - noise["p_ablate"]) * (1 - all_cut))
        lists.append(sorted(chances))
    return lists


def bound_classes(
    selection: Numbers,
    estimation: Numbers,
    alpha: float,
    sources: list[list[float]] | None = None,
    against: int | None = None,
) -> Bounds:
    """Bounds from counts of shape ``[n, classes]``; those of one target all hold with probability ``1 - alpha``.

    Two classes need one bound, because their probabilities sum to 1. More classes share ``alpha``. ``against`` asks
    about one class instead of the rival with most samples.
    """
    num_classes = estimation.shape[1]
    trials = int(estimation[:1].sum()) or 1  # the same for all targets
    label = selection.argmax(axis=1)  # ties go to the smaller class
    mine = np.arange(num_classes) == label[:, None]
    share = alpha / num_classes if num_classes > 2 else alpha
    top = _least_probability(estimation[mine], trials, share)
    other = 1 - top
    if num_classes > 2:  # the rival with most samples has the largest bound
        rival = np.where(mine, 0, estimation).max(axis=1) if against is None else estimation[:, against]
        other = np.minimum(other, 1 - _least_probability(trials - rival, trials, share))
    return Bounds(label, top, other, sources)


def _least_probability(successes: Numbers, trials: int, alpha: float) -> Numbers:
    """The success probability at which this many successes or more have probability ``alpha``, less ``MARGIN``.

    This is the lower bound of Clopper and Pearson (1934). It is found by Newton's steps on logarithms, from the bound
    of Wilson (1927) on, and by halving an interval where a step leaves it. The result is checked: where the tail at the
    bound is larger than ``alpha`` after all, the answer is 0, with which nothing is certified.
    """
    distinct, place = np.unique(successes, return_inverse=True)
    bounds = np.zeros(len(distinct))
    for start in range(0, len(distinct), 4096):  # some at a time, which is faster
        here = slice(start, start + 4096)
        bounds[here] = _solve(distinct[here].astype(np.float64), trials, math.log(alpha))
    return np.asarray(bounds[place])


def _solve(successes: Numbers, trials: int, log_alpha: float) -> Numbers:
    low, high = np.zeros(len(successes)), np.where(successes > 0, 1.0, 0.0)
    p = np.minimum(_wilson(successes, trials, math.exp(log_alpha)), high)
    for _ in range(100):
        tail, slope = _log_tail(successes, trials, p)
        low, high = np.where(tail <= log_alpha, p, low), np.where(tail <= log_alpha, high, p)
        with np.errstate(over="ignore", invalid="ignore"):
            step = p * np.exp((log_alpha - tail) / slope)
        # By rounding, a step may lie just outside of the interval that it has narrowed down.
        good = (step > low * (1 - 1e-12)) & (step < np.minimum(high * (1 + 1e-12), 1))
        before, p = p, np.where(good, step, (low + high) / 2)
        if (np.abs(p - before) <= 1e-15 + 4e-15 * p).all():
            break
    bound = np.maximum(p - MARGIN, 0)
    return np.asarray(np.where(_log_tail(successes, trials, bound)[0] <= log_alpha, bound, 0.0))


def _wilson(successes: Numbers, trials: int, alpha: float) -> Numbers:
    z = NormalDist().inv_cdf(1 - alpha) if alpha > 0.01 else -NormalDist().inv_cdf(alpha)
    share, spread = successes / trials, z * z / trials
    width = np.sqrt(share * (1 - share) * spread + spread * spread / 4)
    rough = successes / (trials + 2 * math.log(1 / alpha) * trials / np.maximum(successes, 1))  # where nearly 0 is left
    wilson = (share + spread / 2 - math.copysign(1, z) * width) / (1 + spread)
    return np.clip(np.where(wilson > 1e-3 * rough, wilson, rough), 1e-300, 1 - 1e-16)


_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(40)
_NEGLIGIBLE = -42.0  # logarithm of what does not show in a sum around 1


def _log_tail(successes: Numbers, trials: int, p: Numbers) -> tuple[Numbers, Numbers]:
    """Logarithm of the probability of at least ``successes`` successes, and its slope in the logarithm of ``p``.

    The probability grows with ``p`` by ``successes / p`` times the probability of exactly that many, so it is the
    integral of that from 0 to ``p``. Relative to its value at ``p`` the integrand is smooth, so 40 points give the
    integral to about 14 digits; further down it is too small to show.
    """
    p = np.clip(p, 1e-300, 1 - 1e-16)

    def height(x: Numbers) -> Numbers:
        """Logarithm of the integrand at ``p + x``, relative to ``p``."""
        return np.asarray((successes - 1) * np.log1p(x / p) + (trials - successes) * np.log1p(-x / (1 - p)))

    with np.errstate(divide="ignore"):
        start, begin = -p, np.zeros(len(p))  # between them, find where the integrand begins to show
        for _ in range(50):
            shows = height(middle := (start + begin) / 2) > _NEGLIGIBLE
            start, begin = np.where(shows, start, middle), np.where(shows, middle, begin)
            if (start > 1.05 * begin).all():
                break
        area, at_once = np.zeros(len(p)), 1 + 2000 // (1 + len(p))  # points; more would leave the cache
        for first in range(0, len(_NODES), at_once):
            node, weight = (points[first : first + at_once, None] for points in (_NODES, _WEIGHTS))
            for part in weight * np.exp(np.minimum(height(start * (1 - node) / 2), 600)):
                area += part
        area *= -start / 2
        return np.log(successes * area / p) + _log_binomial(successes, trials, p), p / area


def _log_binomial(successes: Numbers, trials: int, p: Numbers) -> Numbers:
    """Logarithm of the probability of exactly this many successes, without cancellation (Loader, 2000)."""
    failures = trials - successes
    scale = trials / (2 * np.pi * np.maximum(successes, 1) * np.maximum(failures, 1))
    scale = np.where((successes == 0) | (failures == 0), 1.0, scale)
    beyond_stirling = _stirling(np.array([trials])) - _stirling(successes) - _stirling(failures)
    return np.asarray(
        np.log(scale) / 2 + beyond_stirling - _deviance(successes, trials * p) - _deviance(failures, trials * (1 - p))
    )


_SMALL = np.array(
    [0.0, *(math.lgamma(k + 1) + k - (k + 0.5) * math.log(k) - math.log(math.tau) / 2 for k in range(1, 64))]
)


def _stirling(k: Numbers) -> Numbers:
    """Logarithm of the factorial of ``k``, less Stirling's formula for it; 0 for 0, where the formula has no value."""
    inverse = 1 / np.maximum(k, 64)
    square = inverse * inverse
    series = inverse * (1 / 12 - square * (1 / 360 - square * (1 / 1260 - square / 1680)))
    return np.where(k < 64, _SMALL[np.minimum(k, 63).astype(np.int64)], series)


def _deviance(observed: Numbers, expected: Numbers) -> Numbers:
    """``observed * log(observed / expected) + expected - observed``; a series where these nearly cancel."""
    excess = (expected - observed) / np.maximum(observed, 1)
    near, series = np.clip(excess, -0.1, 0.1), np.zeros(len(excess))
    for power in range(16, 1, -1):
        series = 1 / power - near * series
    with np.errstate(divide="ignore"):
        far = excess - np.log1p(np.maximum(excess, -1))
    return np.where(observed == 0, expected, observed * np.where(near == excess, near * near * series, far))


def right_radius(noise: Noise, bounds: Bounds, stated: Numbers) -> Flags:
    """Whether each target is certified against the stated size but not the next one, shape ``[n]``.

    A target that is certified at a size is certified at all smaller ones, so these are not tried. The prover does not
    search beyond ``last``, so the next size need not fail there.
    """
    last = MOST_NODES - 1
    if noise["kind"] == "flips":
        last = MOST_FLIPS if len(set(_rates(noise))) == 1 else MOST_MIXED
    size = np.maximum(stated, -1)
    withstood = (size < 0) | _withstands_size(noise, bounds, np.maximum(size, 0), last)
    next_fails = ~_withstands_size(noise, bounds, np.minimum(size, last - 1) + 1, last)
    return np.asarray((stated >= -1) & withstood & (next_fails | (size >= last)))


def holds(noise: Noise, bounds: Bounds, budget: Budget) -> Flags:
    """Whether each target keeps its label against ``budget``, shape ``[n]``; False where nothing is proved."""
    edges, injected = (budget.add_edges, budget.delete_edges), budget.inject_nodes
    nodes = budget.change_features + budget.target_features
    nowhere = np.zeros(len(bounds.label), dtype=bool)
    if budget.change_edges or budget.delete_nodes:
        return nowhere
    if noise["kind"] == "interception":
        if any(edges) or injected or ("skip" in noise and budget.target_features):
            return nowhere
        changed = np.full(len(nowhere), float(budget.change_features))
        return _withstands_changed(noise, bounds, changed, bool(budget.target_features))
    if noise["kind"] == "deletions":
        if any(edges) or nodes:
            return nowhere
        return _withstands_injected(noise, bounds, np.full(len(nowhere), float(injected)), budget.edges_per_injected)
    edges_covered = _noise_on(noise, "") and noise["where"] == "graph"
    if injected or (any(edges) and not edges_covered) or (nodes and not _noise_on(noise, "_feature")):
        return nowhere
    entries = nodes * noise["num_features"] if nodes else 0  # all entries of a node may flip, in any mix
    if max(sum(edges), entries) > MOST_FLIPS:
        return nowhere
    add, delete = map(int, edges)
    return _withstands_flips(noise, bounds, [(add, delete, *mix) for mix in _mixes(int(entries))])


def possible(contents: Contents, budget: Budget) -> Flags:
    """Which classes may be the most probable one under an attack, shape ``[n, classes]``."""
    check_samples(contents.evidence, contents.settings)
    settings, noise = contents.settings, contents.settings["noise"]
    selection, estimation = (contents.evidence[name].astype(np.int64) for name in ("selection", "estimation"))
    num_targets, num_classes = estimation.shape
    check_work(noise, [budget], num_targets * num_classes)
    alpha = settings["alpha"] / (1 if settings["scope"] == "each target" else max(num_targets, 1))
    answer, sources = np.zeros((num_targets, num_classes), dtype=bool), intercepted(noise, contents.evidence)
    for k in range(num_classes):
        bounds = bound_classes(selection, estimation, alpha, sources, against=k)
        answer[:, k] = ~holds(noise, bounds, budget) | (bounds.label == k)
    return answer


def check_work(noise: Noise, budgets: Iterable[Budget], num_targets: int) -> None:
    """Refuses budgets that would take too long to check, before any of them is.

    Raises:
        CertificateError: Names the work and the limit.
    """
    total = sum(steps(noise, budget, num_targets) for budget in budgets)
    _require(total <= MOST_STEPS, f"its budgets take {total:,} steps to check, at most {MOST_STEPS:,} are made")


def steps(noise: Noise, budget: Budget, num_targets: int) -> int:
    """How much work :func:`holds` is at most: for each mix of flips, its regions, and all targets."""
    if noise["kind"] != "flips":
        return num_targets
    edges = budget.add_edges + budget.delete_edges
    nodes = budget.change_features + budget.target_features
    if nodes and not _noise_on(noise, "_feature"):
        return num_targets  # nothing is proved about features: the answer is no without any regions
    entries = nodes * noise["num_features"] if nodes and noise["num_features"] else 0  # infinity times 0 is NaN
    if max(edges, entries) > MOST_FLIPS:
        return num_targets
    regions = (edges + 1) * (entries + 1) + (edges**2 + entries**2) // 400
    return int((entries + 1) * (regions + num_targets))


def _withstands_size(noise: Noise, bounds: Bounds, size: Numbers, last: int) -> Flags:
    """Whether each target is certified at its own size, in steps of the radius, shape ``[n]``."""
    if noise["kind"] == "interception":
        return _withstands_changed(noise, bounds, size.astype(np.float64), own=False) & (size <= MOST_NODES)
    if noise["kind"] == "deletions":
        withstood = _withstands_injected(noise, bounds, size.astype(np.float64), float(noise["edges_per_injected"]))
        return withstood & (size <= MOST_NODES)
    p_add, p_delete = _rates(noise)
    answer = np.zeros(len(size), dtype=bool)
    for steps in np.unique(size[size <= last]).tolist():
        here = np.flatnonzero(size == steps)
        mixes = [(steps, 0)] if p_add == p_delete else _mixes(steps)  # with one rate, all mixes have the same regions
        flips = [(*mix, 0, 0) if _noise_on(noise, "") else (0, 0, *mix) for mix in mixes]
        answer[here] = _withstands_flips(noise, Bounds(bounds.label[here], bounds.top[here], bounds.other[here]), flips)
    return answer


def _rates(noise: Noise) -> tuple[float, float]:
    """How often noise adds and deletes what the radius counts: edges, or feature entries if no edge is noisy."""
    what = "" if _noise_on(noise, "") else "_feature"
    return noise[f"p_add{what}"], noise[f"p_delete{what}"]


def _mixes(total: int) -> list[tuple[int, int]]:
    """All splits into additions and deletions; the uneven ones first, because most targets fail there."""
    return [(add, total - add) for add in sorted(range(total + 1), key=lambda add: min(add, total - add))]


def _withstands_flips(noise: Noise, bounds: Bounds, attacks: list[tuple[int, int, int, int]]) -> Flags:
    """Whether each target is certified against attacks (edges added, deleted, feature entries added, deleted)."""
    alive = np.flatnonzero(bounds.decided)
    for edges_added, edges_deleted, added, deleted in attacks:
        if not len(alive):
            break
        of_edges = _regions(edges_added, edges_deleted, noise["p_add"], noise["p_delete"])
        of_entries = _regions(added, deleted, noise["p_add_feature"], noise["p_delete_feature"])
        clean, attacked = (np.outer(a, b).ravel() for a, b in zip(of_edges, of_entries, strict=True))
        worst = bounds.top[alive].min(keepdims=True), bounds.other[alive].max(keepdims=True)
        if not _label_stays(clean, attacked, *worst).all():  # else all others stay too
            alive = alive[_label_stays(clean, attacked, bounds.top[alive], bounds.other[alive])]
    return np.isin(np.arange(len(bounds.label)), alive)


def _regions(added: int, deleted: int, p_add: float, p_delete: float) -> tuple[Numbers, Numbers]:
    """Probabilities that 0, 1, … of the attacked entries look in the noisy input as in the attacked input.

    The first array is for noise around the clean input, the second for noise around the attacked one. All noisy inputs
    with the same number form one region: on it the ratio of the two probabilities is constant.
    """
    clean = np.convolve(_binomial(added, p_add), _binomial(deleted, p_delete))
    return clean, np.convolve(_binomial(added, 1 - p_delete), _binomial(deleted, 1 - p_add))


def _binomial(trials: int, p: float) -> Numbers:
    """Probabilities of 0 … ``trials`` successes: relative to the most probable number, then scaled to sum to 1."""
    if p in (0, 1):
        return np.asarray(np.arange(trials + 1) == p * trials, dtype=np.float64)
    mode = min(int((trials + 1) * p), trials)
    up, down = np.arange(mode, trials), np.arange(mode, 0, -1)
    more = np.cumprod((trials - up) / (up + 1) * (p / (1 - p)))
    fewer = np.cumprod(down / (trials - down + 1) * ((1 - p) / p))
    masses = np.concatenate([fewer[::-1], [1.0], more])
    return np.asarray(masses / masses.sum())


def _label_stays(clean: Numbers, attacked: Numbers, top: Numbers, other: Numbers) -> Flags:
    """Whether a class of probability ``top`` must still beat one of probability ``other`` (Neyman and Pearson, 1933).

    The worst classifier predicts the label in regions that are rare around the attacked input, and the other class in
    regions that are frequent there.
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
    """Probability, around the attacked input, of the event that fills regions in this order up to probability ``p``.

    ``p`` is the event's probability around the clean input. If by rounding it exceeds the sum of all regions, the
    excess counts ``beyond`` times.
    """
    clean, attacked, p = np.append(clean, 1.0), np.append(attacked, beyond), np.maximum(p, 0)
    before, gained = (np.concatenate([[0.0], np.cumsum(masses)]) for masses in (clean, attacked))
    last = np.searchsorted(before, p, side="right") - 1  # the region that is filled in part
    return np.asarray(gained[last] + (p - before[last]) / clean[last] * attacked[last])


def _withstands_injected(noise: Noise, bounds: Bounds, injected: Numbers, edges_each: float) -> Flags:
    """Whether each target is certified against ``injected`` nodes, shape ``[n]``, of ``edges_each`` edges.

    Let r be the probability that noise deletes all new edges, given what it does to the old graph. After the attack
    the label leads another class by at least E[w r] - 1, where w is 2 if the label is predicted on the noisy old
    graph, 0 if the other class is, and 1 otherwise. Known are a lower bound of the mean of r and one of all its values.
    So the lead is least if r is as far below 1 as these allow where w is 2, and then where w is 1.
    """
    p_edge, p_node = noise["p_edge"], noise["p_node"]
    mean = _isolated(p_node, (1 - p_edge) * (1 - p_node), injected, edges_each)  # old nodes lose their edges too
    least = _isolated(p_node, 1 - p_edge, injected, edges_each)  # no old node does
    floor, mean = {
        "B1": (least, least),
        "B2": (np.zeros(len(mean)), mean),
        "sharp": (least, mean),
        "legacy-unsound": (mean, mean),  # as released: it treats r as a constant, which it is not
    }[noise["test"]]
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


def _withstands_changed(noise: Noise, bounds: Bounds, changed: Numbers, own: bool) -> Flags:
    """Whether each target is certified against other features of ``changed`` nodes, shape ``[n]``, and of its own.

    If noise intercepts all of them, it is as if nothing had changed. So the label loses, and any other class gains, at
    most the probability that some message arrives.
    """
    answer = np.zeros(len(bounds.label), dtype=bool)
    for target, chances in enumerate(bounds.sources or []):
        worst = chances[: int(min(changed[target], len(chances)))]
        arrives = 1 - math.prod(worst) * (noise["p_ablate"] if own else 1)
        answer[target] = bounds.top[target] - arrives - MARGIN / 2 > bounds.other[target] + arrives + MARGIN / 2
    return answer & bounds.decided
