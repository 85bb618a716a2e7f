"""What is caught where: a reviewer who has the file alone, the graph too, the model too; and what the verdict admits.

Each row names a forgery, the situation in which it must be caught at the latest, and what a verdict that lets it pass
must list as not checked.
"""

import re

import numpy as np
import pytest

from tests.soundness.forger.alterations import EARLY, LATE
from tests.soundness.forger.forging import Draft, seal
from tests.soundness.forger.judging import SITUATIONS, forge, lies, not_checked, verdict_on
from tests.soundness.forger.world import Pointless, world_of

FILE, GRAPH, MODEL, SOME, ALL = SITUATIONS
BY_VOTES = ("edge", "gated", "edges-only", "graphs-node")
BY_SAMPLES = ("rs", "bi-rs", "interception")
EVERY = (*BY_VOTES, *BY_SAMPLES)
IDS, TRUTH, DEGREE = r"\bids?\b", r"true class|truth", r"degree"
CAST, DRAWN = r"vote", r"sample|drawn|counts"
TABLE = {
    "words": (FILE, "", EVERY),
    "words_of_another_version": (FILE, "", EVERY),
    "answers": (FILE, "", EVERY),
    "number_of_groups": (GRAPH, CAST, ("edge", "node", "graphs-node")),
    "swapped_ids": (GRAPH, IDS, EVERY),
    "renamed_ids": (GRAPH, IDS, EVERY),
    "id_kind": (GRAPH, IDS, EVERY),
    "other_truth": (GRAPH, TRUTH, EVERY),
    "other_degree": (GRAPH, DEGREE, EVERY),
    "other_rows": (GRAPH, IDS, (*EVERY, "golden pairs-common", "golden pairs-both", "golden pairs-trusted")),
    "unlisted": (MODEL, CAST, ("edge", "node", "graphs-edge")),
    "regrouped": (MODEL, CAST, ("edge", "node", "gated")),
    "one_vote": (ALL, CAST, BY_VOTES),
    "unanimous": (ALL, CAST, BY_VOTES),
    "less_stable": (ALL, CAST, BY_VOTES),
    "number_of_classes": (ALL, f"{CAST}|{DRAWN}", EVERY),
    "counts": (ALL, DRAWN, BY_SAMPLES),
    "more_samples": (ALL, DRAWN, BY_SAMPLES),
    "paths": (GRAPH, r"\bpaths\b", ("interception",)),
}
ROWS = [(alteration, name) for alteration, (_, _, names) in TABLE.items() for name in names]


def a_lie(alteration: str, name: str) -> Draft:
    """A forgery that changes a statement."""
    world = world_of(name)
    for seed in range(50):
        try:
            draft = forge(world, np.random.default_rng(seed), [(alteration, (EARLY | LATE)[alteration])])
        except Pointless:
            continue
        if lies(world, draft):
            return draft
    raise AssertionError(f"{alteration} makes no lie of {name}")


@pytest.mark.parametrize(("alteration", "name"), ROWS)
def test_a_forgery_is_caught_in_time_and_until_then_the_verdict_says_that_nobody_looked(alteration, name, tmp_path):
    latest, topic, _ = TABLE[alteration]
    world, draft = world_of(name), a_lie(alteration, name)
    assert seal(draft, tmp_path / "forged.cert")
    for situation in SITUATIONS:
        verdict = verdict_on(tmp_path / "forged.cert", world, situation)
        if verdict.holds:
            assert SITUATIONS.index(situation) < SITUATIONS.index(latest), f"accepted with {situation}"
            assert re.search(topic, not_checked(verdict), re.IGNORECASE), f"{situation} is silent:\n{verdict}"


@pytest.mark.parametrize(("what", "latest"), [("another graph", GRAPH), ("another model", MODEL)])
@pytest.mark.parametrize("name", EVERY)
def test_a_certificate_about_something_else_is_caught_by_its_digest(name, what, latest, tmp_path):
    world = world_of(name)
    assert seal(world.stranger(what), tmp_path / "other.cert")
    assert verdict_on(tmp_path / "other.cert", world, FILE).holds
    assert not verdict_on(tmp_path / "other.cert", world, latest).holds


@pytest.mark.parametrize("name", EVERY)
def test_what_was_checked_is_not_listed_as_unchecked(name, tmp_path):
    world = world_of(name)
    assert seal(world.honest, tmp_path / "honest.cert")
    verdicts = {situation: verdict_on(tmp_path / "honest.cert", world, situation) for situation in SITUATIONS}
    alone, whole = not_checked(verdicts[FILE]), not_checked(verdicts[ALL])
    for topic in (IDS, TRUTH, DEGREE, CAST if name in BY_VOTES else DRAWN):
        assert re.search(topic, alone, re.IGNORECASE), f"{topic} is not listed:\n{verdicts[FILE]}"
        assert not re.search(topic, whole, re.IGNORECASE) or topic == DRAWN, f"{topic} is listed:\n{verdicts[ALL]}"
    lengths = [len(verdict.checked) for verdict in verdicts.values()]
    assert lengths == sorted(lengths)
    for verdict in verdicts.values():
        assert not set(verdict.checked) & set(verdict.not_checked)
        assert all(f"not checked: {what}" in str(verdict) for what in verdict.not_checked)
