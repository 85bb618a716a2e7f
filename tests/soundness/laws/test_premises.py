"""What every certificate of every kind assumes, and what a budget of injected nodes means, whoever asks."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import agnncert as ac
from agnncert.certificates.claim import (
    EDGES_GIVEN,
    FEATURES_FIXED,
    JOINED_ROWS_RISE,
    PAYERS_SEND_NOTHING,
    PREMISES,
    SPLIT_GIVEN,
)
from agnncert.certificates.file import read_contents, write_contents
from agnncert.errors import CertificateError
from agnncert.proving.certificate import load_certificate
from agnncert.verdict import check_file, verify
from agnncert.verifier.file_checker import FileChecker
from agnncert.verifier.kinds import checked
from tests.soundness.forger.forging import lay_open, seal
from tests.soundness.golden.examples import EXAMPLES
from tests.support.toys import toy_certificate

GOLDEN = sorted((Path(__file__).parents[1] / "golden").glob("v*/*.cert"))
every_kind = pytest.mark.parametrize("file", GOLDEN, ids=lambda file: file.stem)
OTHERS = [file for file in GOLDEN if load_certificate(file).evidence.training_fields]
EDGE_BLIND = [file for file in GOLDEN if read_contents(file).claim.assumes[0].startswith("Edges: at any time")]
TRUSTING = [file for file in GOLDEN if file not in (*OTHERS, *EDGE_BLIND)]
trusting = pytest.mark.parametrize("file", TRUSTING, ids=lambda file: file.stem)


@pytest.mark.parametrize("file", OTHERS, ids=lambda file: file.stem)
def test_a_claim_about_poisoned_training_data_does_not_say_that_all_of_them_are_trusted(file):
    claim = read_contents(file).claim
    assert PREMISES[0] not in claim.assumes
    assert FEATURES_FIXED in claim.assumes
    assert "rained" in claim.unit or "training" in claim.unit


def test_one_claim_is_about_edges_at_any_time_and_says_so_first():
    assert [file.stem for file in EDGE_BLIND] == ["stacked-edge-blind"]
    assert FEATURES_FIXED in read_contents(EDGE_BLIND[0]).claim.assumes


@trusting
def test_every_claim_says_that_training_is_trusted_and_that_no_features_follow_the_edges(file):
    claim = read_contents(file).claim
    assert claim.assumes[:3] == PREMISES
    assert "training data are trusted" in claim.assumes[0]
    assert "No node's features are computed from the edges" in claim.assumes[1]


@trusting
def test_both_are_among_the_first_lines_of_a_printed_claim(file):
    lines = str(read_contents(file).claim).splitlines()
    assert lines[1:5] == ["Assumed:", *(f"  - {premise}" for premise in PREMISES)]


def test_a_claim_that_leaves_the_premise_out_makes_no_certificate():
    toy = toy_certificate()
    silent = replace(toy.claim, assumes=("Points are points.",))
    with pytest.raises(CertificateError, match="no node's features are computed from the edges"):
        replace(toy, claim=silent)


class _Trusting(FileChecker):
    """A checker of somebody else's kind, which does not look at the claim."""

    shape = (0, 0)

    def check(self):
        return []

    def expected_claim(self):
        return self.contents.claim

    def wrong_values(self):
        return {}

    def possible(self, budget):
        return np.zeros(self.shape, dtype=bool)

    def not_checked(self):
        return ()


def test_a_file_of_any_kind_that_leaves_the_premise_out_is_refused(tmp_path, monkeypatch):
    file = tmp_path / "toy.cert"
    toy_certificate().save(file)
    monkeypatch.setattr("agnncert.verdict.checked", _Trusting)
    assert check_file(file)[1] == []
    contents = read_contents(file)
    kept = tuple(sentence for sentence in contents.claim.assumes if sentence not in (FEATURES_FIXED, EDGES_GIVEN))
    write_contents(file, replace(contents, claim=replace(contents.claim, assumes=kept)))
    assert check_file(file)[1] == [
        "the claim does not say that no node's features are computed from the edges",
        "the claim does not say that no edges are computed from other edges or from features",
    ]


@every_kind
def test_every_claim_says_that_no_edge_is_computed_from_others_or_from_features(file):
    assert EDGES_GIVEN in EXAMPLES[file.stem].certify().claim.assumes


@every_kind
def test_a_file_from_before_claims_spoke_of_computed_edges_is_read_as_if_it_did(file, tmp_path):
    draft = lay_open(file)
    written = [sentence for sentence in draft.header["claim"]["assumes"] if sentence != EDGES_GIVEN]
    draft.header["claim"]["assumes"] = written
    old, again = tmp_path / "old.cert", tmp_path / "again.cert"
    assert seal(draft, old)
    claim = read_contents(old).claim
    assert claim.assumes.index(EDGES_GIVEN) == claim.assumes.index(FEATURES_FIXED) + 1
    later = (*SPLIT_GIVEN.values(), JOINED_ROWS_RISE)  # other sentences that files did not have at first
    read = [sentence for sentence in claim.assumes if sentence not in (EDGES_GIVEN, *later)]
    assert read == [sentence for sentence in written if sentence not in later]
    assert verify(old).holds
    load_certificate(old).save(again)
    assert EDGES_GIVEN in lay_open(again).header["claim"]["assumes"]


def test_a_file_about_payers_from_before_is_read_as_if_it_spoke_of_joined_rows():
    file = next(file for file in GOLDEN if file.stem == "append-ledger")
    assert JOINED_ROWS_RISE not in lay_open(file).header["claim"]["assumes"]
    assumes = read_contents(file).claim.assumes
    assert assumes.index(JOINED_ROWS_RISE) == assumes.index(PAYERS_SEND_NOTHING) + 1
    assert verify(file).holds


@every_kind
def test_injected_nodes_have_any_number_of_edges_for_prover_and_verifier_alike(file):
    certificate, contents = load_certificate(file), read_contents(file)
    for size in (1, 3, 1_000_000):
        asked, explicit = ac.Budget(inject_nodes=size), ac.Budget(inject_nodes=size, edges_per_injected=math.inf)
        assert np.array_equal(certificate.holds_against(asked), certificate.holds_against(explicit))
        possible = checked(contents).possible(asked)
        assert np.array_equal(possible.sum(axis=1) == 1, certificate.holds_against(explicit))
    most = certificate.max_certified("inject_nodes", edges_per_injected=math.inf)
    assert certificate.max_certified("inject_nodes").tolist() == most.tolist()


@pytest.mark.parametrize("stem", ["edge-centric-node", "node-centric-node", "per-neighbour-node", "stacked-sum"])
def test_nobody_withstands_a_million_accounts_that_follow_whom_they_like(stem):
    certificate = load_certificate(next(file for file in GOLDEN if file.stem == stem))
    assert not certificate.holds_against(ac.Budget(inject_nodes=1_000_000)).any()
    lonely = ac.Budget(inject_nodes=1_000_000, edges_per_injected=0)
    assert certificate.holds_against(lonely).tolist() == certificate.holds_against(ac.Budget()).tolist()


@pytest.mark.parametrize(
    "budget",
    [
        ac.Budget(inject_nodes=1),
        ac.Budget(inject_nodes=1, edges_per_injected=0),
        ac.Budget(inject_nodes=2, edges_per_injected=5),
        ac.Budget(edges_per_injected=5),
        ac.Budget(add_edges=1),
    ],
    ids=str,
)
def test_a_file_says_how_many_edges_injected_nodes_may_have(budget, tmp_path):
    file = tmp_path / "a.cert"
    load_certificate(GOLDEN[1]).save(file, budgets=[budget])
    assert read_contents(file).budgets == (budget,)
    assert verify(file).holds
    draft = lay_open(file)
    stated = draft.header["statements"][0]["budget"]
    assert ("edges_per_injected" in stated) == bool(budget.inject_nodes or budget.edges_per_injected == 5)
    if stated.pop("edges_per_injected", None) is not None and budget.inject_nodes:
        assert seal(draft, file)
        assert "is not how a budget is written" in verify(file).reasons[0]
