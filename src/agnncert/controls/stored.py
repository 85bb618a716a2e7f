"""Controls in files: ``controls.json`` of a run folder, and tables with scores of the user's own."""

import csv
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from agnncert.controls.table import Control
from agnncert.errors import SettingsError
from agnncert.storage import parse_json

Score = float | str | None


def controls_to_json(controls: Iterable[Control], ids: Sequence[Any]) -> str:
    """Returns controls as text: the ids of the targets, and the scores or labels of each control.

    Args:
        controls: The controls.
        ids: Ids of the targets, in the order of the scores.
    """
    listed = []
    for control in controls:
        values = control.label if control.score is None else control.score
        assert values is not None
        listed.append(
            {
                "name": control.name,
                "reads_graph": control.reads_graph,
                "of_class": control.of_class,
                "kind": "label" if control.score is None else "score",
                "values": [None if _is_missing(value) else value for value in values.tolist()],
            }
        )
    return json.dumps({"targets": list(ids), "controls": listed}, ensure_ascii=False, allow_nan=False) + "\n"


def _is_missing(value: float) -> bool:
    return math.isnan(value) or value == -math.inf


def controls_from_json(text: str, ids: Sequence[Any]) -> list[Control]:
    """Returns the controls of a file for other targets, in their order. What a target lacks is missing.

    Args:
        text: The text of the file.
        ids: Ids of the targets that are asked about.

    Raises:
        SettingsError: The file is damaged.
    """
    try:
        stored = parse_json(text)
        places = {target: place for place, target in enumerate(stored["targets"])}
        rows = [places.get(target, -1) for target in ids]
        return [_control_from(entry, rows, len(places)) for entry in stored["controls"]]
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise SettingsError(f"controls.json is damaged: {error}.") from error


def _control_from(entry: Mapping[str, Any], rows: Sequence[int], total: int) -> Control:
    values = [*entry["values"], None]  # the last one is for targets that the file does not have
    if len(values) != total + 1:
        raise ValueError(f"{entry['name']!r:.80} has {len(values) - 1} values for {total} targets")
    picked = [values[row] for row in rows]
    name = str(entry["name"])
    reads_graph = entry["reads_graph"] if entry["reads_graph"] is None else bool(entry["reads_graph"])
    if entry["kind"] == "label":
        label = np.array([-1 if value is None else int(value) for value in picked], dtype=np.int64)
        return Control(name, label=label, reads_graph=reads_graph)
    score = np.array([np.nan if value is None else float(value) for value in picked], dtype=np.float64)
    return Control(name, score=score, of_class=int(entry["of_class"]), reads_graph=reads_graph)


def read_scores(path: Path) -> dict[str, dict[str, str]]:
    """Reads a CSV table of scores: ids in the column ``id``, or else the first one, and a column for each control.

    Returns:
        By name of the column: the cell of each id. A single column is named after the file.

    Raises:
        SettingsError: The file cannot be read, has no column of scores, or names a target twice.
    """
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            lines = list(csv.reader(file))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise SettingsError(f"cannot read the scores in {path}: {error}.") from error
    if not lines or len(lines[0]) < 2:
        raise SettingsError(f"{path}: expected a table with ids in one column, and scores in others, with titles.")
    titles = [title.strip() for title in lines[0]]
    place = titles.index("id") if "id" in titles else 0
    columns: dict[str, dict[str, str]] = {}
    others = [column for column in range(len(titles)) if column != place]
    for column in others:
        name = path.stem if len(others) == 1 else titles[column]
        columns[name] = {}
    for number, line in enumerate(lines[1:], start=2):
        if not line:
            continue
        if len(line) != len(titles):
            raise SettingsError(f"{path}, line {number}: {len(line)} cells, expected {len(titles)}.")
        for name, column in zip(columns, others, strict=True):
            if line[place] in columns[name]:
                raise SettingsError(f"{path}, line {number}: the target {line[place]!r:.60} has a line already.")
            columns[name][line[place]] = line[column]
    return columns


def control_of_scores(
    name: str, scores: Any, ids: Sequence[Any], class_names: Sequence[str], num_classes: int, positive: int | None
) -> Control:
    """Returns a control from somebody's scores.

    Args:
        name: What it is called.
        scores: A number for each target: by id (a mapping, or a Series of pandas), or in the order of ``ids``. For more
            than two classes it is the class instead, by name or number. What is empty or missing is no score.
        ids: Ids of the targets.
        class_names: Names of the classes, if they have some.
        num_classes: How many classes there are.
        positive: The class for which larger scores speak. Defaults to 1.

    Raises:
        SettingsError: Something is no score, or no target has one.
    """
    values = _by_target(name, scores, ids)
    if num_classes == 2:
        score = np.array([_score(name, value) for value in values], dtype=np.float64)
        found = ~np.isnan(score)
        control = Control(name, score=score, of_class=1 if positive is None else positive)
    else:
        label = np.array([_class(name, value, class_names, num_classes) for value in values], dtype=np.int64)
        found = label >= 0
        control = Control(name, label=label)
    if not found.any():
        raise SettingsError(
            f"{name}: none of the {len(values):,} targets has a score. The first targets are "
            f"{', '.join(map(str, ids[:3]))}: are these the ids of the scores?"
        )
    return control


def _by_target(name: str, scores: Any, ids: Sequence[Any]) -> list[Score]:
    if hasattr(scores, "to_dict"):  # a Series of pandas, whose index are ids
        scores = scores.to_dict()
    if isinstance(scores, Mapping):
        by_text = {str(key): value for key, value in scores.items()}
        return [scores.get(target, by_text.get(str(target))) for target in ids]
    values = np.asarray(scores).reshape(-1).tolist()
    if len(values) != len(ids):
        raise SettingsError(
            f"{name}: {len(values):,} scores for {len(ids):,} targets. Pass one for each, in the order of "
            "certificate.target, or a mapping from ids to scores."
        )
    return list(values)


def _score(name: str, value: Score) -> float:
    if value is None or (isinstance(value, str) and not value.strip()):
        return math.nan
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise SettingsError(f"{name}: {value!r:.60} is no score: expected a number, or nothing.") from None
    if math.isinf(number):
        raise SettingsError(f"{name}: a score is infinite: expected a number, or nothing.")
    return number


def _class(name: str, value: Score, class_names: Sequence[str], num_classes: int) -> int:
    if value is None or (isinstance(value, str) and not value.strip()) or value != value:
        return -1
    text = str(value).strip()
    if text in class_names:
        return list(class_names).index(text)
    number = text.removesuffix(".0")
    if number.isdecimal() and int(number) < num_classes:
        return int(number)
    raise SettingsError(f"{name}: {text!r:.60} is no class: expected a name, or a number below {num_classes}.")
