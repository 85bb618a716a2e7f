"""Choose division and number of groups for the attack that counts, and keep the model that did best."""

import json
import logging
from dataclasses import replace
from typing import Any

from agnncert.division import EdgeCentric, NodeCentric
from agnncert.graph import infer_task
from agnncert.runs.fitting import Fitter
from agnncert.runs.folder import CHOICE
from agnncert.runs.inputs import fresh_model, make_division
from agnncert.runs.settings import TrainSettings
from agnncert.search import Candidate, candidate_groups, choose_groups

log = logging.getLogger(__name__)


def choose(
    settings: TrainSettings, data: Any, fitter: Fitter
) -> tuple[Any, EdgeCentric | NodeCentric, dict[str, Any]]:
    """Trains a model for each division in question, lets each vote with several numbers of groups, keeps the best.

    The choice is written to the run folder, where later steps find it.
    """
    size = settings.target_size or 0
    numbers = candidate_groups(size)
    kinds = ("edge", "node") if settings.division is None else (settings.division,)
    tried: list[tuple[Candidate, str, Any, dict[str, Any]]] = []
    for kind in kinds:
        middle = replace(settings, target_size=None, division=kind, groups=numbers[len(numbers) // 2])
        _, division = make_division(middle, infer_task(data))
        model = fresh_model(settings, data)
        fitter.announce(model, division)
        record = fitter.fit(model, division, f"model-{kind}", f"training for the {kind} division")
        found = choose_groups(
            model, data, size, divisions=(kind,), candidates=numbers, hash=settings.hash or "md5",
            protocol=settings.protocol,  # type: ignore[arg-type]
        )  # fmt: skip
        tried += [(candidate, kind, model, record) for candidate in found.candidates]
    best, kind, model, record = min(tried, key=lambda t: (-t[0].certified_accuracy, t[0].division.num_groups))
    groups = best.division.num_groups
    log.info(
        "best against attacks of size %d: %s, %.1f %% certified",
        size,
        best.division,
        100 * best.certified_accuracy,
    )
    candidates = [
        {
            "division": k,
            "groups": c.division.num_groups,
            "accuracy": c.accuracy,
            "certified_accuracy": c.certified_accuracy,
        }
        for c, k, _, _ in tried
    ]
    chosen = {"division": kind, "groups": groups, "size": size, "candidates": candidates}
    fitter.folder.write(CHOICE, json.dumps(chosen, indent=2) + "\n")
    return model, best.division, record
