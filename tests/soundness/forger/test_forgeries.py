"""Forgeries that once held, each by its name: self-consistent, resealed, and refused by whoever has graph and model."""

import copy
import math
import re
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn
from torch_geometric.data import Data

import agnncert as ac
from agnncert.certificates.votes import ABSTAIN
from agnncert.verdict import verify
from tests.soundness.forger.forging import derive, drafted, ids_of, lay_open, seal, select, set_ids
from tests.soundness.forger.honest import a_graph, decisive, node_model
from tests.soundness.forger.judging import SITUATIONS, lies, verdict_on
from tests.soundness.forger.refusals import opened, refuse
from tests.soundness.forger.vote_alterations import take_rule
from tests.soundness.forger.world import SOME, all_cases, all_golden_cases, world_of
from tests.support.theorems import THEOREMS

NAMES = SOME
CASES = all_cases()
KNOWN = [name for name in NAMES if CASES[name].has_truth]
VOTES = [name for name in NAMES if CASES[name].theorem]
RULED = list({case.theorem: name for name, case in CASES.items()}.values())[:-1]  # one for each
# Of how many targets a node is a neighbour depends on which targets there are: then the rest of a file is no file.
SEPARABLE = [
    name for name in VOTES if CASES[name].theorem.endswith("/node") and not THEOREMS[CASES[name].theorem].per_neighbour
]


def test_what_is_told_about_the_cases_is_what_their_certificates_say():
    for name, case in CASES.items():
        honest = world_of(name).honest
        assert honest.settings.get("theorem") == case.theorem
        assert ("truth" in honest.arrays) == case.has_truth
        assert (honest.header["kind"] == "votes") == (case.theorem is not None)
        assert name not in SEPARABLE or not honest.has("targets_per_node")
    assert len(SEPARABLE) == len(
        [n for n in VOTES if not n.startswith("graphs") and not world_of(n).honest.has("targets_per_node")]
    )


# Targets: names, true classes, degrees


@pytest.mark.parametrize("name", NAMES)
def test_exchanged_ids(name, tmp_path):
    world, draft = opened(name)
    first, second, *rest = ids_of(draft)
    set_ids(draft, [second, first, *rest])
    refuse(world, draft, tmp_path, "graph")


@pytest.mark.parametrize("name", NAMES)
def test_invented_ids(name, tmp_path):
    world, draft = opened(name)
    set_ids(draft, [f"{i}'" if isinstance(i, str) else i + 1000 for i in ids_of(draft)])
    refuse(world, draft, tmp_path, "graph")


@pytest.mark.parametrize("name", NAMES)
def test_ids_of_another_type(name, tmp_path):
    world, draft = opened(name)
    set_ids(draft, [k if isinstance(i, str) else f"0{i}" for k, i in enumerate(ids_of(draft))])
    refuse(world, draft, tmp_path, "graph")


@pytest.mark.parametrize("name", KNOWN)
def test_labels_passed_off_as_true_classes(name, tmp_path):
    world, draft = opened(name)
    draft.arrays["truth"] = draft.arrays["label"].copy()
    if (draft.arrays["truth"] == world.honest.arrays["truth"]).all():
        draft.arrays["truth"] = 1 - draft.arrays["truth"]
    refuse(world, draft, tmp_path, "graph")


@pytest.mark.parametrize("name", [name for name in NAMES if name not in KNOWN])
def test_true_classes_of_data_that_has_none(name, tmp_path):
    world, draft = opened(name)
    draft.arrays["truth"] = draft.arrays["label"].copy()
    refuse(world, draft, tmp_path, "graph")


@pytest.mark.parametrize("name", NAMES)
def test_invented_degrees(name, tmp_path):
    world, draft = opened(name)
    draft.arrays["degree"] = draft.arrays["degree"] + 40
    refuse(world, draft, tmp_path, "graph")


@pytest.mark.parametrize("name", NAMES)
def test_the_other_kind_of_ids(name, tmp_path):
    """Row numbers passed off as ids would cover deleted nodes."""
    world, draft = opened(name)
    other = "row" if draft.claim["ids"] == "node_id" else "node_id"
    draft.claim["ids"] = other
    if "ids" in draft.settings:
        draft.settings["ids"] = other
    assert derive(draft)
    refuse(world, draft, tmp_path, "graph")


def test_an_id_with_the_key_of_another():
    """Keys have 64 bits; a digest of keys would take one id for the other."""
    data = a_graph(50, ids="words")
    data.node_id = ["alice", *data.node_id[1:]]
    other = copy.copy(data)
    other.node_id = [2026525658427522583, *data.node_id[1:]]
    model = node_model(50)
    one, two = (drafted(ac.certify(model, graph, ac.NodeCentric(4))) for graph in (data, other))
    assert one.claim["digests"]["graph"] != two.claim["digests"]["graph"]


# Votes and flags


def test_unstable_votes_called_stable(tmp_path):
    world, draft = opened("edge-wary")
    draft["stable"][:], draft["default_stable"][:] = True, True
    assert derive(draft)
    assert (draft.arrays["radius"] > world.honest.arrays["radius"]).any()
    refuse(world, draft, tmp_path)


@pytest.mark.parametrize("name", VOTES)
def test_stable_votes_called_unstable(name, tmp_path):
    world, draft = opened(name)
    flags = draft["stable"]
    flags[np.flatnonzero(flags)[0]] = False
    assert derive(draft)
    refuse(world, draft, tmp_path)


@pytest.mark.parametrize("name", VOTES)
def test_flags_of_default_votes(name, tmp_path):
    world, draft = opened(name)
    draft["default_stable"][0] = not draft["default_stable"][0]
    assert derive(draft)
    refuse(world, draft, tmp_path)


@pytest.mark.parametrize("name", VOTES)
def test_default_votes(name, tmp_path):
    world, draft = opened(name)
    draft["default"][0] = (draft["default"][0] + 1) % 3
    derive(draft)  # some rules know what a default vote must be, and derive nothing from another
    refuse(world, draft, tmp_path)


@pytest.mark.parametrize("situation", ["model", "all votes"])
def test_votes_near_a_tie_called_abstentions(situation, tmp_path):
    """Machines may disagree about the class of such a vote, never about whether one was cast."""
    world, draft = opened("edge-wary")
    places = np.flatnonzero(~draft["stable"] & (draft["vote"] >= 0))
    assert len(places)
    draft["vote"][places] = ABSTAIN
    assert derive(draft)
    refuse(world, draft, tmp_path, situation)


def test_a_label_that_only_votes_near_a_tie_decide(tmp_path):
    """A conceded vote is still the one that was cast, unless rounding itself could have cast another one."""
    world, draft = opened("edge-wary")
    for name, flag in (("default", "default_stable"), ("vote", "stable")):
        unsure = np.flatnonzero(~world.honest[flag])
        assert unsure.size
        for place in unsure.tolist():
            for vote in {0, 1, 2} - {int(world.honest[name][place])}:
                draft = world.honest.copy()
                draft[name][place] = vote
                assert derive(draft)
                refuse(world, draft, tmp_path)
        for target in unsure.tolist() if name == "default" else []:
            assert world.honest.arrays["radius"][target] == -1  # nothing is proved, but a label is stated all the same


def test_a_flag_within_a_tenth_of_the_tolerance(tmp_path):
    """How far machines differ is measured; it is no share of a tolerance that somebody chose."""
    world = world_of("edge-wary")
    for target in np.flatnonzero(~world.honest["default_stable"]).tolist():
        draft = world.honest.copy()
        draft["default_stable"][target] = True
        assert derive(draft)
        refuse(world, draft, tmp_path)
    for vote in np.flatnonzero(~world.honest["stable"]).tolist():
        draft = world.honest.copy()
        draft["stable"][vote] = True
        assert derive(draft)
        refuse(world, draft, tmp_path)


@pytest.mark.parametrize("name", VOTES)
def test_another_reason_for_locality(name, tmp_path):
    """A weaker one is true. A stronger one may be known elsewhere, so it is said that it is not known here."""
    world, draft = opened(name)
    honest, order = draft.claim.get("locality"), ["", "test", "construction"]
    for locality in set(order) - {honest} if honest else ():
        draft.claim["locality"] = locality
        assert derive(draft)
        assert seal(draft, tmp_path / "other.cert")
        verdict = verdict_on(tmp_path / "other.cert", world, "all votes")
        assert verdict.holds, str(verdict)
        unknown = any("local by construction" in text for text in verdict.not_checked)
        assert unknown == (order.index(locality) > order.index(honest))


@pytest.mark.parametrize("factor", [0.0, 0.1, 10.0, 1e12])
@pytest.mark.parametrize("name", ["edge", "node", "gated", "gnncert-e", "edge-wary", "edges-only", "graphs-node"])
def test_another_tolerance(name, factor, tmp_path):
    """A larger one is true if the votes that it concedes are conceded; a smaller one than was measured never is."""
    world, draft = opened(name)
    draft.claim["tolerance"] = min(world.least_tolerance * factor, 0.5)
    assert derive(draft)
    if not lies(world, draft):
        pytest.skip("no vote lies between the two tolerances, so this is what certify would have written")
    refuse(world, draft, tmp_path)


@pytest.mark.parametrize("name", VOTES)
def test_more_classes_than_the_model_has(name, tmp_path):
    world, draft = opened(name)
    draft.settings["num_classes"] += 5
    if isinstance(draft.settings["voting_rule"]["prior"], list):
        draft.settings["voting_rule"]["prior"] += [0] * 5
    assert derive(draft)
    refuse(world, draft, tmp_path)


# Rules, divisions, prices


@pytest.mark.parametrize("name", RULED)
def test_another_rule_is_refused_from_the_file_alone(name, tmp_path):
    """What a division proves follows from the division: a file in which they disagree holds for nobody."""
    for theorem in sorted(set(THEOREMS) - {world_of(name).honest.settings["theorem"]}):
        _refuse_rule(name, theorem, tmp_path)


def _refuse_rule(name, theorem, tmp_path):
    world, draft = opened(name)
    take_rule(draft, np.random.default_rng(0), theorem)
    if not derive(draft):
        return  # the votes do not even have the shape
    if {"custom", "edges-only"} & {name.removeprefix("graphs-"), theorem.split("/")[0]}:
        refuse(world, draft, tmp_path)  # the name of a division says nothing about somebody's own, or about the model
    elif THEOREMS[theorem].task != THEOREMS[world.honest.settings["theorem"]].task:
        refuse(world, draft, tmp_path, "graph")  # the same division serves both tasks
    else:
        refuse(world, draft, tmp_path, "file")


def test_a_gated_rule_on_a_node_centric_file_would_cover_the_target_itself(tmp_path):
    world, draft = opened("node")
    draft.settings["theorem"], draft.settings["voting_rule"] = (
        "gated/node",
        world_of("gated").honest.settings["voting_rule"],
    )
    draft["default"][:], draft["default_stable"][:] = ABSTAIN, True
    draft.header["statements"] = [{"budget": {"target_features": True}, "broken_at_most": 0}]
    assert derive(draft)
    assert draft.arrays["holds"].any()  # the lie: no label of this vote is certified against that
    refuse(world, draft, tmp_path, "file")


@pytest.mark.parametrize("kind", ["gnncert-e", "gnncert-n", "edge-centric", "node-centric"])
@pytest.mark.parametrize("name", ["gnncert-e", "gnncert-n", "gnncert-en", "graphs-gnncert-e", "graphs-gnncert-n"])
def test_gnncert_restated_under_another_division(name, kind, tmp_path):
    world, draft = opened(name)
    if draft.claim["division"].startswith(f"{kind}("):
        return
    draft.claim["division"] = f"{kind}(T={draft.settings['num_groups']}, hash=md5, key=u64le)"
    assert derive(draft)  # the words are those of the old rule
    refuse(world, draft, tmp_path, "file")


@pytest.mark.parametrize("name", ["custom", "graphs-custom", "edges-only"])
def test_prices_that_the_division_does_not_state(name, tmp_path):
    world, draft = opened(name)
    draft.settings["parameters"] |= {"add_edges": 0, "inject_nodes": 0, "edges_per_injected": 0, "delete_nodes": 0}
    assert derive(draft)
    refuse(world, draft, tmp_path)


def test_a_vote_over_edges_only_passed_off_as_one_over_everything(tmp_path):
    """The model mixes all nodes: one injected node may move every vote."""
    world, draft = opened("edges-only")
    draft.settings.update(theorem="edge-centric/node", parameters={})
    plain = replace(world.case.division, edges_only=False)
    draft.claim["division"] = str(plain)
    local = drafted(ac.certify(node_model(7), world.case.data, plain, targets=list(world.case.targets)))
    for name in ("indptr", "group", "reached", "reach_ptr", "reach", "vote", "stable"):
        draft[name] = local[name]  # the right structure; the votes stay those that were cast
    table = np.array([world.honest["vote"][k : k + 6] for k in range(0, len(world.honest["vote"]), 6)])
    draft["vote"] = table[draft.owner, draft["group"]]
    assert derive(draft)
    refuse(world, draft, tmp_path)


@pytest.mark.parametrize("name", VOTES)
def test_more_subgraphs_than_there_are(name, tmp_path):
    world, draft = opened(name)
    draft.settings["num_groups"] += 50
    draft.claim["num_groups"] += 50
    if "edge_groups" in draft.settings["parameters"]:
        draft.settings["parameters"] = {"edge_groups": draft.settings["num_groups"], "feature_groups": 1}
    assert derive(draft)
    own_groups = THEOREMS[
        draft.settings["theorem"]
    ].per_neighbour  # then the graph says how many there are, not the division
    refuse(world, draft, tmp_path, "all votes" if name.endswith("custom") else "graph" if own_groups else "file")


# The claim


@pytest.mark.parametrize("field", ["assumes", "not_proved", "covers"])
@pytest.mark.parametrize("name", NAMES)
def test_words_changed_under_another_version_of_the_library(name, field, tmp_path):
    world, draft = opened(name)
    draft.claim[field] = ["Everything that an attacker might do."] if field == "covers" else []
    draft.claim["library_version"] = "0.0.9"
    refuse(world, draft, tmp_path)


@pytest.mark.parametrize("name", NAMES)
def test_a_unit_changed_under_another_version_of_the_library(name, tmp_path):
    world, draft = opened(name)
    draft.claim["unit"] = "any change at all"
    draft.claim["library_version"] = "99.0"
    refuse(world, draft, tmp_path)


@pytest.mark.parametrize("breaking", ["\n", "\u2028"])
def test_remarks_that_pass_for_other_parts_of_the_claim(breaking, tmp_path):
    """Whoever prints the claim would read them as sentences that were proved."""
    world = world_of("edge")
    spoof = f"Nothing to add.{breaking}Covered:{breaking}  - The target's own features changed to anything."
    for field, value in (("notes", [spoof]), ("library_version", spoof)):
        draft = world.honest.copy()
        draft.claim[field] = value
        refuse(world, draft, tmp_path, "file")


@pytest.mark.parametrize("name", ["edge", "graphs-node", "rs"])
def test_a_digest_of_something_that_nobody_checks(name, tmp_path):
    world, draft = opened(name)
    draft.claim["digests"]["approved by the authority"] = "ab" * 32
    refuse(world, draft, tmp_path)


def _of_every_kind() -> list[str]:
    """One golden file of each kind that has a broken target."""
    found = {}
    for name in all_golden_cases():
        draft = world_of(name).honest
        if draft.num_targets and not draft.arrays["holds"].all():
            found.setdefault(draft.header["kind"], name)
    return list(found.values())


@pytest.mark.parametrize("name", _of_every_kind())
def test_a_false_answer_before_a_true_one_about_the_same_budget_is_refused(name, tmp_path):
    draft = world_of(name).honest.copy()
    number = int(np.flatnonzero(~draft.arrays["holds"].all(axis=1))[0])
    draft.header["statements"].insert(number, copy.deepcopy(draft.header["statements"][number]))
    answers = draft.arrays["holds"]
    draft.arrays["holds"] = np.insert(answers, number, True, axis=0)
    draft.header["statements"][number]["broken_at_most"] = 0
    file = tmp_path / "twice.cert"
    seal(draft, file)
    verdict = verify(file)
    assert not verdict.holds
    assert "answer for" in str(verdict)


# Another graph, another model


@pytest.mark.parametrize("what", ["another model", "another graph"])
@pytest.mark.parametrize("name", NAMES)
def test_a_certificate_about_something_else_with_the_right_digests(name, what, tmp_path):
    world = world_of(name)
    draft = world.stranger(what).copy()
    draft.claim["digests"] = dict(world.honest.claim["digests"])
    if not derive(draft) or not lies(world, draft):
        pytest.skip("the other one casts the same votes")
    refuse(world, draft, tmp_path)


class Steep(nn.Module):
    """A layer with a setting that it does not print."""

    def __init__(self, slope: float) -> None:
        super().__init__()
        self.layer, self.slope = nn.Linear(3, 3), slope

    def forward(self, x, edge_index):
        heard = torch.zeros_like(x).index_add(0, edge_index[1], x[edge_index[0]])
        return self.layer(x + self.slope * heard)


def test_a_model_with_another_setting_that_it_does_not_print(tmp_path):
    data = a_graph(51)
    one, other = decisive(Steep(1.0), 3), decisive(Steep(-1.0), 3)
    assert str(one) == str(other)
    ac.certify(one, data, ac.NodeCentric(4)).save(tmp_path / "a.cert")
    assert verify(tmp_path / "a.cert", data=data, model=one)
    assert not verify(tmp_path / "a.cert", data=data, model=other)


# Refusals, never tracebacks


@pytest.mark.parametrize("digests", [{}, {"graph": ""}, {"model": "x"}])
@pytest.mark.parametrize("name", ["edge", "graphs-edge", "rs", "bi-rs", "edges-only"])
def test_digests_left_out(name, digests, tmp_path):
    world, draft = opened(name)
    draft.claim["digests"] = digests
    derive(draft)
    refuse(world, draft, tmp_path)


@pytest.mark.parametrize("name", ["rs", "sparse-rs", "graphs-sparse-rs"])
def test_noise_that_these_features_cannot_have(name, tmp_path):
    world, draft = opened(name)
    draft.settings["noise"] |= {"p_add_feature": 0.1, "p_delete_feature": 0.1, "num_features": 3}
    draft.settings["method"] = "sparse-rs"
    assert derive(draft)
    refuse(world, draft, tmp_path)


@pytest.mark.parametrize("name", NAMES)
def test_a_file_about_no_target_is_true_or_refused(name, tmp_path):
    world, draft = opened(name)
    select(draft, [])
    assert derive(draft)
    assert seal(draft, tmp_path / "empty.cert")
    for situation in SITUATIONS:
        verdict = verdict_on(tmp_path / "empty.cert", world, situation)  # and no traceback
        assert not verdict.holds or situation != "all votes" or lies(world, draft, verdict) == []


@pytest.mark.parametrize("name", VOTES)
def test_the_digest_of_the_division_left_out(name, tmp_path):
    world, draft = opened(name)
    del draft.claim["digests"]["division"]
    refuse(world, draft, tmp_path)


def test_a_graph_that_fits_no_certificate(tmp_path):
    """A reviewer's own mistake is told as a refusal too: the file is not about this graph."""
    world, draft = opened("edge")
    seal(draft, tmp_path / "a.cert")
    narrow = Data(x=torch.ones(3, 1), edge_index=torch.zeros(2, 0, dtype=torch.int64))
    assert not verify(tmp_path / "a.cert", data=narrow, model=world.case.model, recheck=math.inf)


# What may be altered


@pytest.mark.parametrize("name", SEPARABLE)
def test_fewer_targets_in_another_order_and_without_what_is_optional_are_still_true(name, tmp_path):
    world, draft = opened(name)
    select(draft, np.arange(draft.num_targets)[::-2])
    draft.arrays = {name: array for name, array in draft.arrays.items() if name not in ("truth", "degree")}
    draft.header["statements"] = [{"budget": {"delete_edges": 1}, "broken_at_most": 0}]
    assert derive(draft)
    assert lies(world, draft) == []
    assert seal(draft, tmp_path / "part.cert")
    verdict = verdict_on(tmp_path / "part.cert", world)
    assert verdict.holds, verdict
    assert lay_open(tmp_path / "part.cert").num_targets == draft.num_targets


@pytest.mark.parametrize("name", NAMES)
def test_another_version_of_the_library_and_other_notes_are_listed_as_not_checked_or_refused(name, tmp_path):
    world, draft = opened(name)
    draft.claim["library_version"] = "0.0.9"
    draft.claim["notes"] = ["Approved."]
    assert seal(draft, tmp_path / "a.cert")
    verdict = verdict_on(tmp_path / "a.cert", world)
    assert not verdict.holds or lies(world, draft, verdict) == []


@pytest.mark.parametrize("name", ["edge", "gnncert-e", "gnncert-n", "graphs-node", "graphs-gnncert-e"])
def test_a_number_of_groups_that_nobody_could_lay_out_is_refused_at_once(name, tmp_path):
    world, draft = opened(name)
    draft.settings["num_groups"] = draft.claim["num_groups"] = 2**24
    draft.claim["division"] = re.sub(r"T=\d+", f"T={2**24}", draft.claim["division"])
    assert derive(draft)
    assert seal(draft, tmp_path / "forged.cert")
    assert not verdict_on(tmp_path / "forged.cert", world, "all votes").holds
