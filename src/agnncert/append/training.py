"""Trains the judge of rows and the trees that read the features of a program."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from agnncert.append.evaluate import Values
from agnncert.append.ledger import Ledger, Rows, Whole
from agnncert.append.polarity import account_type, judged_types
from agnncert.append.program import Expression, Program, Threat, inside
from agnncert.append.trees import NO_TREES, UNIT, Trees
from agnncert.errors import DatasetError, missing

Floats = npt.NDArray[np.float64]
JUDGE_FOLDS = 4
KNOWN_FOLDS = 20
JUDGED_SHARES = (0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98)
MOST_JUDGED = 400_000  # rows that the judge learns from; more are not drawn


@dataclass(frozen=True)
class TreeSettings:
    """How an ensemble is trained.

    Attributes:
        trees: Number of trees.
        leaves: Leaves of a tree, at most.
        rate: Learning rate.
        smallest_leaf: Training rows in a leaf, at least.
        l2: Regularisation of leaves.
        share: Share of the columns that each split looks at.
    """

    trees: int = 150
    leaves: int = 8
    rate: float = 0.05
    smallest_leaf: int = 8
    l2: float = 3.0
    share: float = 0.3


JUDGE = TreeSettings(trees=100, leaves=16, rate=0.08, smallest_leaf=40, l2=5.0, share=0.7)


class Trained(NamedTuple):
    """What training returns: the program with the features of the judge, the judge, and the trees."""

    program: Program
    judge: Trees
    trees: Trees


class Known(NamedTuple):
    """Accounts whose label is known: their rows in the ledger, and whether each is positive."""

    accounts: Rows
    positive: npt.NDArray[np.bool_]


def train_trees(
    table: Whole,
    positive: npt.NDArray[np.bool_],
    rises: Sequence[bool] | None,
    settings: TreeSettings,
    seed: int,
    weight: Floats | None = None,
) -> Trees:
    """Trains an ensemble with scikit-learn, and keeps its trees as tables of whole numbers.

    Args:
        table: Whole numbers, shape ``[n, columns]``.
        positive: Labels, shape ``[n]``.
        rises: In which columns the score may only rise; in all others it is free. ``None`` leaves all of them free.
        settings: How it is trained.
        seed: Of the columns that are looked at.
        weight: Weight of each row.

    Raises:
        MissingPackage: scikit-learn is not installed.
    """
    try:
        from sklearn.ensemble import HistGradientBoostingClassifier
    except ModuleNotFoundError as error:
        raise missing(error.name, "monotone trees") from None
    columns = np.flatnonzero((table != table[:1]).any(axis=0))
    if len(columns) == 0:
        return _constant(positive, weight)
    constraints = None if rises is None else np.asarray(rises, dtype=np.int8)[columns]
    model = HistGradientBoostingClassifier(
        monotonic_cst=constraints,
        max_iter=settings.trees,
        learning_rate=settings.rate,
        max_leaf_nodes=settings.leaves,
        min_samples_leaf=settings.smallest_leaf,
        l2_regularization=settings.l2,
        max_features=settings.share,
        early_stopping=False,
        random_state=seed,
    )
    model.fit(table[:, columns].astype(np.float64), positive, sample_weight=weight)
    fitted = [_as_tables(stage[0].nodes, columns) for stage in model._predictors]
    start = float(np.ravel(model._baseline_prediction)[0])
    return Trees.joined([_leaf(start), *fitted])


def _constant(positive: npt.NDArray[np.bool_], weight: Floats | None) -> Trees:
    share = float(np.clip(np.average(positive, weights=weight), 1e-6, 1 - 1e-6))
    return _leaf(float(np.log(share / (1 - share))))


def _leaf(worth: float) -> Trees:
    none = np.zeros(1, dtype=np.int64)
    return Trees(np.array([0, 1]), none - 1, none, none, none, np.array([round(worth * UNIT)]))


def _as_tables(nodes: npt.NDArray[np.void], columns: Rows) -> Trees:
    """Returns a tree of scikit-learn; whole numbers go left where they are at most the threshold rounded down."""
    is_leaf = nodes["is_leaf"].astype(bool)
    none = np.zeros(len(nodes), dtype=np.int64)
    threshold = np.where(is_leaf, 0, np.floor(np.where(is_leaf, 0, nodes["num_threshold"])))
    return Trees(
        start=np.array([0, len(nodes)]),
        column=np.where(is_leaf, -1, columns[np.where(is_leaf, 0, nodes["feature_idx"])]),
        threshold=threshold.astype(np.int64),
        left=np.where(is_leaf, none, nodes["left"]).astype(np.int64),
        right=np.where(is_leaf, none, nodes["right"]).astype(np.int64),
        worth=np.where(is_leaf, np.rint(nodes["value"] * UNIT), 0).astype(np.int64),
    )


def train(
    ledger: Ledger,
    program: Program,
    threat: Threat | None,
    known: Known,
    *,
    settings: TreeSettings,
    judge: TreeSettings,
    ensembles: int,
    seed: int,
) -> Trained:
    """Trains the judge, if the program has one, and then the trees.

    An account that trains the judge is not judged by it: its own rows are judged by a judge of other accounts. And it
    does not know itself: what is known about it is hidden where its own features are computed.

    Args:
        ledger: The rows, with the training accounts that are known to be positive.
        program: What is counted.
        threat: Which features may only rise. ``None`` trains the same trees without any constraint, for comparison.
        known: The training accounts.
        settings: How the trees are trained.
        judge: How the judge is trained.
        ensembles: How many ensembles are added up.
        seed: Of folds and columns.

    Raises:
        DatasetError: The training accounts are all of one class.
    """
    if known.positive.all() or not known.positive.any():
        raise DatasetError("the training part has accounts of one class only: trees need both.")
    random = np.random.default_rng(seed)
    folds = random.permutation(len(known.accounts)) % JUDGE_FOLDS
    judges = _Judges(ledger, program, threat, known, judge, seed)
    whole = judges.trained(np.ones(len(known.accounts), dtype=bool))
    full = program if not program.judged else with_judged_features(program, whole, judges.judged_rows())
    table = np.zeros((len(known.accounts), len(full.features)), dtype=np.int64)
    for fold in range(JUDGE_FOLDS):
        here = np.flatnonzero(folds == fold)
        other = judges.trained(folds != fold) if program.judged else whole
        table[here] = _table(ledger, full, other, known, here)
    reads_known = [any(part[0] == "known" for part in inside(each)) for each in full.features]
    if any(reads_known):
        some = full.but(features=tuple(np_select(full.features, reads_known)))
        folds = random.permutation(len(known.accounts)) % KNOWN_FOLDS
        for fold in range(KNOWN_FOLDS):
            here = np.flatnonzero(folds == fold)
            if len(here):
                table[np.ix_(here, np.flatnonzero(reads_known))] = _table(ledger, some, whole, known, here)
    rises = None
    if threat is not None:
        rises = [account_type(each, full, threat) == "+" for each in full.features]
    fitted = [train_trees(table, known.positive, rises, settings, 1000 * seed + k) for k in range(ensembles)]
    return Trained(full, whole, Trees.joined(fitted))


def np_select(features: tuple[Expression, ...], chosen: list[bool]) -> list[Expression]:
    """Returns the chosen features."""
    return [feature for feature, is_chosen in zip(features, chosen, strict=True) if is_chosen]


def _table(ledger: Ledger, program: Program, judge: Trees, known: Known, here: Rows) -> Whole:
    """Returns features of some training accounts, which do not know each other."""
    hidden = ledger.known.copy()
    hidden[known.accounts[here]] = 0
    return Values(ledger.knowing(hidden), program, judge).table(known.accounts[here])


class _Judges:
    """Judges of rows, trained on the rows of some training accounts."""

    def __init__(
        self,
        ledger: Ledger,
        program: Program,
        threat: Threat | None,
        known: Known,
        settings: TreeSettings,
        seed: int,
    ) -> None:
        self.settings = settings
        self.seed = seed
        self.has_judge = bool(program.judged)
        if not self.has_judge:
            return
        values = Values(ledger, program)
        seen = [values.seen_by(known.accounts, way) for way in ("in", "out")]
        self.owner = np.concatenate([rows.owner for rows in seen])
        self.table = np.concatenate([values.judged(rows) for rows in seen])
        self.positive = known.positive[self.owner]
        rows_each = np.bincount(self.owner, minlength=len(known.accounts))
        self.weight = 1 / np.sqrt(rows_each[self.owner])
        self.rises = None
        if threat is not None:
            self.rises = [polarity == "+" for polarity in judged_types(program, threat)]

    def trained(self, accounts: npt.NDArray[np.bool_]) -> Trees:
        """Returns a judge that has seen the rows of these accounts, with leaves worth at least 0."""
        if not self.has_judge:
            return NO_TREES
        rows = np.flatnonzero(accounts[self.owner])
        if len(rows) > MOST_JUDGED:
            rows = np.sort(np.random.default_rng(self.seed).choice(rows, MOST_JUDGED, replace=False))
        if len(rows) == 0:
            return _leaf(0.0)
        trees = train_trees(
            self.table[rows], self.positive[rows], self.rises, self.settings, self.seed, self.weight[rows]
        )
        return trees.above_zero()

    def judged_rows(self) -> Whole:
        """Returns what the judge reads of the rows of all training accounts."""
        return self.table


def with_judged_features(program: Program, judge: Trees, rows: Whole) -> Program:
    """Returns the program with counts of rows that the judge finds suspicious, cut where training rows lie."""
    scores = judge.score(rows) if len(rows) else np.zeros(1, dtype=np.int64)
    cuts = np.unique(np.quantile(scores, JUDGED_SHARES).astype(np.int64)).tolist()
    middle = int(np.quantile(scores, 0.5))
    judged: Expression = ("judge",)
    features: list[Expression] = []
    counted = [("at_least", judged, cut) for cut in cuts]
    for expression in counted:
        features += _both_ways("sum", expression, program)
    features += _both_ways("max", judged, program, "most")
    features += _both_ways("sum", ("above", judged, middle), program)
    return program.but(features=(*program.features, *features))


def _both_ways(operation: str, expression: Expression, program: Program, joined: str = "add") -> list[Expression]:
    used = {part[1] for feature in program.features for part in inside(feature) if part[0] in ("sum", "max")}
    ways = [way for way in ("in", "out") if way in used]
    each: list[Expression] = [(operation, way, expression) for way in ways]
    return [*each, (joined, *each)] if len(each) == 2 else each
