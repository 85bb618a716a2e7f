"""The four settings that every attack is tried in."""

from typing import Any

import pytest

from agnncert.attacks import Arsenal, Scene

from ..support.towns import setting

SETTINGS = [(task, division) for task in ("node", "graph") for division in ("E", "N")]


@pytest.fixture(scope="session", params=SETTINGS, ids=lambda pair: "-".join(pair))
def arena(request: pytest.FixtureRequest) -> dict[str, Any]:
    """Model, data, division, certificate and scene."""
    import agnncert as ac

    model, data, division = setting(*request.param)
    scene = Scene(model, data, division)
    return {
        "model": model,
        "data": data,
        "division": division,
        "scene": scene,
        "certificate": ac.certify(model, data, division),
        "arsenal": Arsenal.of(scene),
    }
