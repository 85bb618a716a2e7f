"""The head of a model card that model hubs read: tags, and the figures as a ``model-index``."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

_MEASURES = ("accuracy of the vote", "certified accuracy")


def card_head(name: str, data: Mapping[str, Any], rows: Iterable[Mapping[str, Any]]) -> str:
    """Returns the YAML head of a model card, between two lines of dashes.

    Args:
        name: Name of the model.
        data: What is known about the data: ``name``, ``task`` and ``digest``.
        rows: Rows of results. The accuracy of the vote, and certified accuracy at each size, are shown.
    """
    figures = [row for row in rows if row["measure"] in _MEASURES and row["value"] is not None]
    lines = ["---", "library_name: agnncert", "tags:", "- graph-ml", "- certified-robustness"]
    if figures:
        dataset = str(data.get("name", "data"))
        lines += [
            "model-index:",
            f"- name: {_text(name)}",
            "  results:",
            "  - task:",
            "      type: graph-ml",
            f"      name: {_text(str(data.get('task', 'node')) + ' classification')}",
            "    dataset:",
            f"      name: {_text(dataset)}",
            f"      type: {_text(dataset)}",
            f"      revision: {_text(str(data.get('digest', '')))}",
            "    metrics:",
        ]
        for row in figures:
            lines += ["    - type: accuracy", f"      name: {_text(_title(row))}", f"      value: {row['value']:.6g}"]
    return "\n".join([*lines, "---", ""])


def _title(row: Mapping[str, Any]) -> str:
    size = row.get("size")
    return str(row["measure"]) if size is None else f"{row['measure']} at size {size:g}"


def _text(value: str) -> str:
    """Returns a text as YAML reads it, whatever it holds: a text of JSON is one of YAML."""
    return json.dumps(value, ensure_ascii=False)
