"""With one check of the verifier switched off, a forged file is accepted; with nothing switched off, it is refused.

Each forgery is self-consistent and resealed, and only the check that is named beside it stands in its way. Where two checks
stand behind each other, the reviewer is one who has only the first (the file alone, or no votes cast one at a time).
"""

from types import SimpleNamespace

import numpy as np
import pytest

import agnncert as ac
from agnncert import agreement
from agnncert.auditing.findings import Finding
from agnncert.auditing.model_audit import AuditReport
from agnncert.certificates import claim as claims
from agnncert.certificates.claim import PREMISES
from agnncert.certificates.votes import ABSTAIN
from agnncert.divided import certify as certifier
from agnncert.divided import recompute as replay
from agnncert.verifier import file_checker
from agnncert.verifier.file_checker import FileChecker
from agnncert_peers import recheck
from tests.soundness.forger.forging import Draft, derive, drafted, ids_of, seal, select, set_ids
from tests.soundness.forger.honest import Mixing, decisive
from tests.soundness.forger.judging import lies, verdict_on
from tests.soundness.forger.refusals import opened
from tests.soundness.forger.vote_alterations import mend_cover
from tests.soundness.forger.world import world_of
from tests.support.mutations import Planted

FILE, GRAPH, MODEL, ALL = "file", "graph", "model", "all votes"


# The mistakes


def without(module, name, words):
    """The function no longer gives the reason that has these words."""

    def mistake(patch):
        whole = getattr(module, name)
        patch.setattr(
            module,
            name,
            lambda *given, **settings: [reason for reason in whole(*given, **settings) if words not in reason],
        )

    return mistake


def no_check(module, name):
    """The function finds nothing wrong."""
    return lambda patch: patch.setattr(module, name, lambda *given, **settings: [])


def any_rule_fits(patch):
    patch.setattr(claims, "theorem_mismatch", lambda *given, **settings: "")


def believe_the_counts(patch):
    patch.setattr(recheck, "_drawn_again", lambda evidence, *given: SimpleNamespace(evidence=evidence))


def call_every_model_fit(patch):
    patch.setattr(replay, "audited", lenient)


def cast_no_vote_again(patch):
    patch.setattr(replay, "wrong_votes", lambda *given, **settings: [])
    patch.setattr(replay, "spot_check_pairs", lambda *given, **settings: (np.zeros(0, dtype=np.int64), None))


def lenient(model, data, division, task, probed_on=None):
    """An audit that finds nothing, but has subgraphs evaluated one at a time."""
    found = (Finding("", "", "", "", alone=True),)
    return AuditReport("node", str(division), found, 0.0, 32 * 2.0**-52, "test"), None


# The forgeries


def swapped_ids(draft: Draft) -> None:
    first, second, *rest = ids_of(draft)
    set_ids(draft, [second, first, *rest])


def true_labels(draft: Draft) -> None:
    draft.arrays["truth"] = draft.arrays["label"].copy()


def high_degree(draft: Draft) -> None:
    draft.arrays["degree"] += 9


def ids_for_rows(draft: Draft) -> None:
    draft.claim["ids"] = draft.settings["ids"] = "node_id"


def digest_of(name: str):
    def another_digest(draft: Draft) -> None:
        draft.claim["digests"][name] = "ab" * 32

    return another_digest


def another_division(draft: Draft) -> None:
    draft.claim["digests"]["division"] = "ab" * 32


def no_digest(draft: Draft) -> None:
    del draft.claim["digests"]["division"]


def nodes_that_reach_little(draft: Draft) -> None:
    mend_cover(draft, per_node=1)


def gated(draft: Draft) -> None:
    draft.settings["theorem"], draft.settings["voting_rule"] = (
        "gated/node",
        world_of("gated").honest.settings["voting_rule"],
    )
    draft["default"][:], draft["default_stable"][:] = ABSTAIN, True


def cheap_features(draft: Draft) -> None:
    draft.settings["parameters"]["change_features"] = 0


def more_groups(draft: Draft) -> None:
    draft.settings["num_groups"] += 50
    draft.claim["num_groups"] += 50


def another_name(draft: Draft) -> None:
    draft.claim["division"] = "a division that somebody trusts"


def no_tolerance(draft: Draft) -> None:
    draft.claim["tolerance"] = 0.0


def unanimous(draft: Draft) -> None:
    draft["vote"][:], draft["default"][:] = 0, 0


def all_stable(draft: Draft) -> None:
    draft["stable"][:], draft["default_stable"][:] = True, True


def next_class(draft: Draft) -> None:
    unsure = np.flatnonzero(~draft["default_stable"])[:1]
    draft["default"][unsure] = (draft["default"][unsure] + 1) % 3


def more_classes(draft: Draft) -> None:
    draft.settings["num_classes"] += 1


def stronger_noise(draft: Draft) -> None:
    draft.settings["noise"]["p_delete"] = 0.4


def all_samples_agree(draft: Draft) -> None:
    for name in ("selection", "estimation"):
        draft[name][:] = draft[name].sum(axis=1, keepdims=True) * (np.arange(3) == 0)


def more_classes_of_nobody(draft: Draft) -> None:
    select(draft, [])
    for name in ("selection", "estimation"):
        draft[name] = np.zeros((0, 5), dtype=np.int64)


def assumes_nothing(draft: Draft) -> None:
    draft.claim["assumes"] = list(PREMISES)


def larger_radius(draft: Draft) -> None:
    draft.arrays["radius"] += 1


def said_twice(draft: Draft) -> None:
    select(draft, [0, *range(draft.num_targets)])


AFTERWARDS = (
    assumes_nothing,
    larger_radius,
    no_digest,
    another_division,
)  # statements are not derived again after these
targets, claim = "wrong_targets", "check_claim"
FORGERIES = [
    ("edge", swapped_ids, GRAPH, without(replay, targets, "the id of")),
    ("edge", swapped_ids, ALL, without(replay, targets, "the id of")),
    ("edge", true_labels, ALL, without(replay, targets, "the true class of")),
    ("edge-rows", true_labels, ALL, without(replay, targets, "which the data does not have")),
    ("graphs-node", high_degree, ALL, without(replay, targets, "the degree of")),
    ("edge-rows", ids_for_rows, ALL, without(replay, targets, "nodes are known by")),
    ("node", digest_of("graph"), ALL, without(replay, targets, "the graph is not the one")),
    ("rs", digest_of("graph"), ALL, without(recheck, targets, "the graph is not the one")),
    ("node", no_digest, ALL, without(replay, targets, "does not say which")),
    ("node", digest_of("model"), ALL, no_check(agreement, "other_model")),
    ("rs", digest_of("model"), ALL, no_check(agreement, "other_model")),
    ("node", another_division, ALL, without(FileChecker, "check", "the digest of the division")),
    ("node", digest_of("approval"), ALL, without(file_checker, claim, "nobody could check")),
    ("edge", nodes_that_reach_little, ALL, without(replay, "_wrong_division", "the subgraphs in which")),
    ("node", gated, FILE, any_rule_fits),
    ("node", more_groups, FILE, any_rule_fits),
    ("custom", cheap_features, ALL, without(replay, "_wrong_division", "has the theorem")),
    ("custom", another_name, ALL, without(replay, "_wrong_division", "is not the one that is named")),
    ("node", no_tolerance, ALL, without(replay, "wrong_model", "the claim assumes that no score")),
    ("node", unanimous, MODEL, without(replay, "wrong_votes", "are not those that the model casts")),
    ("node", unanimous, ALL, cast_no_vote_again),
    ("edge-wary", all_stable, ALL, without(replay, "wrong_votes", "as close to a tie")),
    ("edge-wary", next_class, ALL, without(replay, "wrong_votes", "which does not come close")),
    ("node", more_classes, ALL, no_check(replay, "other_classes")),
    ("bi-rs", more_classes_of_nobody, ALL, no_check(recheck, "other_classes")),
    ("rs", stronger_noise, GRAPH, lambda patch: patch.setattr(recheck, "defence_of", _as_drawn)),
    ("rs", all_samples_agree, ALL, believe_the_counts),
    ("node", assumes_nothing, ALL, without(file_checker, claim, "is not what its evidence allows")),
    ("rs", assumes_nothing, ALL, without(file_checker, claim, "is not what its evidence allows")),
    ("node", larger_radius, ALL, no_check(FileChecker, "wrong_statements")),
    ("node", said_twice, FILE, without(file_checker, "check_targets", "names a target twice")),
]


def _as_drawn(evidence):
    """A defence with whatever noise a file states, under the name that it states."""
    honest = world_of("rs").case.division

    class Believed(type(honest)):
        def noise(self, num_features):
            return evidence.noise

        def __str__(self):
            return str(honest)

    return Believed(honest.beta)


def forged(name, forgery) -> Draft:
    draft = world_of(name).honest.copy()
    forgery(draft)
    assert forgery in AFTERWARDS or derive(draft)
    return draft


@pytest.mark.parametrize(("name", "forgery", "situation", "mistake"), FORGERIES)
def test_a_check_that_is_switched_off_lets_a_forgery_pass(name, forgery, situation, mistake, monkeypatch, tmp_path):
    world, draft = world_of(name), forged(name, forgery)
    assert lies(world, draft)
    assert seal(draft, tmp_path / "forged.cert")
    refused = verdict_on(tmp_path / "forged.cert", world, situation)
    assert not refused.holds
    with monkeypatch.context() as patch:
        planted = Planted(patch)
        mistake(planted)
        verdict = verdict_on(tmp_path / "forged.cert", world, situation)
        assert verdict.holds, f"also refused because: {verdict}"
        planted.require_reached()


def test_without_an_audit_a_model_that_mixes_all_nodes_would_be_certified(monkeypatch, tmp_path):
    """The forger's own library has no audit; the reviewer's has one."""
    data, mixing = world_of("node").case.data, decisive(Mixing(), 8)
    with monkeypatch.context() as patch:
        patch.setattr(certifier, "audited", lenient)
        patch.setattr(AuditReport, "require_fit", lambda *given, **how: None)
        seal(drafted(ac.certify(mixing, data, ac.NodeCentric(8), engine="naive")), tmp_path / "forged.cert")
    given = {"data": data, "model": mixing, "recheck": 1000}
    assert not ac.verify(tmp_path / "forged.cert", **given)
    with monkeypatch.context() as patch:
        call_every_model_fit(patch)
        patch.setattr(AuditReport, "fit_for", ("edges", "nodes", "features"))
        assert ac.verify(tmp_path / "forged.cert", **given)


def test_a_stronger_reason_for_locality_would_pass_for_one_that_was_checked(monkeypatch, tmp_path):
    world, draft = opened("node")
    monkeypatch.setattr("agnncert.auditing.model_audit.by_construction", lambda model: False)  # as with another PyG
    draft.claim["locality"] = "construction"
    assert derive(draft)
    assert seal(draft, tmp_path / "a.cert")

    def is_said() -> bool:
        verdict = verdict_on(tmp_path / "a.cert", world, ALL)
        assert verdict.holds
        return any("local by construction" in text for text in verdict.not_checked)

    assert is_said()
    monkeypatch.setattr(replay, "_STRENGTH", dict.fromkeys(replay._STRENGTH, 0))
    assert not is_said()
