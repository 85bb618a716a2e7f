"""The rows of the controls in a comparison: simple classifiers that every defence should beat.

The *majority class* is a constant: no attack changes it. A *graph-free* model and the *prediction without edges* depend
on neither edges nor other nodes. ``agnncert_peers.size_control`` proves what classifiers by size are certified
against.

**Cross-fitted** models without edges, whose log-probabilities are averaged, are those that stacked votes begin with.

**Sums of node features**, with their means and the number of nodes, are all that trees or a support vector machine
read: the histogram of node types if features are one-hot. Edges cannot alter any of this. Which of them it is, and how
many graphs a leaf must hold, is chosen by cross-validation on training and validation graphs; it is fitted to these.

**Structure only** is the mirror image: trees over what is counted in the structure, which no feature enters. Changed
features cannot alter it (:class:`agnncert.GraphVotes`).

**Bag of nodes.** Each node votes by its own features, with a prior: the division ``PerNeighbour()`` of a graph.
Its proof is that of ``proving.per_neighbour.per_neighbour_graph``; edges cost nothing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.ensemble import ExtraTreesClassifier, GradientBoostingClassifier, RandomForestClassifier
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from agnncert.certificates.votes import FloatArray, IntArray, apply_voting_rule
from agnncert.certificates.voting_rule import VotingRule
from agnncert.controls.stored import control_of_scores
from agnncert.controls.table import Control
from agnncert.controls.trees import NEIGHBOURHOOD_TREES, OWN_TREES, tree_controls
from agnncert.divided.evidence import VoteEvidence
from agnncert.divisions.node import PerNeighbour
from agnncert.errors import DatasetError, ModelContractError
from agnncert.fitting import fit
from agnncert.graph_votes.defence import StructureOnly
from agnncert.graphs.graph import Task
from agnncert.progress import OnProgress
from agnncert.proving.measures import Measures, target_weights
from agnncert.study import WITHOUT_MODEL, Study, measures_of, part_rows
from agnncert.training.rule_search import VoteTable, best_class_prior, joined, window
from agnncert.undefended import GRAPH_FREE, MAJORITY, UNDEFENDED
from agnncert_peers.runner import Outcome, Row, kept, key_of, measured_columns, row_of, run, vote_in_words
from agnncert_peers.size_control import SIZE_ONLY, Counted, GraphSizes, SizedGraphs, measures_by_size, size_rule
from agnncert_peers.threat import BAG_OF_NODES, CROSS_FITTED, HISTOGRAM, NO_EDGES, STRUCTURE, TAUGHT_BY, Threat

FOLDS = 5  # of cross-validation
TREES = 200  # in a forest
ENVELOPE = "chosen for each size"  # the vote of a row that has another classifier at each size


# What each control is certified against.
NOTHING_PROVED = "nothing is proved about it"
_OWN = "reads only the target's own features, so only a change of these can alter it"
ABOUT: dict[str, dict[Task, str]] = {
    UNDEFENDED: dict.fromkeys(("node", "graph"), NOTHING_PROVED),
    GRAPH_FREE: {
        "node": _OWN,
        "graph": "reads all nodes and no edges: edges cannot alter it, and about changes of nodes nothing is proved",
    },
    MAJORITY: dict.fromkeys(("node", "graph"), "a constant: nothing can alter it"),
    NO_EDGES: {"node": _OWN},
    CROSS_FITTED: {"node": _OWN},
    **{
        name: {"node": f"learnt from labels that a teacher, {teacher}, gave the training graph, and {_OWN}"}
        for name, teacher in TAUGHT_BY.items()
    },
    OWN_TREES: {"node": _OWN},
    NEIGHBOURHOOD_TREES: {"node": NOTHING_PROVED},
    HISTOGRAM: {
        "graph": "reads sums of the features of all nodes and no edges: edges cannot alter it, and about changes of "
        "nodes nothing is proved"
    },
    STRUCTURE: dict.fromkeys(
        ("node", "graph"),
        "reads which nodes are joined and no feature: changed features cannot alter it, and about edges and nodes that "
        "come or go nothing is proved",
    ),
    SIZE_ONLY["nodes"]: {"graph": "counts nodes: each that is injected or deleted moves it by one, nothing else does"},
    SIZE_ONLY["edges"]: {
        "graph": "counts edges: each that is added or deleted moves it by one, a node by as many as it has; features "
        "do not"
    },
    BAG_OF_NODES: {
        "graph": "each node votes by its own features: one that is injected, deleted or altered costs its vote; edges "
        "cost nothing"
    },
}


def histogram_row(study: Study, threat: Threat, sizes: tuple[int, ...]) -> Row:
    """Makes the row of a classifier of sums of node features, chosen and fitted on training and validation graphs."""
    sums = np.stack([_summed(study.data[k]) for k in range(len(study.data))])
    parts = [part_rows(study.ready, part) for part in ("train", "val")]
    fitted = np.sort(np.concatenate([rows for rows in parts if rows is not None]))
    y = np.array([int(study.data[int(row)].y) for row in fitted])
    best = _by_cross_validation(sums[fitted], y, study).fit(sums[fitted], y)
    label = np.asarray(best.predict(sums[study.targets]), dtype=np.int64)
    guarantee = "deterministic: reads no edges"
    outcome = Outcome(HISTOGRAM, guarantee, label, None, 0, 0.0, 0.0, 0.0)
    row = row_of(study, outcome, threat, sizes, HISTOGRAM, control=True)
    classifier = best[-1] if isinstance(best, Pipeline) else best
    words = " ".join(str(classifier).split())
    return row | {"settings": f"{HISTOGRAM}, {words}"}


def structure_row(study: Study, threat: Threat, sizes: tuple[int, ...], folder: Path | None = None) -> Row | None:
    """Makes the row of trees over the structure of graphs, or around nodes, fitted on training and validation targets.

    There is none if edges seem to be computed from features, or a part of the targets is missing. ``folder`` keeps the
    outcome.
    """
    trees = replace(study, defence=StructureOnly(), model=WITHOUT_MODEL, model_args={}, fit_args={})
    stem = None if folder is None else folder / f"{key_of(trees)}-control"
    try:
        outcome = kept(stem, lambda: _of_structure(study))
    except (DatasetError, ModelContractError):
        return None
    row = row_of(study, replace(outcome, decides=""), threat, sizes, STRUCTURE, control=True)
    return row | {"settings": f"{STRUCTURE}, {outcome.decides}"}


def _of_structure(study: Study) -> Outcome:
    defence = StructureOnly()
    model: Any = fit(None, study.data, defence, seed=study.seed)
    record, label = model.training_record, defence.labels(model, study.ready, study.targets)
    guarantee = "deterministic: reads no features"
    return Outcome(STRUCTURE, guarantee, label, None, 0, float(record["seconds"]), 0.0, 0.0, decides=record["kept"])


def _by_cross_validation(x: FloatArray, y: IntArray, study: Study) -> Any:
    """Chooses the classifier that is right for most of the rows that it was not fitted to."""
    seed = study.seed
    models: list[Any] = [
        *(ExtraTreesClassifier(TREES, min_samples_leaf=least, random_state=seed) for least in (1, 5)),
        RandomForestClassifier(TREES, min_samples_leaf=5, random_state=seed),
        GradientBoostingClassifier(max_depth=4, learning_rate=0.05, subsample=0.7, random_state=seed),
        *(make_pipeline(StandardScaler(), SVC(C=c)) for c in (1.0, 10.0)),
    ]
    if min(np.bincount(y)[np.unique(y)]) < FOLDS:  # too few to put some aside
        return models[0]
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=seed)
    weights = target_weights(y, study.measure)

    def score(model: Any) -> float:
        is_right = cross_val_predict(model, x, y, cv=folds) == y
        return float(weights @ is_right)

    return max(models, key=score)


def _summed(graph: Any) -> FloatArray:
    x = graph.x.double().numpy()
    return np.concatenate([x.sum(axis=0), x.mean(axis=0), [len(x)]])


def nearest(designs: Sequence[int], size: int) -> int:
    """Returns the target size nearest to a size; ties go to the smaller one.

    Example:
        >>> [nearest((1, 5), size) for size in (0, 2, 3, 4, 20)]
        [1, 1, 1, 5, 5]
    """
    return min(designs, key=lambda design: (abs(design - size), design))


def no_edges_row(study: Study, outcomes: Mapping[str, Outcome], threat: Threat, sizes: tuple[int, ...]) -> Row | None:
    """Makes the row of the best defended model on validation, used without edges; None if there is none."""
    scored = {name: outcome for name, outcome in outcomes.items() if outcome.no_edge_score is not None}
    if not scored:
        return None
    name, best = max(scored.items(), key=lambda pair: pair[1].no_edge_score or 0.0)
    guarantee = "deterministic: reads no edges"
    label = np.asarray(best.no_edge)
    outcome = Outcome(NO_EDGES, guarantee, label, None, 1, best.seconds_training, 0.0, 0.0)
    row = row_of(study, outcome, threat, sizes, NO_EDGES, control=True)
    return row | {"settings": f"{NO_EDGES}, trained for {name}"}


def tree_rows(study: Study, threat: Threat, sizes: tuple[int, ...]) -> list[Row]:
    """Makes the rows of boosted trees, on own features and on aggregates of the neighbourhood too. Node task."""
    num_classes = int(study.truth.max(initial=1)) + 1
    controls = tree_controls(study.ready, study.targets, num_classes, study.seed)
    return [_row_of_control(study, control, threat, sizes) for control in controls]


def score_rows(study: Study, scores: Mapping[str, Any], threat: Threat, sizes: tuple[int, ...]) -> list[Row]:
    """Makes the rows of the user's own scores, about which nothing is proved.

    The label is the class for which a score speaks: the positive one for scores above 0, or above 0.5 if all of them
    are between 0 and 1. Targets without a score get the most frequent class of the training part.
    """
    ids = study.chosen.ids.tolist()
    num_classes = int(study.truth.max(initial=1)) + 1
    names = getattr(study.data, "class_names", None) or ()
    rows = []
    for name, given in scores.items():
        control = control_of_scores(name, given, ids, names, num_classes, None)
        rows.append(_row_of_control(study, control, threat, sizes))
    return rows


def _row_of_control(study: Study, control: Control, threat: Threat, sizes: tuple[int, ...]) -> Row:
    score = control.score
    if score is not None:
        low, high = np.nanmin(score), np.nanmax(score)
        label = (score > (0.5 if low >= 0 and high <= 1 else 0.0)).astype(np.int64)
        label[np.isnan(score)] = -1
    else:
        assert control.label is not None
        label = control.label.copy()
    label[label < 0] = study.majority or 0
    guarantee = "deterministic: reads no edges" if control.reads_graph is False else "none"
    outcome = Outcome(control.name, guarantee, label, None, 0, 0.0, 0.0, 0.0, score=score)
    return row_of(study, outcome, threat, sizes, control.name, control=True)


def size_row(
    study: Study, graphs: SizedGraphs, counts: Counted, threat: Threat, sizes: tuple[int, ...], designs: Sequence[int]
) -> Row:
    """Makes the row of the classifier by size only, an envelope if target sizes need several rules.

    Graph task; the rules are chosen on ``graphs``.
    """
    rules = {design: size_rule(graphs, design, counts, threat.budgets) for design in designs}
    targets = GraphSizes.of([study.data[int(row)] for row in study.targets])

    def certified(size: int) -> Measures:
        return measures_by_size(study, targets, rules[nearest(designs, size)], threat.budgets(size))

    first = rules[nearest(designs, 0)]
    all_are_one = len({str(rule) for rule in rules.values()}) == 1
    name = SIZE_ONLY[counts]
    guarantee = f"deterministic: counts {counts}"
    outcome = Outcome(name, guarantee, first.label(targets), None, 0, 0.0, 0.0, 0.0)
    row = row_of(study, outcome, threat, sizes, name, control=True)
    row |= _chosen(str(first) if all_are_one else ENVELOPE, designs)
    row["not_covered"] = ""  # its own proof covers every kind of attack
    return row | measured_columns([certified(size) for size in sizes])


def _chosen(voting_rule: str, designs: Sequence[int]) -> Row:
    """Returns the columns of a control that was chosen for each target size."""
    return {
        "vote": voting_rule,
        "design_size": designs[0] if len(designs) == 1 else None,
        "envelope": voting_rule == ENVELOPE,
    }


def bag_row(
    study: Study,
    threat: Threat,
    sizes: tuple[int, ...],
    designs: Sequence[int],
    folder: Path | None = None,
    progress: OnProgress | None = None,
) -> Row:
    """Makes the row of a vote of all nodes by their own features, an envelope if target sizes need different priors.

    Graph task. Priors are chosen for each size in ``designs`` on training and validation graphs. ``folder`` keeps the
    votes.
    """
    parts = [part_rows(study.ready, name) for name in ("train", "val")]
    everything = np.unique(np.concatenate([study.targets, *(rows for rows in parts if rows is not None)]))
    bag = replace(study, defence=PerNeighbour(), model="mlp", targets=everything, voting_rule=None, design_size=None)
    outcome = run(bag, folder, progress)
    evidence: Any = outcome.certificate.evidence  # type: ignore[union-attr]
    table = VoteTable.of(evidence, bag.truth, threat.against)
    fitted = joined([table.rows(np.isin(everything, rows), study.measure) for rows in parts if rows is not None])
    place = np.searchsorted(everything, study.targets)
    # Edges do not change such a vote: against edges, what is best without an attack is best.
    under = {}
    for design in designs:
        near = (0,) if threat.kind == "edges" else window(design)
        under[design] = _under(evidence, best_class_prior(fitted, near))

    def certified(size: int) -> Measures:
        voted = under[nearest(designs, size)]
        holds = [voted.holds(budget)[place] for budget in threat.budgets(size)]
        label, _ = voted.label_and_radius()
        return measures_of(study, label[place], np.all(holds, axis=0))

    first = under[nearest(designs, 0)]
    all_are_one = len({voted.voting_rule for voted in under.values()}) == 1
    label, _ = first.label_and_radius()
    plain = replace(outcome, label=label[place], certificate=None, score=None)
    row = row_of(study, plain, threat, sizes, BAG_OF_NODES, control=True)
    row |= _chosen(vote_in_words(first.voting_rule) if all_are_one else ENVELOPE, designs)
    row["guarantee"] = "deterministic: reads no edges"
    row["not_covered"] = ""
    return row | measured_columns([certified(size) for size in sizes])


def _under(evidence: VoteEvidence, voting_rule: VotingRule) -> VoteEvidence:
    """Returns the same votes, counted with another rule."""
    voting_rule = voting_rule.under(evidence.theorem, evidence.votes.num_classes)
    votes, _ = apply_voting_rule(evidence.votes, voting_rule)
    return replace(evidence, votes=votes, voting_rule=voting_rule)
