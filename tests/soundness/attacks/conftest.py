"""The four settings that every attack is tried in."""

from typing import Any

import pytest

from agnncert.attacks.candidates import AdversarialFeatures
from agnncert.attacks.vote_problem import VoteProblem
from tests.support.neighbour_graphs import setting

SETTINGS = [(task, division) for task in ("node", "graph") for division in ("E", "N")]


@pytest.fixture(scope="session", params=SETTINGS, ids=lambda pair: "-".join(pair))
def arena(request: pytest.FixtureRequest) -> dict[str, Any]:
    """Model, data, division, certificate and problem."""
    import agnncert as ac

    model, data, division = setting(*request.param)
    problem = VoteProblem(model, data, division)
    return {
        "model": model,
        "data": data,
        "division": division,
        "problem": problem,
        "certificate": ac.certify(model, data, division),
        "features": AdversarialFeatures.of(problem),
    }
