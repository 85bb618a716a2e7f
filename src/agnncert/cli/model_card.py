"""The model card of a run, in Markdown: what was made of what, what is proved, and what is not."""

import re
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agnncert.cli.folder import CHOICE, RunFolder
from agnncert.cli.model_index import card_head
from agnncert.cli.screen import percent
from agnncert.datasets.teaching_record import Teaching
from agnncert.report.tables import laid_out

_CARD = """\
# Model card: {title}

## Intended use

To classify {targets} of graphs like the one below. The certified label is the one that the defence gives
(`ac.certify(model, data, defence).label`), not the output of one pass over the whole graph.

{issued}

## Model and threshold

{made}

## Data and split

{data}

{fitted}All figures below are of the test part, unless another part was certified.

## Figures

{results}

{proved}

## Not covered

{open}

## Until when

{until} The figures are about the data and the model above. Certify again when either has changed, and measure again
when the shares of the classes change.

## How to make and check it

{commands}
    agnncert verify .
"""
_ALWAYS_OPEN = (
    "That a label is correct: a certified label stays the same.",
    "Attacks on the training data.",
    "Data whose features are prepared in another way, or whose nodes have other ids.",
)


_NOT_STATED = "not stated (`agnncert issue` states it)"


@dataclass(frozen=True)
class Proved:
    """What a model card says about a certificate.

    Attributes:
        sentences: Sentences about what is proved.
        by_class: Figures of each class, with and without attack, as a table in text.
        not_proved: Sentences about what is not.
        issued: Who issues it, for which system and until when, as far as stated.
    """

    sentences: Sequence[str] = ()
    by_class: str = ""
    not_proved: Sequence[str] = _ALWAYS_OPEN
    issued: Mapping[str, str] = field(default_factory=dict)


NOTHING_YET = Proved()


def card_text(folder: RunFolder, proved: Proved = NOTHING_YET) -> str:
    """Returns the model card of a run.

    Args:
        folder: The run, whose settings, data and results are shown.
        proved: What is proved about it. By default nothing is.
    """
    settings = folder.settings
    data = folder.data
    made = {**settings.get("certify", {}), **settings.get("train", {})}
    teaching = _teaching(folder)
    not_covered = [*proved.not_proved] if teaching is None else [*proved.not_proved, teaching.note]
    card = _CARD.format(
        title=f"{_plain(made.get('model', 'model'))} on {_plain(data.get('name', 'data'))}",
        targets=f"{data.get('task', 'node')}s",
        issued=_table(_issue(proved.issued)),
        made=_table({**_parts(folder, made), "teacher": None if teaching is None else _teacher(teaching)}),
        data=_table({name.replace("_", " "): data.get(name) for name in _DATA_ROWS}),
        fitted="The model was fitted on the training part and chosen on validation. " if "train" in settings else "",
        results=_table(_results(folder)),
        proved=_figures(proved),
        open="\n".join(f"- {_plain(sentence)}" for sentence in not_covered),
        until=f"Valid until {proved.issued['until']}." if "until" in proved.issued else f"Valid until: {_NOT_STATED}.",
        commands="\n".join(f"    agnncert {step} --settings settings.toml" for step in settings),
    )
    head = card_head(str(made.get("model", "model")), data, folder.rows())
    return head + re.sub(r"\n{3,}", "\n\n", card)


_DATA_ROWS = (
    "name",
    "task",
    "graphs",
    "nodes",
    "edges",
    "pairs",
    "features",
    "classes",
    "class_names",
    "split",
    "split_by_time",
    "repeated_edges",
    "trusted",
    "encoding",
    "digest",
)


def _teaching(folder: RunFolder) -> Teaching | None:
    """Returns how the training data of the run was taught; ``None`` if all its labels were given."""
    description = folder.read_json(folder.weights.with_suffix(".json").name)
    record = description.get("provenance", {}).get("training", {})
    return Teaching.from_json(record["teaching"]) if "teaching" in record else None


def _teacher(teaching: Teaching) -> str:
    return (
        f"{teaching.teacher}, {len(teaching.weights)} of them, which read {teaching.num_edges:,} edges and labelled "
        f"{teaching.num_taught:,} training nodes beside {teaching.num_given:,} given labels; shares of classes as "
        f"{'among these' if teaching.class_shares == 'given' else 'it predicted them'}"
    )


def _issue(issued: Mapping[str, str]) -> dict[str, Any]:
    return {"system that it is for": issued.get("system", _NOT_STATED), "approved by": issued.get("by", _NOT_STATED)}


def _parts(folder: RunFolder, made: Mapping[str, Any]) -> dict[str, Any]:
    """Returns what the model and its threshold are made of, by name."""
    choice = folder.read_json(CHOICE)
    chosen: dict[str, Any] = {}
    for candidate in choice.get("candidates", []):
        if candidate.get("chosen"):
            chosen = candidate
            break
    voting_rule = chosen or made
    return {
        "model": made.get("model"),
        **made.get("set", {}),
        "division": made.get("division"),
        "size that is trained for": made.get("size"),
        "settings of the defence": made.get("defence"),
        "subgraphs": made.get("groups"),
        "vote chosen for size": choice.get("size"),
        "what decides": chosen.get("decides"),
        "certified with": chosen.get("division"),
        "empty subgraphs cast": voting_rule.get("empty"),
        "threshold (votes given in advance)": voting_rule.get("prior", "none"),
        "classes weighted equally in training": made.get("balance_classes"),
        "seed": made.get("seed", 0),
        "weights": folder.weights.name,
    }


def _results(folder: RunFolder) -> dict[str, str]:
    """Returns the measures of a run that do not depend on a size or a class, by name."""
    results = {}
    for row in folder.rows():
        if row["size"] is None and " of class " not in row["measure"]:
            is_share = "accuracy" in row["measure"]
            results[row["measure"]] = percent(row["value"]) if is_share else f"{row['value']:g}"
    return results


def _figures(proved: Proved) -> str:
    if not proved.sentences:
        return "Nothing is certified yet."
    lines = [f"{_plain(line)}\n" for sentence in proved.sentences for line in sentence.split("\n")]
    return "\n".join([*lines, textwrap.indent(proved.by_class, "    ")])


def _table(values: dict[str, Any]) -> str:
    rows = [[_plain(name), _plain(value)] for name, value in values.items() if value is not None]
    return laid_out("markdown", ["", ""], rows, "ll") if rows else "Nothing yet."


def _plain(value: Any) -> str:
    """Text on one line that Markdown takes for text: names come from the user's data."""
    if isinstance(value, bool | int):
        value = "yes" if value is True else "no" if value is False else f"{value:,}"
    if isinstance(value, dict):
        value = ", ".join(f"{key} {_plain(entry)}" for key, entry in value.items())
    if isinstance(value, list):
        value = ", ".join(map(str, value))
    return " ".join(str(value).replace("`", "'").replace("<", "&lt;").split())
