"""Sliders for votes about pairs in a real browser: they say what prover and verifier say."""

import json
from dataclasses import fields
from typing import Any

import numpy as np
import pytest

from agnncert.certificates.budget import COUNTS
from agnncert.pairs.claim import make_pair_claim
from agnncert.pairs.evidence import PairEvidence
from agnncert.proving.certificate import Certificate
from agnncert.report import page as build
from agnncert.report.summary import summarise
from agnncert.verifier import recount_pairs, recount_stacked
from formal.compare import random_pairs
from tests.e2e.browser.test_explorer import ASK_MANY, as_json, said_by_evidence
from tests.e2e.browser.test_stacked_explorer import asked_budget, source_of_page

pytestmark = pytest.mark.browser


def test_the_scripts_of_the_page_count_what_prover_and_verifier_count_about_pairs(blank_page: Any) -> None:
    rng = np.random.default_rng(0)
    cases, expected, held = [], [], []
    for rule in ("common", "both", "trusted") * 8:
        record = random_pairs(rng, f"pairs/{rule}", 15)
        evidence = PairEvidence(**{each.name: getattr(record, each.name) for each in fields(record)})
        claim = make_pair_claim(record, locality="construction")
        certificate = Certificate(claim, evidence, np.arange(evidence.num_targets))
        meta, data = build.page_data(summarise(certificate, None))
        budgets = [asked_budget(rng).but(target_features=False) for _ in range(16)]
        field = str(rng.choice(COUNTS))
        cases.append({"meta": json.dumps(meta), "data": data, "budgets": [as_json(b) for b in budgets], "field": field})
        said = [said_by_evidence(certificate, budget, field, turn) for turn, budget in enumerate(budgets)]
        expected.append((rule, field, budgets, said))
        tables = recount_stacked.tables_of(record)
        for budget, answer in zip(budgets, said, strict=True):
            verified = recount_stacked.holds(record, tables, recount_pairs.in_votes(record, budget))
            assert answer["holds"] == verified.astype(int).tolist()
            held.append(verified.mean())
    answers = blank_page.evaluate(ASK_MANY, [source_of_page(), cases])
    for (rule, field, budgets, library), scripts in zip(expected, answers, strict=True):
        for budget, page_says, library_says in zip(budgets, scripts, library, strict=True):
            assert page_says == library_says, (rule, field, budget)
    assert 0.1 < np.mean(held) < 0.9, "hardly anything held, or all: little was tested"
