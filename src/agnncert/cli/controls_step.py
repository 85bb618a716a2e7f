"""The controls of a run: models without a proof, and scores of the user, beside what is certified."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from agnncert.cli.folder import CONTROLS, Row, RunFolder
from agnncert.controls.api import positive_class
from agnncert.controls.stored import control_of_scores, controls_from_json, controls_to_json, read_scores
from agnncert.controls.table import ComparedControls, Control
from agnncert.errors import SettingsError
from agnncert.proving.certificate import Certificate

# What rows of results call the certified model and the best controls at its operating point.
CERTIFIED_MEASURE = "control: certified model at its operating point"
BEST_WITHOUT_GRAPH = "control: best without a graph at that point"
BEST_WITH_GRAPH = "control: best with the graph and no proof at that point"


def store_controls(folder: RunFolder, controls: Sequence[Control], ids: Sequence[Any]) -> None:
    """Writes controls into a run folder, in place of those that are there."""
    folder.write(CONTROLS, controls_to_json(controls, ids))


def stored_controls(folder: RunFolder, certificate: Certificate) -> list[Control]:
    """Returns the controls of a run folder that have a score or label for some target of a certificate."""
    file = folder.path / CONTROLS
    if not file.is_file():
        return []
    try:
        text = file.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise SettingsError(f"{file} is damaged: {error}.") from error
    controls = controls_from_json(text, certificate.target.tolist())
    return [control for control in controls if _knows_some(control)]


def _knows_some(control: Control) -> bool:
    if control.label is not None:
        return bool((control.label >= 0).any())
    assert control.score is not None
    return not bool(np.isnan(control.score).all())


def controls_of_file(file: Path, certificate: Certificate, positive: int | str | None) -> list[Control]:
    """Returns the controls of a table with the user's own scores, one for each column.

    Args:
        file: The table, as :func:`read_scores` reads it.
        certificate: Whose targets they are of.
        positive: The class for which larger scores speak. Defaults to the rarer one of two.
    """
    num_classes = certificate.counts.shape[1]
    chosen = positive_class(certificate, positive)
    if chosen is None and num_classes == 2 and certificate.truth is not None:
        support = np.bincount(certificate.truth[certificate.truth >= 0], minlength=2)
        chosen = int(support[1] <= support[0])
    ids = certificate.target.tolist()
    return [
        control_of_scores(name, scores, ids, certificate.class_names, num_classes, chosen)
        for name, scores in read_scores(file).items()
    ]


def add_scores(folder: RunFolder, certificate: Certificate, file: Path, positive: int | str | None) -> None:
    """Stores the user's own scores among the controls of a run. Earlier ones with the same name are replaced."""
    added = controls_of_file(file, certificate, positive)
    names = {control.name for control in added}
    kept = [control for control in stored_controls(folder, certificate) if control.name not in names]
    store_controls(folder, [*kept, *added], certificate.target.tolist())


def rows_of_controls(compared: ComparedControls | None) -> list[Row]:
    """Returns the comparison as rows of results: one for each model and measure."""
    if compared is None:
        return []
    value = "accuracy" if compared.positive is None else f"recall at the same {compared.same}"
    best = {
        CERTIFIED_MEASURE: None if compared.positive is None else compared.certified,  # else it is the accuracy
        BEST_WITHOUT_GRAPH: compared.best_without_graph,
        BEST_WITH_GRAPH: compared.best_with_graph,
    }
    rows: list[Row] = [{"measure": name, "value": row.value} for name, row in best.items() if row is not None]
    for model in (compared.certified, *compared.controls):
        measures = {
            value: model.value,
            "false positive rate": model.false_positive_rate,
            "alerts": model.alerts,
            "ROC AUC": model.auc,
            "average precision": model.average_precision,
        }
        if model.lead is not None:
            measures |= {
                "lead of the certified model over": model.lead.difference,
                "lead of the certified model, lower end, over": model.lead.low,
                "lead of the certified model, upper end, over": model.lead.high,
            }
        rows += [
            {"measure": f"control: {name}, {model.name}", "value": number}
            for name, number in measures.items()
            if not math.isnan(number)
        ]
    return rows
