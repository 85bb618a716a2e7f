"""``compare_controls``: holds a certificate against models that prove nothing, at the same operating point."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from agnncert.controls.stored import control_of_scores
from agnncert.controls.table import ComparedControls, Control, compare_with
from agnncert.errors import SettingsError, suggests_arguments
from agnncert.proving.certificate import Certificate

UNDEFENDED_GNN = "undefended GNN"
WITHOUT_EDGES = "the same model without edges"  # a control that some certificates bring along
PAIR_TREES = "boosted trees on own features, common neighbours and degrees"  # the control of pairs that reads the graph
SAME = ("false_positive_rate", "alerts")


@suggests_arguments
def compare_controls(
    certificate: Certificate,
    data: Any = None,
    *,
    scores: Mapping[str, Any] | None = None,
    positive: int | str | None = None,
    same: str = "false_positive_rate",
    seed: int = 0,
) -> ComparedControls:
    """Compares a certified model with controls at the same operating point, and says whether the graph pays off.

    With two classes every control gets the threshold at which it has the same false positive rate as the certified
    model on the same targets, or as many alerts; among tied scores the rest is shared out. With more classes accuracies
    are compared. Intervals are for the difference on the same targets.

    Args:
        certificate: The certificate, with true classes.
        data: The graph, with ``y`` and ``train_mask``: boosted trees are trained on it, on a node's own features, and
            on these with aggregates of its neighbourhood. Defaults to None, which leaves them out.
        scores: Controls of your own, by name: a score for each target, as a mapping from ids, a Series of pandas with
            ids as index, or an array in the order of ``certificate.target``. Larger scores speak for the positive
            class. For more than two classes pass classes instead. Targets without a score are left out of the
            comparison with this control. A ``Control`` can also say whether it reads the graph.
        positive: Two classes: the one to be found, by number or name. Defaults to the rarer one.
        same: "false_positive_rate" (the default) or "alerts", the number of targets with the positive label.
        seed: Of the trees.

    Raises:
        SettingsError: A setting makes no sense, or no true class is known.
        MissingPackage: scikit-learn is not installed.

    Example: ``print(ac.compare_controls(certificate, data, scores={"our rules": rules}))``
    """
    if same not in SAME:
        raise SettingsError(f"same={same!r:.60}: expected one of {', '.join(SAME)}.")
    num_classes = certificate.counts.shape[1]
    chosen = positive_class(certificate, positive)
    controls = [*controls_of_evidence(certificate)]
    if data is not None:
        controls += _trees(certificate, data, num_classes, seed)
    ids = certificate.target.tolist()
    for name, given in (scores or {}).items():
        if isinstance(given, Control):
            controls.append(given)
        else:
            controls.append(control_of_scores(name, given, ids, certificate.class_names, num_classes, chosen))
    compared = compare_with(certificate, controls, positive=chosen, alerts=same == "alerts")
    if compared is None:
        raise SettingsError("controls need true classes, of both kinds if there are two: certify with data that has y.")
    return compared


def controls_of_evidence(certificate: Certificate) -> list[Control]:
    """Returns the controls that a certificate brings along: the certified model without any edge, if that is known."""
    labels = certificate.evidence.no_edge_labels()
    if labels is None:
        return []
    name = WITHOUT_EDGES
    scores = certificate.evidence.no_edge_scores()
    if certificate.counts.shape[1] == 2 and scores is not None:
        return [Control(name, score=(scores[:, 1] - scores[:, 0]).astype(np.float64), reads_graph=False)]
    return [Control(name, label=labels, reads_graph=False)]


def positive_class(certificate: Certificate, positive: int | str | None) -> int | None:
    """Returns the class to be found by its number. It is None if none was named, or there are more than two.

    Raises:
        SettingsError: There is no such class.
    """
    if positive is None or certificate.counts.shape[1] != 2:
        return None
    names = certificate.class_names
    if isinstance(positive, str) and positive in names:
        return names.index(positive)
    if str(positive) in ("0", "1"):
        return int(positive)
    raise SettingsError(f"positive={positive!r:.60}: the classes are {', '.join(names) or '0 and 1'}.")


def _trees(certificate: Certificate, data: Any, num_classes: int, seed: int) -> list[Control]:
    """Trains boosted trees and returns their scores of the certificate's targets."""
    from agnncert.controls.trees import tree_controls
    from agnncert.graphs.targets import CanonicalData

    ready = CanonicalData.of(data)
    row_of = {target: row for row, target in enumerate(ready.targets(None).ids.tolist())}
    ids = certificate.target.tolist()
    unknown = [target for target in ids if target not in row_of]
    if unknown:
        raise SettingsError(f"data has no target {unknown[0]!r:.60}: pass the graph that was certified.")
    return tree_controls(ready, np.array([row_of[target] for target in ids], dtype=np.int64), num_classes, seed)
