"""``Defence``: everything that a surface may ask of a defence.

Commands, reports, attacks, comparisons and live graphs know this class and no kind of defence. A kind is a subclass:
divisions with a voting rule (``agnncert.divided``), stacked votes (``agnncert.stacked``), smoothing (the package
``agnncert_peers``), or somebody's own. A kind that cannot do something says so once, in :attr:`Defence.cannot`.

To add a kind, write a subclass and its evidence, and name both in entry points (``agnncert.addons``):
``agnncert.defences`` by the kind of evidence that stands in files, ``agnncert.evidence`` and ``agnncert.verifier`` by
the same name.
"""

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, Self, TypeAlias, Union

import numpy as np

from agnncert.certificates.class_names import class_word
from agnncert.certificates.file import Contents
from agnncert.certificates.task import Task as Task
from agnncert.certificates.threshold_record import ThresholdRecord
from agnncert.certificates.votes import IntArray
from agnncert.certificates.voting_rule import LARGEST_PRIOR, VotingRule
from agnncert.errors import SettingsError, SuggestsSettings, did_you_mean
from agnncert.explanation import VoteExplanation
from agnncert.findings import Findings as Findings  # part of what a defence returns
from agnncert.progress import OnProgress
from agnncert.proving.certificate import Certificate
from agnncert.proving.measures import Measures
from agnncert.proving.words import LOWER, UPPER, plain_percent

if TYPE_CHECKING:
    import numpy.typing as npt
    import torch
    from torch_geometric.data import Data

    from agnncert.agreement import Comparison
    from agnncert.as_built import OwnModel
    from agnncert.auditing.model_audit import AuditReport
    from agnncert.engine.workers import Workers
    from agnncert.graphs.targets import CanonicalData

# Names in quotes, so that help() shows them and nothing is imported for it.
Model: TypeAlias = Union["torch.nn.Module", Callable[..., "torch.Tensor"]]
GraphData: TypeAlias = Union["Data", Sequence["Data"], "CanonicalData"]
TargetChoice: TypeAlias = Union["torch.Tensor", "npt.ArrayLike", None]

Engine: TypeAlias = Literal["fast", "naive"]
Ability: TypeAlias = Literal["attack", "explain", "field", "live", "subgraphs", "threshold", "voting_rule"]

_ABILITIES: Mapping[str, str] = MappingProxyType(
    {
        "attack": "have its graph attacked",
        "explain": "explain a decision",
        "field": "certify a node from its receptive field",
        "live": "be kept up to date while the graph changes",
        "subgraphs": "be trained subgraph by subgraph",
        "threshold": "be given a threshold",
        "voting_rule": "be given a voting rule",
    }
)


class AsDefence(Protocol):
    """What can be passed as a defence: a ``Defence``, a division, or what ``choose_threshold`` and others return."""

    def as_defence(self) -> "Defence":
        """Returns the defence."""
        ...


@dataclass(frozen=True)
class CertifyOptions:
    """The optional arguments of ``certify``. ``None`` means that the caller left it to the defence.

    Attributes:
        voting_rule: How votes are added up, or the result of ``choose_voting_rule`` or ``choose_threshold``.
        engine: How predictions are computed, "fast" or "naive". The result is the same.
        tolerance: How far two computations of one logit may lie apart, relative to the largest.
        memory_limit: About how many bytes one chunk of work may take, as a number or as text such as "4GB".
        checkpoint: Where an interrupted run keeps what is finished.
        workers: Who does the work.
        progress: Called as the work progresses.
    """

    voting_rule: Any = None
    engine: Engine | None = None
    tolerance: float | None = None
    memory_limit: int | str | None = None
    checkpoint: str | os.PathLike[str] | None = None
    workers: "Workers | None" = None
    progress: OnProgress | None = None

    def given(self) -> dict[str, Any]:
        """Returns the options that are not ``None``, by name."""
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        return {name: value for name, value in values.items() if value is not None}


@dataclass(frozen=True)
class FitOptions:
    """The optional arguments of ``fit``.

    Attributes:
        settings: Settings of training as the caller gave them, by name (``training.settings.FitSettings``).
        voting_rule: The voting rule that ``certify`` will be given.
        checkpoint: File from which an interrupted run goes on.
        progress: Is called after every epoch.
    """

    settings: Mapping[str, Any] = field(default_factory=dict)
    voting_rule: VotingRule | None = None
    checkpoint: str | os.PathLike[str] | None = None
    progress: Callable[[Any], None] | None = None


@dataclass(frozen=True)
class RecomputeOptions:
    """The optional arguments of ``verify`` that are about the graph and the model.

    Attributes:
        recheck: How many single votes are computed once more, one subgraph at a time; ``math.inf`` for all of them.
        seed: Seed of the choice of these votes.
        progress: Called while votes are recomputed.
        workers: Who computes votes again; this process by default.
    """

    recheck: float = 0
    seed: int = 0
    progress: OnProgress | None = None
    workers: "Workers | None" = None


@dataclass(frozen=True)
class AlertLimit:
    """How many targets may get the label of the class to be found.

    Attributes:
        positive: The class to be found.
        of_others: Whether only targets of other classes count.
        most: How many of the targets of the validation part that count may get the label.
        kept: Rows of targets of other classes that were kept for the threshold. It is ``None`` if the
            validation part decides; else that part chooses everything but the threshold.
        most_kept: How many of those that were kept may get the label.
    """

    positive: int
    of_others: bool
    most: int
    kept: IntArray | None = None
    most_kept: int = 0


@dataclass(frozen=True)
class OperatingPoint:
    """A threshold, which ``choose_threshold`` found on validation or kept targets; ``print`` shows it.

    ``certify(point.model, data, point)`` certifies labels with this threshold.

    Attributes:
        model: The model to certify. It is the given one unless the threshold is a part of the model.
        defence: The defence to certify with.
        prior: The votes, or scores, that each class is given in advance.
        positive: The class whose targets are to be found.
        size: The perturbation size for which it was chosen.
        alerts: Validation targets that get the positive label without an attack.
        flagged: How many of the targets that the limit counts get it without an attack, at most.
        measures: What the labels are worth on the validation part without an attack.
        certified: What is certified of that at ``size``; ``None`` if it was not computed.
        class_names: What the classes are called. It is empty if they have numbers only.
        threshold: What was requested, as certificates state it.
    """

    model: Any
    defence: "Defence"
    prior: tuple[float, ...]
    positive: int
    size: float
    alerts: int
    flagged: int
    measures: Measures
    certified: Measures | None = None
    class_names: tuple[str, ...] = ()
    threshold: ThresholdRecord | None = None

    def as_defence(self) -> "Defence":
        """Returns the defence with the threshold."""
        return self.defence

    def require_model(self, model: Any) -> None:
        """Refuses another model than ``model`` if the threshold is a part of it.

        Raises:
            SettingsError: The given model would label without the threshold.
        """
        from agnncert.models.digest import model_digest  # only here: it needs torch

        if self.voting_rule is None and model_digest(model) != model_digest(self.model):
            raise SettingsError(
                "the threshold is part of point.model, but another model was given, which would label without it: pass "
                "point.model."
            )

    @property
    def voting_rule(self) -> VotingRule | None:
        """The voting rule whose prior is the threshold; ``None`` if the threshold is a part of the model."""
        return self.defence.voting_rule

    def to_json(self) -> dict[str, Any]:
        """Returns what was chosen, as JSON values, as run folders store it."""
        chosen: dict[str, Any] = {"decides": "threshold", "division": str(self.defence), "prior": list(self.prior)}
        if self.voting_rule is not None:
            chosen |= self.voting_rule.to_json()
        requested = {} if self.threshold is None else {"threshold": self.threshold.to_json()}
        return {"size": self.size, "text": str(self), "candidates": [{**chosen, "chosen": True}], **requested}

    def __str__(self) -> str:
        prior = "/".join(f"{number:g}" for number in self.prior)
        measured = self.measures
        text = (
            f"prior {prior}: {self.alerts} alerts of {self._positive} among {measured.num_targets:,}, "
            f"{self._shares(measured)}"
        )
        if self.size and self.certified is not None:
            text += f"; certified at size {self.size:g}: {self._shares(self.certified)} at most"
        if self.threshold is None or not self.threshold.is_guaranteed:
            return text
        return f"{text}. {self.threshold.in_words(class_word(self.class_names, self.positive))}"

    @property
    def _positive(self) -> str:
        name = f" ({self.class_names[self.positive]})" if self.class_names else ""
        return f"class {self.positive}{name}"

    def _shares(self, measured: Measures) -> str:
        recall = plain_percent(measured.recall[self.positive], LOWER)
        false_positives = plain_percent(measured.false_positive_rate[self.positive], UPPER)
        return f"recall {recall}, false positives {false_positives}"


class Defence(SuggestsSettings, ABC):
    """A way to classify the nodes of a graph, or graphs, that comes with a proof.

    The label of a target is the class with the largest score, and the smaller class on a tie. A kind whose scores are
    rounded or drawn at random may decide otherwise where two of them are close.

    Attributes:
        kind: Name of its kind of evidence in certificate files, and its key in the entry points.
        certify_options: Names of the :class:`CertifyOptions` that it understands. ``certify`` refuses the others.
        cannot: Why it cannot do something, by the name of what it cannot do: "attack", "explain", "field", "live",
            "subgraphs", "threshold" or "voting_rule". Each reason completes the sentence "… cannot …, because …".
        model_is_optional: Whether ``fit`` may be given ``None`` instead of a model.
        trusts_training_data: Whether training labels and graphs are taken to be as they were meant. Where they are not,
            ``fit`` refuses a split that follows them (``require_fixed_split``), and commands draw one by ids.
        base_model: Name of the built-in model that commands and comparisons train for it unless they are told another
            one; ``None`` for the usual one.
        tasks: What it classifies: ``"node"``, ``"graph"`` or ``"pair"``.
        for_other_tasks: What a user is told who asks for something else.
        own_model: The class of the models that ``fit`` makes, a subclass of ``agnncert.as_built.OwnModel``, if it makes
            models of its own. Only such models, as they were made, can be certified with it.
        open_without_model: What stays open if a file is compared with the graph only.
        voting_rule: How votes are added up; ``None`` if that is not said, or if this kind of defence adds up no votes.
    """

    kind: ClassVar[str]
    certify_options: ClassVar[frozenset[str]] = frozenset({"progress"})
    cannot: ClassVar[Mapping[str, str]] = MappingProxyType({})
    model_is_optional: ClassVar[bool] = False
    trusts_training_data: ClassVar[bool] = True
    base_model: ClassVar[str | None] = None
    tasks: ClassVar[tuple[Task, ...]] = ("node", "graph")
    for_other_tasks: ClassVar[str] = "this defence classifies nodes or graphs: for pairs of nodes, pass ac.PairVotes()."
    own_model: ClassVar["type[OwnModel] | None"] = None
    open_without_model: ClassVar[str] = "that the model computed this, and may be certified: give the model"
    voting_rule: VotingRule | None = None

    @abstractmethod
    def fit(self, model: Any, data: Any, options: FitOptions) -> Any:
        """Trains a model for this defence and returns it in eval mode, with its ``training_record``."""

    @abstractmethod
    def audit(self, model: Any, data: Any, task: Task | None = None) -> "AuditReport":
        """Checks whether a model keeps what the proofs assume about it."""

    @abstractmethod
    def certify(self, model: Any, data: Any, targets: Any, options: CertifyOptions) -> Certificate:
        """Certifies the targets of a graph, or some of several graphs, with a trained model."""

    def recompute(self, contents: Contents, data: "CanonicalData", model: Any, options: RecomputeOptions) -> Findings:
        """Compares what a certificate file says with a graph and, unless it is ``None``, with a model.

        The steps are the same for every kind. What it computes again stands in :meth:`compare_graph` and
        :meth:`compare_model`.
        """
        from agnncert.agreement import Comparison  # only here: it needs torch

        comparison = Comparison(contents, data, options)
        self.compare_graph(comparison)
        if model is None:
            comparison.findings.not_checked.append(self.open_without_model)
        elif comparison.is_of_model(model):
            self.require_model(model)
            self.compare_model(comparison, model)
        return comparison.findings

    def compare_graph(self, comparison: "Comparison") -> None:
        """Compares a file with the graph: by default the graph itself, and the targets with ids, classes and degrees.

        What the file says beyond that and follows from the graph is computed again.
        """
        comparison.compare_targets(comparison.targets())

    @abstractmethod
    def compare_model(self, comparison: "Comparison", model: Any) -> None:
        """Computes again what a file says that a model computed. It is the certified one, and :meth:`require_model`
        has accepted it; nothing wrong was found so far.
        """

    @classmethod
    @abstractmethod
    def from_file(cls, contents: Contents, model: Any) -> Self:
        """Returns the defence that a certificate file names; it may need the model to know its settings.

        Raises:
            SettingsError: The file does not say enough, so that the caller has to pass the defence.
        """

    @classmethod
    @abstractmethod
    def from_settings(cls, name: str, task: Task, settings: Mapping[str, Any]) -> Self:
        """Returns the defence that a command or a settings file names.

        Raises:
            SettingsError: It has no such setting, or is not for this task.
        """

    @classmethod
    def setting_names(cls, name: str) -> tuple[str, ...]:
        """Returns the names of the settings that ``from_settings`` understands. These are the fields of a dataclass."""
        return tuple(each.name for each in fields(cls)) if is_dataclass(cls) else ()

    @classmethod
    def require_known_settings(cls, what: str, name: str, settings: Mapping[str, Any]) -> None:
        """Refuses settings of ``from_settings`` that this kind of defence does not have.

        Args:
            what: What the defence is called in the message, in the plural, such as "stacked votes".
            name: The name of the defence in commands.
            settings: The settings by name.

        Raises:
            SettingsError: Names the first of them, and the nearest one that exists.
        """
        valid = cls.setting_names(name)
        for key in settings:
            if key not in valid:
                raise SettingsError(f'{what} have no setting "{key}": {did_you_mean(key, valid)}')

    def trusted_in_training(self, data: Any) -> Any:
        """Returns what choices about a model and its training may read of some data; ``None`` if nothing.

        If a certificate holds for data that is changed before training, the changed part must decide neither how large
        the model is nor how it is trained. By default all training data is trusted.
        """
        return data

    def resolved_settings(self) -> dict[str, Any]:
        """Returns settings of ``from_settings`` whose usual value depends on the task, so that a run records them."""
        return {}

    def keeps_checkpoint(self, engine: Engine = "fast") -> bool:
        """Whether ``certify`` can keep what is finished, so that an interrupted run goes on from there."""
        return "checkpoint" in self.certify_options

    def untrained(self, model: Any, data: Any, seed: int = 0) -> Any:
        """Returns a model into which the weights of a trained one can be loaded.

        Args:
            model: The model that ``fit`` was given.
            data: The data that it was trained on.
            seed: The seed that it was trained with.
        """
        return model

    def scores(self, model: Any, data: Any, targets: Any = None) -> IntArray:
        """Returns the score of every class for each target, in whole numbers, shape ``[n, num_classes]``.

        This version certifies, which takes longer than it has to: kinds override it.
        """
        return self.certify(model, data, targets, CertifyOptions()).counts

    def labels_and_scores(self, model: Any, data: Any, targets: Any = None) -> tuple[IntArray, IntArray]:
        """Returns the label of each target, shape ``[n]``, and the score of every class, ``[n, num_classes]``.

        Kinds whose label is not always the class with the largest score override it.
        """
        scores = self.scores(model, data, targets)
        return np.asarray(scores.argmax(axis=1)), scores

    def labels(self, model: Any, data: Any, targets: Any = None) -> IntArray:
        """Returns the label of each target, shape ``[n]``."""
        return self.labels_and_scores(model, data, targets)[0]

    def reach_in_hops(self) -> int | None:
        """Returns over how many hops edges and features can matter to a node's label; ``None`` if over any number.

        With a number, nothing else may matter: no id, no node further away, and not where the node stands in the data.
        Attacks then look at the neighbourhood of a target instead of the whole graph.
        """
        return None

    def hops_of_field(self, model: Any) -> int:
        """Returns within how many hops of a node the edges of all nodes decide about its certificate.

        Nothing else of the graph then does: not the size of the graph, no other id, and not where nodes stand in it.

        Raises:
            SettingsError: There is no such number, or it is not known for this model.
        """
        raise self.refusal("field")

    def trusted_column(self) -> int | None:
        """Returns the column of ``edge_attr`` that is positive for edges which no attacker can change, or ``None``.

        The ends of such an edge keep their features and are not deleted, and no attacker can mark an edge so.
        """
        return None

    def as_certified(self, certificate: Certificate) -> "Defence":
        """Returns the same defence, with the settings that it leaves open as a certificate states them."""
        return self

    def explain(self, model: Any, data: Any, target: Any) -> VoteExplanation:
        """Explains who voted for which class, and what would have to go or come to change the label of a target.

        Args:
            model: The trained model.
            data: The graph or graphs.
            target: Id of the node, or number of the graph.

        Raises:
            IdError: There is no such target.
            SettingsError: This kind of defence cannot.
        """
        raise self.refusal("explain")

    def subgraphs(self, data: Any) -> "Sequence[Data]":
        """Returns the subgraphs on which a model votes, for a training loop of one's own.

        Raises:
            SettingsError: This kind of defence has no subgraphs.
        """
        raise self.refusal("subgraphs")

    def live(self, model: Any, data: Any, **settings: Any) -> Any:
        """Returns a graph that keeps labels and radii up to date while it changes (package ``agnncert_live``).

        Raises:
            SettingsError: This kind of defence cannot.
        """
        raise self.refusal("live")

    def with_voting_rule(self, voting_rule: Any) -> "Defence":
        """Returns the same defence with another voting rule; ``None`` leaves it as it is.

        Raises:
            SettingsError: This kind of defence has no voting rule.
        """
        if voting_rule is None:
            return self
        raise self.refusal("voting_rule")

    def require_task(self, task: Task, num_classes: int | None = None) -> None:
        """Refuses a task that this defence, with its voting rule, is not for.

        Args:
            task: What is to be classified.
            num_classes: Number of classes, if it is known.

        Raises:
            SettingsError: It is not for this task, or the voting rule is not.
        """
        self.require_own_task(task)

    @classmethod
    def require_own_task(cls, task: Task) -> None:
        """Refuses a task that no defence of this kind is for.

        Raises:
            SettingsError: Says what it is for.
        """
        if task not in cls.tasks:
            raise SettingsError(cls.for_other_tasks)

    def require_data(self, data: Any) -> None:
        """Refuses data that no model of this defence can be made for; commands ask before they train anything.

        Raises:
            AgnncertError: Says what the data lacks, and what to choose instead.
        """

    @property
    def kind_of_evidence(self) -> str:
        """Kind of evidence that ``certify`` gives with these settings: ``kind``, unless a defence has several."""
        return self.kind

    @property
    def chooses_voting_rule(self) -> bool:
        """Whether :meth:`choose_voting_rule` can choose a voting rule."""
        return False

    def short_name(self) -> str:
        """Returns its name in a table: the printed form without settings that are the usual ones."""
        return str(self)

    def choose_voting_rule(self, model: Any, data: Any, size: int, **settings: Any) -> Any:
        """Chooses on the validation part the voting rule that certifies most at a perturbation size.

        Raises:
            SettingsError: This kind of defence has no voting rule.
        """
        raise self.refusal("voting_rule")

    def require_size(self, size: Any) -> None:
        """Refuses a size for which no voting rule can be chosen.

        Raises:
            SettingsError: The size makes no sense, or this kind of defence has no voting rule.
        """
        raise self.refusal("voting_rule")

    def choose_threshold(self, model: Any, data: Any, limit: AlertLimit, **settings: Any) -> OperatingPoint:
        """Chooses from which score on a target gets the label of the class to be found.

        Args:
            model: The trained model.
            data: The graph or graphs.
            limit: How many targets of which part may get that label without an attack.
            settings: Further settings of this kind of defence.

        Raises:
            SettingsError: This kind of defence cannot, or has no such setting.
        """
        raise self.refusal("threshold")

    def seeded(self, seed: int, **settings: Any) -> "Defence":
        """Returns the same defence with another seed and other settings of its random numbers, if it draws any."""
        return self

    def random_settings(self) -> dict[str, Any]:
        """Returns the settings that random numbers depend on, by name; empty if the defence draws none."""
        return {}

    def without_edges(self, model: Any) -> Any:
        """Returns a model that answers as this one does without any edge, or ``None`` if there is no such answer.

        Comparisons and reports show it beside the defence, because it needs no proof.
        """
        return None

    def as_defence(self) -> "Defence":
        """Returns itself: whatever has this method can be passed as a defence."""
        return self

    def refusal(self, ability: Ability) -> SettingsError:
        """Returns the error that says why this defence cannot do something."""
        reason = self.cannot.get(ability, "this kind of defence does not offer it")
        return SettingsError(f"{self} cannot {_ABILITIES[ability]}, because {reason}.")

    def require_threshold_settings(self, settings: Mapping[str, Any], known: tuple[str, ...]) -> None:
        """Refuses further arguments of ``choose_threshold`` that this defence does not understand.

        Args:
            settings: The arguments by name.
            known: The names that it understands.

        Raises:
            SettingsError: Names the first of them.
        """
        for name in settings:
            if name not in known:
                raise SettingsError(f'choose_threshold has no argument "{name}" here: {did_you_mean(name, known)}')

    def require_model(self, model: Any) -> None:
        """Refuses a model that this defence cannot speak about, whoever asks: certify, choose, verify, attack, explain.

        Raises:
            ModelContractError: The model, or a layer of it, is in training mode; or ``fit`` of this
                kind of defence makes models of its own, and this one is none, was made for other
                settings or was altered since.
        """
        from agnncert.evaluation_mode import require_evaluation_mode  # only here: it needs torch

        self.require_own_model(model)
        require_evaluation_mode(model)

    def require_own_model(self, model: Any) -> None:
        """Refuses a model that ``fit`` of this defence did not make, if it makes models of its own.

        Raises:
            ModelContractError: It is another kind of model, or was made for other settings, or altered.
        """
        if self.own_model is None:
            return
        from agnncert.as_built import require_as_made  # only here: it needs torch

        require_as_made(model, self)

    def has_settings_of(self, other: "Defence") -> bool:
        """Whether a model that was made for ``other``, a defence of the same kind, is for these settings."""
        return str(self) == str(other)

    def require_options(self, options: CertifyOptions) -> None:
        """Refuses options of ``certify`` that this defence does not understand.

        Raises:
            SettingsError: Names all of them.
        """
        foreign = {name: value for name, value in options.given().items() if name not in self.certify_options}
        if foreign:
            named = ", ".join(f"{name}={value!r:.60}" for name, value in foreign.items())
            raise SettingsError(f"{named}: {self} has no such setting; leave it out.")


def require_limit(false_positive_rate: Any, alerts: Any) -> None:
    """Raises SettingsError if a limit for a threshold makes no sense."""
    if (false_positive_rate is None) == (alerts is None):
        raise SettingsError("a threshold needs one limit: pass false_positive_rate=0.01, or alerts=100.")
    if false_positive_rate is not None and not _is_share(false_positive_rate):
        raise SettingsError(f"false_positive_rate={false_positive_rate!r:.60}: expected a share from 0 to less than 1.")
    if alerts is not None:
        require_whole("alerts", alerts)


def require_whole(name: str, value: Any) -> None:
    """Raises SettingsError if an argument is no whole number from 0 on."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise SettingsError(f"{name}={value!r:.60}: expected a whole number from 0 on.")


def require_size_of_prior(size: Any) -> None:
    """Raises SettingsError if the size that a threshold is chosen for makes no sense."""
    require_whole("size", size)
    if size > LARGEST_PRIOR:
        raise SettingsError(f"size={size!r:.60}: expected at most {LARGEST_PRIOR:,}, the largest prior.")


def _is_share(value: Any) -> bool:
    return isinstance(value, int | float | np.floating) and bool(0 <= value < 1)


def as_defence(value: Any) -> Defence:
    """Returns the defence that an argument stands for.

    Args:
        value: A defence, a division, or the result of ``choose_voting_rule`` or ``choose_threshold``.

    Raises:
        SettingsError: It is none of these.
    """
    example = "a division such as ac.NodeCentric(num_groups=60), or ac.StackedVotes()"
    if isinstance(value, type):
        raise SettingsError(f"{value.__name__} is a class, expected {example}: pass an instance of it.")
    convert = getattr(value, "as_defence", None)
    if convert is None:
        raise SettingsError(
            f"{value!r:.60} is no defence: expected {example}. A division of your own inherits from ac.Division, any "
            "other defence from ac.Defence."
        )
    defence = convert()
    if not isinstance(defence, Defence):
        raise SettingsError(
            f"the defence of this {type(value).__name__} is {defence!r:.60}: expected an ac.Defence, as "
            "choose_threshold and choose_voting_rule make it."
        )
    return defence
