"""``AppendOnly``: scores that appended rows can only raise, as a defence."""

import copy
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, ClassVar, Self

import numpy as np
import torch

from agnncert.addons import addon
from agnncert.agreement import Comparison
from agnncert.append.claim import make_append_claim
from agnncert.append.evidence import AppendEvidence
from agnncert.append.explain import explain_account
from agnncert.append.ledger import read_ledger
from agnncert.append.model import AppendModel, edge_table, load_tables, own_table, sizes_of
from agnncert.append.polarity import sorted_by_types
from agnncert.append.program import Program
from agnncert.append.record import KIND, AppendRecord
from agnncert.append.settings import AppendSettings
from agnncert.append.training import JUDGE, Known, TreeSettings, train
from agnncert.append.trees import NO_TREES, UNIT
from agnncert.append.usual import Table, require_senders, usual_program
from agnncert.auditing.model_audit import AuditReport
from agnncert.certificates.class_names import class_number, stated_names
from agnncert.certificates.file import Contents
from agnncert.certificates.votes import IntArray
from agnncert.datasets.threshold_part import rarest
from agnncert.defence import AlertLimit, CertifyOptions, Defence, FitOptions, OperatingPoint, Task
from agnncert.errors import DatasetError, SettingsError
from agnncert.explanation import VoteExplanation
from agnncert.graphs.checks import require_edge_index
from agnncert.graphs.targets import CanonicalData, Targets, prepared
from agnncert.graphs.task import infer_task
from agnncert.models.digest import model_digest
from agnncert.proving.certificate import Certificate
from agnncert.proving.measures import measured, own_or_any
from agnncert.training.settings import checked
from agnncert.verifier.recount_rows import RowByRow

COUNTED_TWICE = 30  # targets that verify counts again row by row, unless it is asked for more
SCALES = {"ethereum-phishing": {"amount": "sinh", "transactions": "exp"}}  # how columns of known datasets are stored


@dataclass(frozen=True)
class AppendOnly(AppendSettings, Defence):
    """Whoever is flagged stays flagged, whatever rows and accounts are appended; settings as in the base class.

    ``fit(None, data, AppendOnly())`` counts features of accounts that appended rows can only raise, and trains monotone
    trees on them. It is for two classes, of which the rarer one is flagged unless ``positive`` names another.
    """

    kind: ClassVar[str] = KIND
    certify_options: ClassVar[frozenset[str]] = frozenset({"progress"})
    model_is_optional: ClassVar[bool] = True
    base_model: ClassVar[str | None] = "none"
    own_model: ClassVar[type[AppendModel]] = AppendModel
    cannot: ClassVar[Mapping[str, str]] = MappingProxyType(
        {
            "voting_rule": "it adds up trees and has no votes",
            "subgraphs": "it divides no graph: trees read counts",
        }
    )

    def __str__(self) -> str:
        return AppendSettings.__str__(self)

    def fit(self, model: Any, data: Any, options: FitOptions) -> AppendModel:
        """Writes the program for the graph, and trains the judge and the trees."""
        if model is not None:
            raise SettingsError(
                f"AppendOnly trains no {type(model).__name__}: it trains monotone trees. Pass None as the model."
            )
        if infer_task(data) != "node":
            raise SettingsError("append-only scores are for nodes: for graphs, pass a division.")
        if options.voting_rule is not None:
            raise self.refusal("voting_rule")
        settings = checked(dict(options.settings), "node")
        require_edge_index(data)
        begin = time.perf_counter()
        canonical_data = prepared(data)
        accounts, classes = _labelled(data)
        flagged = class_number(self.positive, stated_names(data))
        if flagged is None:
            flagged = rarest(classes)
        made = self._trained(canonical_data, Known(accounts, classes == flagged), flagged, int(settings["seed"]))
        made.training_record = {  # type: ignore[assignment]
            "seconds": time.perf_counter() - begin,
            "epochs_run": 0,
            "defence": str(self),
            "warnings": [],
        }
        return made

    def _trained(self, data: CanonicalData, known_accounts: Known, flagged: int, seed: int) -> AppendModel:
        graph = data.targets().graph
        program = self.program_for(data)
        known = known_accounts.accounts[known_accounts.positive & self.known]
        ledger = read_ledger(program, graph.edge_index.numpy(), edge_table(graph), own_table(graph), known)
        trained = train(
            ledger,
            program,
            self.threat,
            known_accounts,
            settings=TreeSettings(trees=self.trees),
            judge=JUDGE,
            ensembles=self.ensembles,
            seed=seed,
        )
        sizes = sizes_of(trained.trees, trained.judge, len(known))
        model = AppendModel(trained.program, replace(self, program=None), flagged, sizes)
        load_tables(model, "tree_", trained.trees)
        load_tables(model, "judge_", trained.judge)
        model.known.copy_(graph.node_key[torch.from_numpy(known)].sort().values)
        return model.eval()

    def program_for(self, data: Any) -> Program:
        """Returns the features that the threat leaves, of the program given or of the usual one for a graph."""
        if self.program is not None:
            kept = sorted_by_types(self.program, self.threat).kept
            if not kept:
                raise SettingsError(f'under the threat "{self.threat}" no feature of the program can be used.')
            return self.program.but(features=kept)
        program = usual_program(self._table(data), self.threat)
        features = program.features
        if not self.known:
            features = tuple(each for each in features if "known" not in str(each))
        return program.but(features=features, judged=program.judged if self.judge else ())

    def _table(self, data: Any) -> Table:
        """Returns what the usual program is written from."""
        canonical_data = prepared(data)
        graph = canonical_data.targets().graph
        values = edge_table(graph)
        names = list(getattr(canonical_data.data, "edge_names", None) or ())
        width = 0 if values is None else values.shape[1]
        if len(names) != width:
            names = [f"value {k}" for k in range(width)]
        return Table(
            ends=graph.edge_index.numpy(),
            values=np.zeros((graph.num_edges, 0)) if values is None else values,
            names=names,
            x=own_table(graph),
            scales={**SCALES.get(getattr(canonical_data.data, "name", ""), {}), **self.scales},
            rises=self.rises,
            repeated=str(getattr(canonical_data.data, "repeated", None) or ""),
        )

    def require_data(self, data: Any) -> None:
        """Refuses a graph without direction under the threat "ledger"; it is checked before anything is trained."""
        if self.program is None and infer_task(data) == "node":
            require_senders(self._table(data), self.threat)

    def audit(self, model: Any, data: Any, task: Task | None = None) -> AuditReport:
        """Says that there is nothing to audit: features and trees are checked whenever they are used."""
        raise SettingsError(
            "there is no model to audit: the types of the features and the leaves of the trees are checked by certify "
            "and by verify. agnncert verify with data and model counts the features again."
        )

    def certify(self, model: Any, data: Any, targets: Any, options: CertifyOptions) -> Certificate:
        """Counts the features of the targets, and states what they prove."""
        self.require_model(model)
        canonical_data = prepared(data, targets)
        if canonical_data.task != "node":
            raise SettingsError("append-only scores are for nodes: for graphs, pass a division.")
        chosen = canonical_data.targets(targets)
        evidence = self._evidence(model, chosen, self.deletions)
        digests = {**chosen.digests, "model": model_digest(model)}
        claim = make_append_claim(evidence.record, digests=digests, notes=(str(self),))
        return Certificate(claim, evidence, chosen.ids, chosen.rows, chosen.truth, chosen.degree)

    def live(self, model: Any, data: Any, **settings: Any) -> Any:
        """Returns an ``agnncert_live.LiveGraph``; ``settings`` are its further arguments."""
        make = addon("agnncert.live", self.kind, "agnncert_live", "a live graph")
        return make(self, model, data, **settings)

    def explain(self, model: Any, data: Any, target: Any) -> VoteExplanation:
        """Explains whose rows flagged an account, or how few new rows would."""
        self.require_model(model)
        return explain_account(self, model, data, target)

    @staticmethod
    def _evidence(model: AppendModel, chosen: Targets, deletions: int) -> AppendEvidence:
        with torch.no_grad():
            return model.evidence(chosen.graph, chosen.positions, chosen.id_kind, deletions)

    def labels_and_scores(self, model: Any, data: Any, targets: Any = None) -> tuple[IntArray, IntArray]:
        """Returns the label of each target, and its score beside the threshold."""
        self.require_model(model)
        chosen = prepared(data, targets).targets(targets)
        evidence = self._evidence(model, chosen, 0)
        return evidence.labels(), evidence.counts

    def scores(self, model: Any, data: Any, targets: Any = None) -> IntArray:
        """Returns the score of each target in the flagged class, and the threshold in the other one."""
        return self.labels_and_scores(model, data, targets)[1]

    def choose_threshold(self, model: Any, data: Any, limit: AlertLimit, **settings: Any) -> OperatingPoint:
        """Puts the threshold of the model where so many validation or kept accounts are flagged as may be."""
        self.require_threshold_settings(settings, ("size", "protocol"))
        if settings.get("size"):
            raise SettingsError("a flag holds against any number of appended rows: leave size= out.")
        self.require_model(model)
        if limit.positive != model.positive:
            raise SettingsError(
                f"positive={limit.positive}: this model flags class {model.positive}. Pass positive={model.positive}."
            )
        canonical_data = prepared(data)
        graph = canonical_data.targets().graph
        validation = np.flatnonzero(data.val_mask.numpy())
        truth = data.y.numpy()[validation]
        counted, most = limit.kept, limit.most_kept
        if counted is None:
            most = limit.most
            counted = validation[truth != limit.positive] if limit.of_others else validation
        scores = model.scores(graph, np.concatenate([counted, validation]))
        of_counted, of_validation = scores[: len(counted)], scores[len(counted) :]
        moved = copy.deepcopy(model)
        moved.threshold.fill_(_threshold(of_counted, most))
        threshold = int(moved.threshold)
        label = np.where(of_validation > threshold, model.positive, 1 - model.positive)
        possible = own_or_any(label, np.ones(len(label), dtype=bool), 2)
        return OperatingPoint(
            model=moved,
            defence=self,
            prior=tuple((threshold / UNIT if k != model.positive else 0.0) for k in range(2)),
            positive=limit.positive,
            size=0,
            alerts=int((of_validation > threshold).sum()),
            flagged=int((of_counted > threshold).sum()),
            measures=measured(possible, truth),
        )

    def has_settings_of(self, other: Defence) -> bool:
        """Whether a model that was made for ``other`` is for the same threat: deletions are a matter of counting."""
        return isinstance(other, AppendOnly) and self.threat == other.threat

    def compare_model(self, comparison: Comparison, model: Any) -> None:
        """Counts all features again, and those of some targets row by row with a second program."""
        findings = comparison.findings
        contents = comparison.contents
        stored = AppendRecord.load(contents.evidence, contents.settings)
        chosen = comparison.targets()
        here = self._evidence(model, chosen, stored.deletions).record
        for name in ("program", "threat", "threshold", "positive"):
            if getattr(stored, name) != getattr(here, name):
                findings.wrong.append(f'"{name}" is not that of the model')
        for name, found in here.tensors().items():
            if not np.array_equal(stored.tensors()[name], found):
                findings.wrong.append(f'"{name}" is not what the model counts in this graph')
        comparison.compare_notes(self)
        findings.checked.append(f"the trees of the model, and {here.features.size:,} features, counted again")
        if not findings.wrong:
            findings.wrong += self._wrong_row_by_row(comparison, stored, chosen, model)
        findings.compared += ["data", "model"]

    def _wrong_row_by_row(
        self, comparison: Comparison, stored: AppendRecord, chosen: Targets, model: AppendModel
    ) -> list[str]:
        """Returns which targets have other features by the second program."""
        number = int(min(max(comparison.options.recheck, COUNTED_TWICE), stored.num_targets))
        random = np.random.default_rng(comparison.options.seed)
        picked = np.sort(random.choice(stored.num_targets, number, replace=False))
        counter = row_by_row(model, chosen, self.threat)
        wrong = 0
        for place in picked.tolist():
            account = int(chosen.positions[place])
            again = [counter.table(account)]
            again += [counter.lowered(account, m + 1) for m in range(stored.deletions)]
            tables = [stored.features[place], *stored.lowered[:, place]]
            wrong += any(found != table.tolist() for found, table in zip(again, tables, strict=True))
        comparison.findings.checked.append(
            f"the features of {number:,} targets, counted row by row by a second program"
        )
        return [f"the features of {wrong:,} targets are others when they are counted row by row"] if wrong else []

    @classmethod
    def from_file(cls, contents: Contents, model: Any) -> Self:
        """Returns the defence of the model, or what the file says of it."""
        stored = AppendRecord.load(contents.evidence, contents.settings)
        defence = getattr(model, "defence", None)
        if isinstance(defence, cls):
            return replace(defence, deletions=stored.deletions)
        return cls(threat=stored.threat, deletions=stored.deletions)  # type: ignore[arg-type]

    @classmethod
    def from_settings(cls, name: str, task: Task, settings: Mapping[str, Any]) -> Self:
        """Returns the defence that a command or a settings file describes."""
        if task != "node":
            raise SettingsError("append-only scores are for nodes: choose a division for graphs.")
        cls.require_known_settings("append-only scores", name, settings)
        return cls(**settings)

    @classmethod
    def setting_names(cls, name: str) -> tuple[str, ...]:
        """Returns the names of the settings of commands: all but the program, which is Python's."""
        return tuple(each for each in super().setting_names(name) if each != "program")

    def untrained(self, model: Any, data: Any, seed: int = 0) -> AppendModel:
        """Returns a model without trees: it takes program, trees and known accounts from stored weights."""
        nothing = Program(columns=(), features=(("known",),))
        return AppendModel(nothing, self, 1, sizes_of(NO_TREES, NO_TREES, 0)).eval()


def _threshold(scores: IntArray, most: int) -> int:
    """Returns the least threshold that at most so many scores exceed."""
    if most >= len(scores):
        return int(scores.min(initial=0)) - 1
    return int(np.sort(scores)[::-1][most])


def row_by_row(model: AppendModel, chosen: Targets, threat: str) -> RowByRow:
    """Returns the second program for a graph."""
    graph = chosen.graph
    values = edge_table(graph)
    listed = [()] * graph.num_edges if values is None else values.tolist()
    source, target = graph.edge_index.tolist()
    known = np.flatnonzero(np.isin(graph.node_key.numpy(), model.known.numpy())).tolist()
    edges = zip(source, target, listed, strict=True)
    return RowByRow(model.program, model.tables("judge_"), threat, edges, own_table(graph).tolist(), known)


def _labelled(data: Any) -> tuple[IntArray, IntArray]:
    """Returns the training accounts whose class is known, and their classes.

    Raises:
        DatasetError: There are none, or more than two classes.
    """
    y, mask = getattr(data, "y", None), getattr(data, "train_mask", None)
    if y is None or mask is None:
        raise DatasetError("append-only scores need y and train_mask: the data lacks one of them.")
    classes = np.asarray(y).reshape(-1).astype(np.int64)
    inside = np.asarray(mask)
    if inside.dtype != bool or inside.shape != classes.shape:
        raise DatasetError("train_mask is no mask with an entry for each node.")
    if classes.max(initial=0) > 1:
        raise DatasetError(
            f"there is a class {classes.max()}, and append-only scores flag one of two: join all others to one class."
        )
    accounts = np.flatnonzero(inside & (classes >= 0))
    if not len(accounts):
        raise DatasetError("no account of train_mask has a class.")
    return accounts, classes[accounts]


def model_from_config(
    config: Mapping[str, Any], build_part: Callable[[Mapping[str, Any]], torch.nn.Module]
) -> AppendModel:
    """Builds the model that ``config`` describes, without its trees.

    Raises:
        SettingsError: It describes none.
    """
    try:
        program = Program.from_json(config["program"])
        settings = dict(config["defence"])
        sizes = {name: int(size) for name, size in config["sizes"].items()}
        return AppendModel(program, AppendOnly(**settings), int(config["positive"]), sizes).eval()
    except (KeyError, TypeError, ValueError, RuntimeError) as error:
        raise SettingsError(f"this description of an append-only score cannot be read: {error!r:.200}") from error
