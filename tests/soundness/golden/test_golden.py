"""Stored certificates of the format still verify, and still prove the same."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

from agnncert.certificates.budget import Budget, Prices
from agnncert.certificates.file import VERSION, read_contents
from agnncert.proving.certificate import load_certificate, usual_budgets
from agnncert.verdict import verify
from agnncert.verifier import recount_prices
from agnncert.verifier.kinds import checked
from tests.soundness.golden.examples import EXAMPLES, KEPT
from tests.soundness.golden.make import summary

HERE = Path(__file__).parent
BUDGETS = (
    Budget(add_edges=1),
    Budget(delete_edges=2),
    Budget(change_features=1),
    Budget(inject_nodes=1, edges_per_injected=1),
)
FILES = sorted(HERE.glob("v*/*.cert"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: f"{file.parent.name}/{file.stem}")
def test_an_example_certificate_still_verifies_and_proves_the_same(file):
    verdict = verify(file)
    assert verdict.holds, f"{verdict}\nIf only words changed before a release: python -m tests.soundness.golden.make"
    proved = json.loads((file.parent / "proved.json").read_text())[file.stem]
    certificate = load_certificate(file)
    assert summary(certificate) == proved
    free = KEPT[0] if certificate.evidence.kind == "append" else Budget()  # appended rows are free
    assert certificate.holds_against(free).tolist() == (certificate.radius >= 0).tolist()


@pytest.mark.parametrize("file", FILES, ids=lambda file: f"{file.parent.name}/{file.stem}")
def test_an_example_certificate_is_what_its_graph_and_model_give(file):
    example = EXAMPLES[file.stem]
    own = {"defence": example.division} if file.stem.startswith("custom") else {}
    verdict = verify(file, data=example.data(), model=example.model(), recheck=math.inf, **own)
    assert verdict.holds, verdict


@pytest.mark.parametrize("file", FILES, ids=lambda file: f"{file.parent.name}/{file.stem}")
def test_the_verifier_finds_the_same_possible_labels_in_an_example_certificate(file):
    certificate, contents = load_certificate(file), read_contents(file)
    for budget in (*usual_budgets(certificate.claim), *BUDGETS):
        possible = certificate.possible(budget)
        assert (checked(contents).possible(budget) == possible).all(), budget
        assert ((possible.sum(axis=1) == 1) == certificate.holds_against(budget)).all()


@pytest.mark.parametrize("file", FILES, ids=lambda file: f"{file.parent.name}/{file.stem}")
def test_no_attack_that_the_verifier_tries_is_cheaper_than_stated(file):
    certificate, contents = load_certificate(file), read_contents(file)
    for prices in (Prices(add_edges=1, delete_edges=2), Prices(change_features=2, inject_nodes=3)):
        again, stated = recount_prices.cheapest(contents, prices, tries=40), certificate.cheapest(prices)
        found = again < again[np.isfinite(again)].max(initial=0)  # of the dearest ones tries may have ended
        assert (stated <= again)[found].all()
        assert found.sum() == 0 or contents.kind != "votes" or (stated == again)[found].all()


def test_there_is_a_file_of_every_example():
    assert {file.parent.name for file in FILES} == {f"v{VERSION}"}
    assert {file.stem for file in FILES} == set(EXAMPLES)
