"""SampleEvidence: class counts under random noise, from which a probabilistic certificate is derived."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from agnncert.certificates.budget import Budget
from agnncert.certificates.claim import Claim
from agnncert.certificates.task import Task
from agnncert.certificates.votes import BoolArray, IntArray
from agnncert.errors import BudgetError, CertificateError, SettingsError, did_you_mean
from agnncert.proving.blocks import Rows
from agnncert.proving.evidence import Answers, Evidence
from agnncert.proving.words import Subject, Words
from agnncert_peers.bounds import ClassBounds, class_bounds
from agnncert_peers.deletion_noise import DeletionNoise
from agnncert_peers.flip_noise import FlipNoise
from agnncert_peers.interception_noise import InterceptionNoise, Sources
from agnncert_peers.noise import Noise
from agnncert_peers.sample_claim import make_sample_claim
from agnncert_peers.sample_words import sample_words

# What the error probability is spent on.
EACH = "each target"
TOGETHER = "all targets together"
SCOPES = (EACH, TOGETHER)

_NOISES: dict[str, type[Noise]] = {noise.kind: noise for noise in (FlipNoise, DeletionNoise, InterceptionNoise)}


@dataclass(frozen=True)
class SampleEvidence(Evidence):
    """Predictions of a model under noise, counted by class, for ``n`` targets.

    Every statement holds with probability ``1 - alpha`` over the draw of the samples, whose number must be fixed before
    any of them is seen. ``scope`` tells whether that is for each target on its own or for all of them at once.

    Attributes:
        method: Name of the defence, ``"rs"``, ``"sparse-rs"``, ``"bi-rs"`` or ``"interception"``.
        noise: The noise that was drawn.
        selection: Class counts of the samples that choose the label, shape ``[n, classes]``.
        estimation: Class counts of the samples that bound its probability, same shape.
        alpha: Error probability.
        scope: ``"each target"`` or ``"all targets together"``.
        seed: Seed that the samples were drawn from.
        task: ``"node"`` or ``"graph"``.
        sources: Which nodes reach each target; for noise that intercepts messages, and for no other.
    """

    kind: ClassVar[str] = "samples"
    defends_plain_model: ClassVar[bool] = True

    method: str
    noise: Noise
    selection: IntArray
    estimation: IntArray
    alpha: float
    scope: str = EACH
    seed: int = 0
    task: Task = "node"
    sources: Sources | None = None

    def __post_init__(self) -> None:
        check_alpha(self.alpha, self.scope)
        if self.task not in ("node", "graph"):
            raise SettingsError(f'task="{self.task}": {did_you_mean(str(self.task), ("node", "graph"))}')
        if self.selection.ndim != 2 or self.selection.shape != self.estimation.shape or self.selection.shape[1] < 1:
            raise SettingsError(
                f"selection counts have shape {self.selection.shape}, estimation counts "
                f"{self.estimation.shape}: both must be [targets, classes]."
            )
        _check_counts("selection", self.selection)
        _check_counts("estimation", self.estimation)
        hops = self.noise.hops if isinstance(self.noise, InterceptionNoise) else None
        if (hops is None) != (self.sources is None):
            raise SettingsError("noise that intercepts messages needs the paths to each target, other noise has none.")
        if hops is not None and self.sources is not None:
            self.sources.check(self.num_targets, hops)

    @property
    def num_targets(self) -> int:
        """Number of targets ``n``."""
        return len(self.estimation)

    @property
    def num_predictions(self) -> int:
        """Number of samples of each target."""
        of_first_target = self.selection[:1].sum() + self.estimation[:1].sum()  # all have as many
        return int(of_first_target)

    @property
    def counts(self) -> IntArray:
        """Estimation samples per target and class, shape ``[n, classes]``."""
        return self.estimation

    @cached_property
    def bounds(self) -> ClassBounds:
        """Label and class bounds of each target, at the stated ``alpha`` and scope."""
        return self._bounds(self.scope)

    @cached_property
    def _bounds_together(self) -> ClassBounds:
        """Bounds that hold for all targets at once, whatever the scope."""
        return self._bounds(TOGETHER)

    def _bounds(self, scope: str) -> ClassBounds:
        alpha = self.alpha
        if scope == TOGETHER:
            alpha = self.alpha / max(self.num_targets, 1)
        bounds = class_bounds(self.selection, self.estimation, alpha)
        if self.sources is None or not isinstance(self.noise, InterceptionNoise):
            return bounds
        return replace(bounds, silent=self.noise.silent(self.sources))

    def words(self, subject: Subject) -> Words:
        """Returns the words for predictions under random noise."""
        num_samples = int(self.estimation[:1].sum())  # the same for every target
        return sample_words(subject, num_samples)

    def labels(self) -> IntArray:
        """Returns the class that the selection samples chose for each target, shape ``[n]``."""
        return self.bounds.label.astype(np.int64)

    def radius(self) -> IntArray:
        """Returns the radius of each target, which the noise knows, shape ``[n]``; -1 where samples do not decide."""
        return self.noise.radius(self.bounds)

    def covers(self, budget: Budget) -> bool:
        """Tells whether the noise proves anything about such attacks."""
        return self.noise.covers(budget)

    @property
    def entries_per_target(self) -> int:
        """None: the noise looks at all targets at once."""
        return 0

    def stays_ahead(self, rows: Rows, attack: Budget | float, leader: int | None = None) -> BoolArray:
        """Tells of which classes the label stays the more probable one under an attack, shape ``[b, classes]``.

        All bounds of a target hold together with the probability that the claim states. Nothing is bounded from below
        but the probability of the label, so that nothing is proved about other leaders.
        """
        if leader is not None:
            return np.zeros((len(self._numbers(rows)), self.num_classes), dtype=bool)
        ahead = [self._stays(self.bounds.against(k), attack) for k in range(self.num_classes)]
        return np.stack(ahead, axis=1)[rows] | self._is_label(rows)

    def _stays(self, bounds: ClassBounds, attack: Budget | float) -> BoolArray:
        """Tells for which targets the rival of some bounds stays less probable than the label, shape ``[n]``."""
        if isinstance(attack, Budget):
            return self.noise.holds(attack, bounds)
        return np.asarray(self.noise.radius(bounds) >= attack)

    def keeps_label(self, rows: Rows, attack: Budget | float, rival: int | None = None) -> BoolArray:
        """Tells which labels stay, shape ``[b]``; faster, with the bound of the most probable rival."""
        bounds = self.bounds if rival is None else self.bounds.against(rival)
        return self._stays(bounds, attack)[rows]

    def holds_flips(
        self, add_edges: int = 0, delete_edges: int = 0, add_entries: int = 0, delete_entries: int = 0
    ) -> BoolArray:
        """Tells whether each target is certified against this many flips of single entries, shape ``[n]``.

        Args:
            add_edges: Edges added; only edges at the target, if only its row was subject to noise.
            delete_edges: Edges deleted, in the same way.
            add_entries: Entries of binary features changed from 0 to 1, over all nodes together.
            delete_entries: Entries changed from 1 to 0.

        Raises:
            SettingsError: The noise flips nothing.
        """
        if not isinstance(self.noise, FlipNoise):
            raise SettingsError(f"{self.method} does not flip entries: ask holds(Budget(…)) instead.")
        return self.noise.withstands(self.bounds, add_edges, delete_edges, add_entries, delete_entries)

    def broken_at_most(self, budget: Budget, among: BoolArray | None = None) -> int:
        """Bounds how many targets one attacked graph can break: as many as are not certified one by one.

        The number speaks about all targets at once, so ``alpha`` is spent on all of them together, whatever the scope.
        """
        fails = ~self.noise.holds(budget, self._bounds_together)
        return self.most_broken(budget, fails if among is None else fails & among)

    def most_broken(self, budget: Budget, fails: BoolArray) -> int:
        """Bounds how many targets fail together. In the graph task a target is a graph of its own: one at most."""
        return int(fails.any()) if self.task == "graph" else int(fails.sum())

    def answers(self, budgets: Sequence[Budget], rest: Budget) -> Answers:
        """Returns everything that a file states besides labels and radii; numbers are about all targets at once."""
        broken = tuple(self.broken_at_most(budget) for budget in budgets)
        return super().answers(budgets, rest)._replace(broken_at_most=broken)

    def tensors(self) -> dict[str, npt.NDArray[Any]]:
        """Returns the counts, and the paths to each target if noise intercepts messages."""
        tensors = {"selection": self.selection, "estimation": self.estimation}
        if self.sources is not None:
            tensors["start"] = self.sources.start
            tensors["paths"] = self.sources.paths
        return tensors

    def settings(self) -> dict[str, Any]:
        """Returns method, noise, error probability and seed, as a file stores them."""
        plain = {name: getattr(self, name) for name in ("method", "alpha", "scope", "seed", "task")}
        return plain | {"noise": self.noise.settings()}

    @classmethod
    def load(cls, tensors: Mapping[str, npt.NDArray[Any]], settings: Mapping[str, Any]) -> Self:
        """Makes evidence from what a file stores.

        Raises:
            CertificateError: Something is missing, of another shape, or contradicts itself.
        """
        try:
            parameters = dict(settings["noise"])
            noise = _NOISES[parameters.pop("kind")].load(parameters)
            sources = None
            if isinstance(noise, InterceptionNoise):
                sources = Sources(_whole(tensors["start"]), _whole(tensors["paths"]))
            return cls(
                method=settings["method"],
                noise=noise,
                selection=_whole(tensors["selection"]),
                estimation=_whole(tensors["estimation"]),
                alpha=settings["alpha"],
                scope=settings["scope"],
                seed=settings["seed"],
                task=settings["task"],
                sources=sources,
            )
        except (KeyError, TypeError, ValueError, SettingsError, BudgetError) as error:
            raise CertificateError(f"the evidence of a smoothing certificate is damaged: {error}") from error


def _check_counts(name: str, counts: IntArray) -> None:
    """Refuses counts that are negative, or whose sums differ from target to target."""
    totals = np.unique(counts.sum(axis=1))
    same_total = len(totals) <= 1
    if (counts < 0).any() or not same_total or (totals < 1).any():
        raise SettingsError(
            f"{name} counts must not be negative and must sum to the same number of samples, at "
            f"least 1, for every target; found sums {totals[:3].tolist()}."
        )


def check_alpha(alpha: float, scope: str) -> None:
    """Refuses an error probability that is not inside (0, 1), and unknown scopes.

    Raises:
        SettingsError: Says which of them it is.
    """
    if isinstance(alpha, bool) or not isinstance(alpha, (int, float)) or not 0 < alpha < 1:
        raise SettingsError(f"alpha={alpha!r}: the error probability must lie strictly between 0 and 1, such as 0.01.")
    if scope not in SCOPES:
        raise SettingsError(f'scope="{scope}": {did_you_mean(str(scope), SCOPES)}')


def _whole(array: npt.NDArray[Any]) -> IntArray:
    if not np.issubdtype(array.dtype, np.integer):
        raise ValueError(f"counts are of type {array.dtype}, expected whole numbers")
    return array.astype(np.int64)


def sample_claim(
    evidence: SampleEvidence,
    ids: str = "node_id",
    digests: Mapping[str, str] | None = None,
    notes: tuple[str, ...] = (),
) -> Claim:
    """Returns the claim that belongs to some evidence, see :func:`~agnncert_peers.sample_claim.make_sample_claim`."""
    return make_sample_claim(
        method=evidence.method,
        noise=evidence.noise.settings(),
        task=evidence.task,
        alpha=evidence.alpha,
        scope=evidence.scope,
        ids=ids,
        digests=digests,
        notes=notes,
    )
