"""Rows as a run leaves them, with numbers of our choice."""

from typing import Any

from experiments.paper.rows import Row, row_key
from experiments.paper.spec import Contest, Setting

SIZES = [*range(50), *range(50, 210, 10)]
ENVIRONMENT = {"cpus": 2, "threads": 1, "torch": "2.13", "python": "3.11.7", "system": "Linux", "load": 1.5}


def row_of(setting: Setting, accuracy: float = 0.8, radius: int = 140, **changes: Any) -> Row:
    """A row whose certified accuracy stays level up to ``radius`` and is nothing beyond."""
    row: Row = {
        "key": row_key(setting.to_json()), "setting": setting.to_json(), "digest": "d" * 8, "version": "0",
        "recipe": {"model": {"num_layers": 2}, "fit": {"lr": 0.01}}, "environment": ENVIRONMENT, "targets": 100,
        "accuracy_whole_graph": 0.9, "accuracy_majority": 0.3, "seconds_training": 5.0, "epochs": 50,
        "seconds_per_epoch": 0.1, "seconds_plain_forward": 0.02,
    }  # fmt: skip
    if setting.division != "none":
        curve = [accuracy if size <= radius else 0.0 for size in SIZES]
        row |= {
            "accuracy": accuracy, "sizes": SIZES, "certified": curve, "seconds_certification": 0.05,
            "reached_votes": 0.02, "unstable_votes": 3, "accuracy_no_edge": accuracy,
            "vote_differs_from_no_edge": 0.0, "certified_neighbours": curve,
        }  # fmt: skip
    return {**row, **changes}


def contest_of(contest: Contest, certified: dict[str, Any], accuracy: float = 0.8) -> Row:
    """A row of the comparison with other defences."""
    return {
        "key": row_key(contest.to_json()), "setting": contest.to_json(), "guarantee": "deterministic",
        "accuracy": accuracy, "sizes": [0, 1, 5], "certified": certified, "forward_passes": 300,
        "seconds_training": 1.0, "seconds_certification": 0.5,
    }  # fmt: skip
