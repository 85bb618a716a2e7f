"""A forger's fuzz: alterations of every field of every kind of certificate, resealed; none is accepted that lies.

``python -m tests.soundness.forger.offline`` does the same for as long as one likes.
"""

from pathlib import Path

import numpy as np
import pytest

from tests.soundness.forger.alterations import alter_array, alter_leaf
from tests.soundness.forger.forging import derive, leaves, scratch_folder, seal, state_exclusions
from tests.soundness.forger.judging import SITUATIONS, numbered, same, tried, verdict_on
from tests.soundness.forger.world import SOME, Pointless, all_golden_cases, world_of

# Every kind of certificate; the offline run has all variants, and all golden files.
NAMES = [
    *SOME,
    "edge-rows",
    "gnncert-e",
    "gnncert-n",
    "graphs-gnncert-e",
    "graphs-gnncert-en",
    "sparse-rs-features",
    *list(all_golden_cases())[::4],
]
BAD = ("LIE", "CRASH")


@pytest.fixture(scope="module")
def path():
    with scratch_folder() as folder:
        yield Path(folder) / "forged.cert"


@pytest.mark.slow
@pytest.mark.parametrize("part", range(2))
def test_no_forgery_is_accepted(part, path):
    fates, bad = [], []
    for number in range(part * 150, part * 150 + 150):
        name, outcome = numbered(12, number, path, NAMES)
        fates.append(outcome.fate)
        bad += [(number, name, outcome)] if outcome.fate in BAD else []
    assert not bad, f"{len(bad)} of {len(fates)}:\n" + "\n".join(map(str, bad[:20]))
    assert fates.count("refused") > 60  # the reviewer does refuse, and
    assert fates.count("true") > 3  # does not refuse everything


@pytest.mark.parametrize("name", [*SOME, "golden gated-node", "golden pairs-common", "golden rs"])
def test_no_field_can_be_altered_unnoticed(name, path):
    """Every field of the header and every array, once on its own and once with all statements derived again."""
    world, rng = world_of(name), np.random.default_rng(7)
    honest = world.honest.copy()
    state_exclusions(honest)
    places = [place for place in leaves(honest.header) if len(place) < 4 and not isinstance(place[-1], int)]
    bad = []
    for place in [*places, *honest.arrays]:
        draft = honest.copy()
        try:
            if isinstance(place, str):
                alter_array(draft, place, rng)
            else:
                alter_leaf(draft.header, place, rng)
        except Pointless:
            continue
        if rng.random() < 0.5:
            derive(draft)
        if not same(draft, honest) and seal(draft, path):
            outcome = tried(world, draft, path, (str(place),))
            bad += [outcome] if outcome.fate in BAD else []
    assert not bad, "\n".join(map(str, bad))


@pytest.mark.slow
def test_whoever_has_more_refuses_no_less(path):
    refused = 0
    for number in range(40):
        name, outcome = numbered(5, number, path, NAMES)
        if outcome.fate in ("refused", "true"):
            held = [verdict_on(path, world_of(name), situation).holds for situation in SITUATIONS]
            assert held == sorted(held, reverse=True), f"{number}: {outcome} holds in {held}"
            refused += not held[-1]
    assert refused > 15


@pytest.mark.parametrize("name", [name for name in all_golden_cases() if "stacked" in name])
def test_scores_of_stacked_votes_may_differ_by_what_machines_differ_by_and_no_more(name, path):
    world = world_of(name)
    for by, fate in ((-1, "true"), (1, "true"), (2, "refused")):
        draft = world.honest.copy()
        draft["prior"][0, 0] += by
        assert seal(draft, path)
        assert tried(world, draft, path).fate == fate
