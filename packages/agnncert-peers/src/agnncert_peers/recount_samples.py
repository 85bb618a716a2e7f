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
from functools import cached_property
from itertools import pairwise
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from agnncert.certificates.budget import Budget
from agnncert.certificates.claim import Claim
from agnncert.certificates.file import Contents
from agnncert.errors import CertificateError
from agnncert.verifier.check import require_trusted_training
from agnncert.verifier.file_checker import LeadChecker
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


class SamplesFile(LeadChecker):
    """A file that holds counts of random samples."""

    digests = frozenset({"graph", "model"})
    evidence = "samples"

    def __init__(self, contents: Contents) -> None:
        super().__init__(contents)
        check_samples(contents.evidence, contents.settings)
        self.samples = Samples.of(contents)
        self.noise = self.samples.noise
        check_work(self.noise, contents.budgets, self.samples.num_targets)

    @property
    def shape(self) -> tuple[int, int]:
        num_targets, num_classes = self.samples.estimation.shape
        return num_targets, num_classes

    def expected_claim(self) -> Claim:
        settings = self.contents.settings
        return make_sample_claim(
            method=settings["method"],
            noise=self.noise,
            task=settings["task"],
            alpha=settings["alpha"],
            scope=settings["scope"],
            ids=self.contents.claim.ids,
        )

    @cached_property
    def _bounds(self) -> "Bounds":
        return bound_classes(self.samples, self.samples.alpha_of_target)

    def wrong_values(self) -> dict[str, Flags]:
        stated = self.contents.arrays
        return {
            "label": stated["label"] != self._bounds.label,
            "radius": ~right_radius(self.noise, self._bounds, stated["radius"]),
            "number of new neighbours": stated["new_neighbours"] != -1,  # noise never covers any number of changes
        }

    def holds(self, budget: Budget) -> Flags:
        return holds(self.noise, self._bounds, budget)

    def label(self) -> "Numbers":
        return self._bounds.label

    def stays_ahead(self, budget: Budget, leader: int | None = None) -> Flags:
        if leader is not None:  # only the probability of the label is bounded from below
            return np.zeros(self.shape, dtype=bool)
        return stays_ahead(self.samples, budget)

    def numbers_broken(self, answers: list[Flags]) -> list[int]:
        """Returns numbers about all targets at once, whatever the scope of the file."""
        bounds = bound_classes(self.samples, self.samples.alpha_together)
        numbers = []
        for budget in self.contents.budgets:
            fails = ~holds(self.noise, bounds, budget)
            numbers.append(int(fails.any() if self.contents.settings["task"] == "graph" else fails.sum()))
        return numbers

    def not_checked(self) -> tuple[str, ...]:
        always = (
            "whether the targets, ids, true classes and degrees are those of a graph: pass data",
            "whether the samples were drawn from a model and this noise: pass data and model, and set recheck",
        )
        if "paths" in self.contents.evidence:
            return (*always, "whether the paths to the targets are those of a graph: pass data")
        return always


@dataclass(frozen=True)
class Samples:
    """What a file says about samples, after ``check_samples``.

    Attributes:
        selection: Class counts of the samples that choose the label, shape ``[n, classes]``.
        estimation: Class counts of the samples that bound its probability, same shape.
        noise: Kind and parameters of the noise.
        alpha: Error probability.
        each_target: Whether it is spent on each target; otherwise on all of them together.
        sources: For noise that intercepts messages: see :func:`intercepted`.
    """

    selection: Numbers
    estimation: Numbers
    noise: Noise
    alpha: float
    each_target: bool
    sources: list[list[float]] | None

    @classmethod
    def of(cls, contents: Contents) -> "Samples":
        """Reads them from a file."""
        settings = contents.settings
        return cls(
            selection=contents.evidence["selection"].astype(np.int64),
            estimation=contents.evidence["estimation"].astype(np.int64),
            noise=settings["noise"],
            alpha=settings["alpha"],
            each_target=settings["scope"] == "each target",
            sources=intercepted(settings["noise"], contents.evidence),
        )

    @property
    def num_targets(self) -> int:
        """Number of targets ``n``."""
        return len(self.estimation)

    @property
    def alpha_together(self) -> float:
        """What each target gets if all statements are to hold together."""
        return self.alpha / max(self.num_targets, 1)

    @property
    def alpha_of_target(self) -> float:
        """What each target gets in the scope that the file states."""
        return self.alpha if self.each_target else self.alpha_together


def check_samples(arrays: Mapping[str, Numbers], settings: Mapping[str, Any]) -> None:
    """Refuses counts and settings that no defence can have produced.

    Raises:
        CertificateError: Naming the first thing that is wrong.
    """
    names = set(settings)
    _require(names == _SETTINGS, f"the settings are {reprlib.repr(sorted(settings))}, expected {sorted(_SETTINGS)}")
    noise = settings["noise"]
    _check_noise(noise, settings["task"])
    known = {"selection", "estimation"}
    has_paths = noise["kind"] == "interception"
    if has_paths:
        known |= {"start", "paths"}
    _require(set(arrays) == known, f"the arrays are {reprlib.repr(sorted(arrays))}, expected {sorted(known)}")
    _check_counts(arrays["selection"], arrays["estimation"])
    _check_scalars(settings)
    if has_paths:
        _check_paths(arrays["start"], arrays["paths"], len(arrays["selection"]), noise["hops"])


def _check_counts(selection: Numbers, estimation: Numbers) -> None:
    """Refuses counts that are not those of the same number of samples for every target."""
    shape = selection.shape
    fits = shape == estimation.shape and len(shape) == 2 and 0 < shape[1] <= MOST_CLASSES
    _require(fits, f"counts are not [targets, classes], of at most {MOST_CLASSES:,} classes")
    for name, counts in (("selection", selection), ("estimation", estimation)):
        _require(counts.dtype.kind in "iu", f"{name} counts are no whole numbers")
        in_range = (counts >= 0) & (counts <= MOST_SAMPLES)
        _require(bool(in_range.all()), f"{name} counts are negative or too large")
        sums = np.unique(counts.sum(axis=1)).tolist()
        one_sum = len(sums) <= 1 and all(0 < total <= MOST_SAMPLES for total in sums)
        _require(one_sum, f"{name} counts sum to {sums[:3]}")


def _check_scalars(settings: Mapping[str, Any]) -> None:
    """Refuses settings other than the noise that no defence has."""
    _require(isinstance(settings["method"], str), "the method has no name")
    alpha = settings["alpha"]
    _require(_is_probability(alpha) and LEAST_ALPHA < alpha <= MOST_ALPHA, f"alpha is {reprlib.repr(alpha)}")
    scope = settings["scope"]
    _require(scope in ("each target", "all targets together"), f"the scope is {reprlib.repr(scope)}")
    task = settings["task"]
    _require(task in ("node", "graph"), f"the task is {reprlib.repr(task)}")
    seed = settings["seed"]
    is_number = isinstance(seed, int) and not isinstance(seed, bool)
    _require(is_number and seed >= 0, f"the seed is {reprlib.repr(seed)}")


def _check_paths(start: Numbers, paths: Numbers, num_targets: int, hops: int) -> None:
    """Refuses lists of paths that no graph has: one list for each target, and a path or more in each line of it."""
    whole = start.dtype.kind in "iu" and paths.dtype.kind in "iu"
    _require(whole and start.shape == (num_targets + 1,), "the paths are not whole numbers for every target")
    ends = start.astype(np.int64)
    rising = ends[0] == 0 and bool((np.diff(ends) >= 0).all())
    _require(rising and paths.shape == (ends[-1], hops), "the lists of paths do not belong to the targets")
    not_negative = bool((paths >= 0).all())
    a_path_each = bool(paths.any(axis=1).all())
    _require(not_negative and a_path_each, "a node reaches its target over no path")


def _check_noise(noise: Any, task: str) -> None:
    _require(isinstance(noise, dict) and noise.get("kind") in list(_PARAMETERS), f"the noise is {reprlib.repr(noise)}")
    kind = noise["kind"]
    known = set(_PARAMETERS[kind])
    if kind == "interception" and "skip" in noise:
        known.add("skip")
    _require(set(noise) == known, f"{kind} noise has {reprlib.repr(sorted(noise))}, expected {sorted(known)}")
    rates = {name: value for name, value in noise.items() if name.startswith("p_")}
    probabilities = all(map(_is_probability, rates.values()))
    _require(probabilities and any(rates.values()), f"probabilities are {reprlib.repr(rates)}")
    if kind == "deletions":
        _check_deletions(noise, task)
    elif kind == "interception":
        _check_interception(noise, task)
    else:
        _check_flips(noise, task)


def _check_deletions(noise: Noise, task: str) -> None:
    test = noise["test"]
    _require(test in ("B1", "B2", "sharp", "legacy-unsound"), f"the test is {reprlib.repr(test)}")
    most = noise["edges_per_injected"]
    _require(most == "inf" or _is_whole(most), f"edges_per_injected is {reprlib.repr(most)}")
    # A readout sees injected nodes even if they have lost all edges.
    _require(task == "node", "noise that deletes proves nothing about whole graphs")


def _check_interception(noise: Noise, task: str) -> None:
    hops = noise["hops"]
    _require(type(hops) is int and 1 <= hops <= MOST_HOPS, f"hops is {reprlib.repr(hops)}")
    _require(noise.get("skip", True) is True, f"skip is {reprlib.repr(noise.get('skip'))}")
    _require(task == "node", "noise that intercepts messages proves nothing about whole graphs")


def _check_flips(noise: Noise, task: str) -> None:
    on_edges = _noise_on(noise, "")
    on_features = _noise_on(noise, "_feature")
    _require(max(on_edges, on_features) < 1, "such noise says nothing about the input")
    features = noise["num_features"]
    _require(_is_whole(features) and features >= (on_features > 0), f"num_features is {reprlib.repr(features)}")
    where = noise["where"]
    _require(where in ("graph", "target row"), f"noise is on {reprlib.repr(where)}")
    _require(task == "node" or where == "graph", "a whole graph has no target row")


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
    """Returns how probable it is that noise intercepts each source of each target, ascending.

    A source is intercepted if its features are deleted, or else if every path from it is cut. By the inequality of
    Harris (1960) the paths are cut with at least the product of their probabilities. For other noise the answer is
    ``None``.
    """
    if noise["kind"] != "interception":
        return None
    lists = []
    for first, last in pairwise(arrays["start"].tolist()):
        chances = [_chance_to_intercept(noise, paths) for paths in arrays["paths"][first:last].tolist()]
        lists.append(sorted(chances))
    return lists


def _chance_to_intercept(noise: Noise, paths: list[int]) -> float:
    """Returns the least probability that noise intercepts a source with this many paths of 1, 2, … edges."""
    all_cut = 1.0
    for length, number in enumerate(paths, 1):
        arrives = (1 - noise["p_delete"]) ** length
        all_cut *= (1 - arrives) ** number
    return float(1 - (1 - noise["p_ablate"]) * (1 - all_cut))


def bound_classes(samples: Samples, alpha: float, against: int | None = None) -> Bounds:
    """Derives bounds from counts. Those of one target all hold together with probability ``1 - alpha``.

    Two classes need one bound, because their probabilities sum to 1. More classes share ``alpha``.

    Args:
        samples: The counts.
        alpha: Error probability of one target.
        against: The class to ask about. Defaults to the rival with most samples.
    """
    estimation = samples.estimation
    num_classes = estimation.shape[1]
    trials = int(estimation[:1].sum()) or 1  # the same for all targets
    label = samples.selection.argmax(axis=1)  # ties go to the smaller class
    is_label = np.arange(num_classes) == label[:, None]
    share = alpha / num_classes if num_classes > 2 else alpha
    top = _least_probability(estimation[is_label], trials, share)
    other = 1 - top
    if num_classes > 2:
        # The rival with most samples has the largest bound.
        rival = np.where(is_label, 0, estimation).max(axis=1) if against is None else estimation[:, against]
        other = np.minimum(other, 1 - _least_probability(trials - rival, trials, share))
    return Bounds(label, top, other, samples.sources)


def _least_probability(successes: Numbers, trials: int, alpha: float) -> Numbers:
    """Returns the success probability at which this many successes or more have probability ``alpha``, less ``MARGIN``.

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
    """Finds the bounds of some distinct numbers of successes."""
    low = np.zeros(len(successes))
    high = np.where(successes > 0, 1.0, 0.0)
    p = np.minimum(_wilson(successes, trials, math.exp(log_alpha)), high)
    for _ in range(100):
        tail, slope = _log_tail(successes, trials, p)
        is_low = tail <= log_alpha
        low = np.where(is_low, p, low)
        high = np.where(is_low, high, p)
        with np.errstate(over="ignore", invalid="ignore"):
            step = p * np.exp((log_alpha - tail) / slope)
        # By rounding, a step may lie just outside of the interval that it has narrowed down.
        good = (step > low * (1 - 1e-12)) & (step < np.minimum(high * (1 + 1e-12), 1))
        before = p
        p = np.where(good, step, (low + high) / 2)
        if (np.abs(p - before) <= 1e-15 + 4e-15 * p).all():
            break
    bound = np.maximum(p - MARGIN, 0)
    tail, _ = _log_tail(successes, trials, bound)
    return np.asarray(np.where(tail <= log_alpha, bound, 0.0))


def _wilson(successes: Numbers, trials: int, alpha: float) -> Numbers:
    """Returns a first guess for the search, which need not be a bound."""
    z = NormalDist().inv_cdf(1 - alpha) if alpha > 0.01 else -NormalDist().inv_cdf(alpha)
    share = successes / trials
    spread = z * z / trials
    width = np.sqrt(share * (1 - share) * spread + spread * spread / 4)
    rough = successes / (trials + 2 * math.log(1 / alpha) * trials / np.maximum(successes, 1))  # where nearly 0 is left
    wilson = (share + spread / 2 - math.copysign(1, z) * width) / (1 + spread)
    return np.clip(np.where(wilson > 1e-3 * rough, wilson, rough), 1e-300, 1 - 1e-16)


_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(40)
_NEGLIGIBLE = -42.0  # logarithm of what does not show in a sum around 1


def _log_tail(successes: Numbers, trials: int, p: Numbers) -> tuple[Numbers, Numbers]:
    """Returns the logarithm of the probability of at least ``successes`` successes, and its slope in ``log(p)``.

    The probability grows with ``p`` by ``successes / p`` times the probability of exactly that many, so it is the
    integral of that from 0 to ``p``. Relative to its value at ``p`` the integrand is smooth, so 40 points give the
    integral to about 14 digits; further down it is too small to show.
    """
    p = np.clip(p, 1e-300, 1 - 1e-16)

    def height(x: Numbers) -> Numbers:
        """Logarithm of the integrand at ``p + x``, relative to ``p``."""
        return np.asarray((successes - 1) * np.log1p(x / p) + (trials - successes) * np.log1p(-x / (1 - p)))

    with np.errstate(divide="ignore"):
        start = _where_it_shows(height, p)
        area = np.zeros(len(p))
        at_once = 1 + 2000 // (1 + len(p))  # points; more would leave the cache
        for first in range(0, len(_NODES), at_once):
            node = _NODES[first : first + at_once, None]
            weight = _WEIGHTS[first : first + at_once, None]
            for part in weight * np.exp(np.minimum(height(start * (1 - node) / 2), 600)):
                area += part
        area *= -start / 2
        log_tail = np.log(successes * area / p) + _log_binomial(successes, trials, p)
        return log_tail, p / area


def _where_it_shows(height: Callable[[Numbers], Numbers], p: Numbers) -> Numbers:
    """Returns how far below ``p`` the integrand is still too small to show, by halving intervals."""
    start = -p
    begin = np.zeros(len(p))
    for _ in range(50):
        middle = (start + begin) / 2
        shows = height(middle) > _NEGLIGIBLE
        start = np.where(shows, start, middle)
        begin = np.where(shows, middle, begin)
        if (start > 1.05 * begin).all():
            break
    return start


def _log_binomial(successes: Numbers, trials: int, p: Numbers) -> Numbers:
    """Returns the logarithm of the probability of exactly this many successes, without cancellation (Loader, 2000)."""
    failures = trials - successes
    scale = trials / (2 * np.pi * np.maximum(successes, 1) * np.maximum(failures, 1))
    scale = np.where((successes == 0) | (failures == 0), 1.0, scale)
    beyond_stirling = _stirling(np.array([trials])) - _stirling(successes) - _stirling(failures)
    of_successes = _deviance(successes, trials * p)
    of_failures = _deviance(failures, trials * (1 - p))
    return np.asarray(np.log(scale) / 2 + beyond_stirling - of_successes - of_failures)


_SMALL = np.array(
    [0.0, *(math.lgamma(k + 1) + k - (k + 0.5) * math.log(k) - math.log(math.tau) / 2 for k in range(1, 64))]
)


def _stirling(k: Numbers) -> Numbers:
    """Returns the logarithm of the factorial of ``k``, less Stirling's formula; 0 for 0, where that has no value."""
    inverse = 1 / np.maximum(k, 64)
    square = inverse * inverse
    series = inverse * (1 / 12 - square * (1 / 360 - square * (1 / 1260 - square / 1680)))
    return np.where(k < 64, _SMALL[np.minimum(k, 63).astype(np.int64)], series)


def _deviance(observed: Numbers, expected: Numbers) -> Numbers:
    """Returns ``observed * log(observed / expected) + expected - observed``; a series where these nearly cancel."""
    excess = (expected - observed) / np.maximum(observed, 1)
    near = np.clip(excess, -0.1, 0.1)
    series = np.zeros(len(excess))
    for power in range(16, 1, -1):
        series = 1 / power - near * series
    with np.errstate(divide="ignore"):
        far = excess - np.log1p(np.maximum(excess, -1))
    relative = np.where(near == excess, near * near * series, far)
    return np.where(observed == 0, expected, observed * relative)


def right_radius(noise: Noise, bounds: Bounds, stated: Numbers) -> Flags:
    """Tells whether each target is certified against the stated size but not the next one, shape ``[n]``.

    A target that is certified at a size is certified at all smaller ones, so these are not tried. The prover does not
    search beyond ``last``, so the next size need not fail there.
    """
    last = _largest_radius(noise)
    size = np.maximum(stated, -1)
    withstood = (size < 0) | _withstands_size(noise, bounds, np.maximum(size, 0), last)
    next_fails = ~_withstands_size(noise, bounds, np.minimum(size, last - 1) + 1, last)
    return np.asarray((stated >= -1) & withstood & (next_fails | (size >= last)))


def _largest_radius(noise: Noise) -> int:
    """Returns the largest radius that the prover looks for."""
    if noise["kind"] != "flips":
        return MOST_NODES - 1
    p_add, p_delete = _rates(noise)
    return MOST_FLIPS if p_add == p_delete else MOST_MIXED


def holds(noise: Noise, bounds: Bounds, budget: Budget) -> Flags:
    """Tells whether each target keeps its label against ``budget``, shape ``[n]``; False where nothing is proved."""
    require_trusted_training(budget)
    if budget.change_edges or budget.delete_nodes:
        return np.zeros(len(bounds.label), dtype=bool)
    if noise["kind"] == "interception":
        return _holds_interception(noise, bounds, budget)
    if noise["kind"] == "deletions":
        return _holds_deletions(noise, bounds, budget)
    return _holds_flips(noise, bounds, budget)


def _holds_interception(noise: Noise, bounds: Bounds, budget: Budget) -> Flags:
    """Answers for noise that intercepts messages, which covers changed features and nothing else."""
    own = bool(budget.target_features)
    own_is_seen = "skip" in noise
    if budget.add_edges or budget.delete_edges or budget.inject_nodes or (own_is_seen and own):
        return np.zeros(len(bounds.label), dtype=bool)
    changed = np.full(len(bounds.label), float(budget.change_features))
    return _withstands_changed(noise, bounds, changed, own)


def _holds_deletions(noise: Noise, bounds: Bounds, budget: Budget) -> Flags:
    """Answers for noise that deletes, which covers injected nodes and nothing else."""
    if budget.add_edges or budget.delete_edges or budget.change_features or budget.target_features:
        return np.zeros(len(bounds.label), dtype=bool)
    injected = np.full(len(bounds.label), float(budget.inject_nodes))
    return _withstands_injected(noise, bounds, injected, budget.edges_per_injected)


def _holds_flips(noise: Noise, bounds: Bounds, budget: Budget) -> Flags:
    """Answers for noise that flips, which covers edges, features or both, as far as these are noisy."""
    nowhere = np.zeros(len(bounds.label), dtype=bool)
    edges = budget.add_edges + budget.delete_edges
    nodes = budget.change_features + budget.target_features
    edges_covered = _noise_on(noise, "") and noise["where"] == "graph"
    if budget.inject_nodes or (edges and not edges_covered) or (nodes and not _noise_on(noise, "_feature")):
        return nowhere
    entries = nodes * noise["num_features"] if nodes else 0  # all entries of a node may flip, in any mix
    if max(edges, entries) > MOST_FLIPS:
        return nowhere
    of_edges = (int(budget.add_edges), int(budget.delete_edges))
    return _withstands_flips(noise, bounds, [(*of_edges, *mix) for mix in _mixes(int(entries))])


def stays_ahead(samples: Samples, budget: Budget) -> Flags:
    """Tells of which classes each label stays the more probable one under an attack, shape ``[n, classes]``."""
    num_targets, num_classes = samples.estimation.shape
    check_work(samples.noise, [budget], num_targets * num_classes)
    answer = np.zeros((num_targets, num_classes), dtype=bool)
    for k in range(num_classes):
        bounds = bound_classes(samples, samples.alpha_of_target, against=k)
        answer[:, k] = holds(samples.noise, bounds, budget)
    return answer


def check_work(noise: Noise, budgets: Iterable[Budget], num_targets: int) -> None:
    """Refuses budgets that would take too long to check, before any of them is.

    Raises:
        CertificateError: Names the work and the limit.
    """
    total = sum(steps(noise, budget, num_targets) for budget in budgets)
    _require(total <= MOST_STEPS, f"its budgets take {total:,} steps to check, at most {MOST_STEPS:,} are made")


def steps(noise: Noise, budget: Budget, num_targets: int) -> int:
    """Bounds how much work :func:`holds` is: for each mix of flips, its regions, and all targets."""
    if noise["kind"] != "flips":
        return num_targets
    edges = budget.add_edges + budget.delete_edges
    nodes = budget.change_features + budget.target_features
    if nodes and not _noise_on(noise, "_feature"):
        return num_targets  # nothing is proved about features: the answer is no without any regions
    entries = 0
    if nodes and noise["num_features"]:  # infinity times 0 is NaN
        entries = nodes * noise["num_features"]
    if max(edges, entries) > MOST_FLIPS:
        return num_targets
    regions = (edges + 1) * (entries + 1) + (edges**2 + entries**2) // 400
    return int((entries + 1) * (regions + num_targets))


def _withstands_size(noise: Noise, bounds: Bounds, size: Numbers, last: int) -> Flags:
    """Tells whether each target is certified at its own size, in steps of the radius, shape ``[n]``."""
    if noise["kind"] == "interception":
        withstood = _withstands_changed(noise, bounds, size.astype(np.float64), own=False)
        return withstood & (size <= MOST_NODES)
    if noise["kind"] == "deletions":
        edges_each = float(noise["edges_per_injected"])
        withstood = _withstands_injected(noise, bounds, size.astype(np.float64), edges_each)
        return withstood & (size <= MOST_NODES)
    answer = np.zeros(len(size), dtype=bool)
    for steps in np.unique(size[size <= last]).tolist():
        here = np.flatnonzero(size == steps)
        of_targets = Bounds(bounds.label[here], bounds.top[here], bounds.other[here])
        answer[here] = _withstands_flips(noise, of_targets, _attacks_of_size(noise, steps))
    return answer


def _attacks_of_size(noise: Noise, size: int) -> list[tuple[int, int, int, int]]:
    """Lists the attacks of a size as the radius counts it: edges added, deleted, entries added, deleted."""
    p_add, p_delete = _rates(noise)
    mixes = [(size, 0)] if p_add == p_delete else _mixes(size)  # with one rate, all mixes have the same regions
    if _noise_on(noise, ""):
        return [(add, delete, 0, 0) for add, delete in mixes]
    return [(0, 0, add, delete) for add, delete in mixes]


def _rates(noise: Noise) -> tuple[float, float]:
    """Returns how often noise adds and deletes what the radius counts: edges, or entries if no edge is noisy."""
    what = "" if _noise_on(noise, "") else "_feature"
    return float(noise[f"p_add{what}"]), float(noise[f"p_delete{what}"])


def _mixes(total: int) -> list[tuple[int, int]]:
    """Lists all splits into additions and deletions, the uneven ones first, because most targets fail there."""
    uneven_first = sorted(range(total + 1), key=lambda add: min(add, total - add))
    return [(add, total - add) for add in uneven_first]


def _withstands_flips(noise: Noise, bounds: Bounds, attacks: list[tuple[int, int, int, int]]) -> Flags:
    """Tells whether each target is certified against attacks (edges added, deleted, entries added, deleted)."""
    alive = np.flatnonzero(bounds.decided)
    for edges_added, edges_deleted, added, deleted in attacks:
        if not len(alive):
            break
        of_edges = _regions(edges_added, edges_deleted, noise["p_add"], noise["p_delete"])
        of_entries = _regions(added, deleted, noise["p_add_feature"], noise["p_delete_feature"])
        clean = np.outer(of_edges.clean, of_entries.clean).ravel()
        attacked = np.outer(of_edges.attacked, of_entries.attacked).ravel()
        lowest_top = bounds.top[alive].min(keepdims=True)
        highest_other = bounds.other[alive].max(keepdims=True)
        if not _label_stays(clean, attacked, lowest_top, highest_other).all():  # else all others stay too
            alive = alive[_label_stays(clean, attacked, bounds.top[alive], bounds.other[alive])]
    return np.isin(np.arange(len(bounds.label)), alive)


class _Regions(NamedTuple):
    """Probabilities that 0, 1, … of the attacked entries look in the noisy input as in the attacked input.

    All noisy inputs with the same number form one region: on it the ratio of the two probabilities is constant.

    Attributes:
        clean: For noise around the clean input.
        attacked: For noise around the attacked input.
    """

    clean: Numbers
    attacked: Numbers


def _regions(added: int, deleted: int, p_add: float, p_delete: float) -> _Regions:
    clean = np.convolve(_binomial(added, p_add), _binomial(deleted, p_delete))
    attacked = np.convolve(_binomial(added, 1 - p_delete), _binomial(deleted, 1 - p_add))
    return _Regions(clean, attacked)


def _binomial(trials: int, p: float) -> Numbers:
    """Returns the probabilities of 0 … ``trials`` successes, scaled to sum to 1 from the most probable number on."""
    if p in (0, 1):
        return np.asarray(np.arange(trials + 1) == p * trials, dtype=np.float64)
    mode = min(int((trials + 1) * p), trials)
    up = np.arange(mode, trials)
    down = np.arange(mode, 0, -1)
    more = np.cumprod((trials - up) / (up + 1) * (p / (1 - p)))
    fewer = np.cumprod(down / (trials - down + 1) * ((1 - p) / p))
    masses = np.concatenate([fewer[::-1], [1.0], more])
    return np.asarray(masses / masses.sum())


def _label_stays(clean: Numbers, attacked: Numbers, top: Numbers, other: Numbers) -> Flags:
    """Tells whether a class of probability ``top`` must still beat one of probability ``other``.

    By Neyman and Pearson (1933) the worst classifier predicts the label in regions that are rare around the attacked
    input, and the other class in regions that are frequent there.
    """
    can_occur = (clean > 0) | (attacked > 0)
    clean = clean[can_occur]
    attacked = attacked[can_occur]
    with np.errstate(divide="ignore"):
        order = np.argsort(np.log(attacked) - np.log(clean), kind="stable")
    clean = clean[order]
    attacked = attacked[order]
    low = _filled(clean, attacked, top - MARGIN, beyond=-1.0) - MARGIN
    up = _filled(clean[::-1], attacked[::-1], other + MARGIN, beyond=1.0) + MARGIN
    return np.asarray(np.maximum(low, 0) > np.minimum(up, 1))


def _filled(clean: Numbers, attacked: Numbers, p: Numbers, beyond: float) -> Numbers:
    """Returns the probability, around the attacked input, of the event that fills regions in this order up to ``p``.

    ``p`` is the event's probability around the clean input. If by rounding it exceeds the sum of all regions, the
    excess counts ``beyond`` times.
    """
    clean = np.append(clean, 1.0)
    attacked = np.append(attacked, beyond)
    p = np.maximum(p, 0)
    before = np.concatenate([[0.0], np.cumsum(clean)])
    gained = np.concatenate([[0.0], np.cumsum(attacked)])
    last = np.searchsorted(before, p, side="right") - 1  # the region that is filled in part
    return np.asarray(gained[last] + (p - before[last]) / clean[last] * attacked[last])


def _withstands_injected(noise: Noise, bounds: Bounds, injected: Numbers, edges_each: float) -> Flags:
    """Tells whether each target is certified against ``injected`` nodes, shape ``[n]``, of ``edges_each`` edges.

    Let r be the probability that noise deletes all new edges, given what it does to the old graph. After the attack
    the label leads another class by at least E[w r] - 1, where w is 2 if the label is predicted on the noisy old
    graph, 0 if the other class is, and 1 otherwise. Known are a lower bound of the mean of r and one of all its values.
    So the lead is least if r is as far below 1 as these allow where w is 2, and then where w is 1.
    """
    p_edge = noise["p_edge"]
    p_node = noise["p_node"]
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
    """Returns the probability that each injected node is deleted itself or loses all its edges, one by one."""
    if not edges_each:
        return np.ones(len(injected))
    some_edge_stays = -math.expm1(edges_each * math.log1p(-edge_stays)) if edge_stays < 1 else 1.0
    connected = (1 - p_node) * some_edge_stays
    if connected == 1:
        return np.where(injected > 0, 0.0, 1.0)
    return np.exp(injected * math.log1p(-connected))


def _withstands_changed(noise: Noise, bounds: Bounds, changed: Numbers, own: bool) -> Flags:
    """Tells whether each target is certified against other features of ``changed`` nodes, shape ``[n]``, and its own.

    If noise intercepts all of them, it is as if nothing had changed. So the label loses, and any other class gains, at
    most the probability that some message arrives.
    """
    answer = np.zeros(len(bounds.label), dtype=bool)
    for target, chances in enumerate(bounds.sources or []):
        worst = chances[: int(min(changed[target], len(chances)))]
        own_intercepted = noise["p_ablate"] if own else 1
        arrives = 1 - math.prod(worst) * own_intercepted
        low = bounds.top[target] - arrives - MARGIN / 2
        high = bounds.other[target] + arrives + MARGIN / 2
        answer[target] = low > high
    return answer & bounds.decided
