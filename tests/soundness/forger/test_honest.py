"""The controls: honest certificates of every kind hold, whatever a reviewer has, and so do they written again."""

import numpy as np
import pytest

from tests.soundness.forger.forging import derive, lay_open, seal
from tests.soundness.forger.judging import SITUATIONS, lies, same, tried, verdict_on
from tests.soundness.forger.world import all_cases, world_of

NAMES = list(all_cases())


@pytest.mark.parametrize("name", NAMES)
def test_an_honest_certificate_holds_in_every_situation(name, tmp_path):
    world = world_of(name)
    world.case.certify().save(tmp_path / "honest.cert", world.case.budgets)
    for situation in SITUATIONS:
        verdict = verdict_on(tmp_path / "honest.cert", world, situation)
        assert verdict.holds, f"{situation}: {verdict}"


@pytest.mark.parametrize("name", NAMES)
def test_an_honest_certificate_laid_open_derived_and_sealed_again_is_the_same_and_true(name, tmp_path):
    world = world_of(name)
    draft = world.honest.copy()
    assert derive(draft)
    assert seal(draft, tmp_path / "again.cert")
    assert same(lay_open(tmp_path / "again.cert"), world.honest)
    assert lies(world, draft) == []
    assert tried(world, draft, tmp_path / "again.cert").fate == "true"


def test_the_honest_certificates_prove_something_and_concede_something():
    radii = np.concatenate([world_of(name).honest.arrays["radius"] for name in NAMES])
    assert {-1, 0, 1, 2} <= set(radii.tolist())
    assert (~world_of("edge-wary").honest["stable"]).any()
    assert len({world_of(name).honest.settings.get("theorem") for name in NAMES}) >= 12
