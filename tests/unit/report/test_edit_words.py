"""A certificate of functions is read in edited statements; other data keeps its words."""

import numpy as np
import pytest

import agnncert as ac
from agnncert.report.build import render
from agnncert.report.edit_words import edit_presets, edit_rows, edits_table
from agnncert.report.explorer import controls, explorer_meta
from agnncert.report.summary import ReportContext, summarise
from agnncert.report.words import headline
from agnncert.studies.detector import Detector
from agnncert.studies.scan import function_graphs

from ...support.scanned import WordCount, function


@pytest.fixture(scope="module")
def certificate():
    division = ac.NodeCentric(60)
    functions = [ac.code.functions(function(k, risky=bool(k % 2)))[0] for k in range(20)]
    return ac.certify(WordCount(), function_graphs(Detector(WordCount(), division), functions), division)


def test_the_table_says_what_the_certificate_withstands(certificate):
    table = edits_table(summarise(certificate, ReportContext(statements="flow")))
    assert table["names"] == ["edited", "inserted", "deleted"]
    for size, *cells in table["rows"]:
        for kind, cell in zip(("replaced", "inserted", "deleted"), cells, strict=True):
            share = certificate.holds_against(ac.code.edits(**{kind: int(size)})).mean()
            assert cell == f"{100 * share:.1f}\u00a0%"
    assert len(table["rows"]) >= 3


def test_the_headline_speaks_of_statements_and_of_nodes_elsewhere(certificate):
    words = headline(summarise(certificate, ReportContext(statements="flow")))
    count = int(words.split()[-2]) if words.endswith("statements") else 1
    share = certificate.holds_against(ac.code.edits(replaced=count)).mean()
    assert f"{100 * share:.1f}\u00a0%" in words
    plain = summarise(certificate, ReportContext())
    assert "statement" not in headline(plain)
    assert (edits_table(plain), edit_presets(plain), edit_rows(plain)) == ({}, [], [])


def test_the_explorer_offers_edits(certificate):
    summary = summarise(certificate, ReportContext(statements="flow"))
    presets = {preset["name"]: preset for preset in explorer_meta(summary, certificate.evidence)["presets"]}
    wanted = presets["Three edited statements"]
    budget = ac.Budget(**wanted["budget"], **dict.fromkeys(wanted["unlimited"], float("inf")))
    assert budget == ac.code.edits(replaced=3)
    names = {control["field"]: control["label"] for group in controls("graph", True) for control in group["controls"]}
    assert names["inject_nodes"].startswith("Statements inserted")
    fixed = edit_presets(summarise(certificate, ReportContext(statements="names")))[1]
    assert fixed["unlimited"] == ["edges_per_injected"]


def test_the_page_has_the_table(certificate):
    assert "In edited statements" in render(summarise(certificate, ReportContext(statements="flow")))
    assert "In edited statements" not in render(summarise(certificate, ReportContext()))


def test_shares_are_of_the_functions_whose_class_is_known(certificate):
    truth = np.where(np.arange(20) < 10, certificate.label, -1)
    curve = summarise(certificate, ReportContext(statements="flow", truth=truth)).edits["edited"]
    holds = certificate.holds_against(ac.code.edits(replaced=1))[:10]
    assert curve.at(1) == holds.mean()
