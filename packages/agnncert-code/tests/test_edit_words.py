"""A certificate of functions is read in edited statements; other data keeps its words."""

import numpy as np
import pytest

import agnncert as ac
import agnncert_code
from agnncert.report.charts import unit_table
from agnncert.report.explorer import controls, explorer_meta
from agnncert.report.page import render
from agnncert.report.summary import ReportContext, summarise
from agnncert.report.text import headline
from agnncert_code.detector import Detector
from agnncert_code.edit_words import edit_unit
from agnncert_code.scanner import function_graphs
from tests.support.scanned import WordCount, function


@pytest.fixture(scope="module")
def certificate():
    division = ac.NodeCentric(60)
    functions = [agnncert_code.functions(function(k, risky=bool(k % 2)))[0] for k in range(20)]
    return ac.certify(WordCount(), function_graphs(Detector(WordCount(), division), functions), division)


def context(certificate, **known):
    return ReportContext(unit=edit_unit(certificate), **known)


def test_the_table_says_what_the_certificate_withstands(certificate):
    table = unit_table(summarise(certificate, context(certificate)))
    assert table["names"] == ["edited", "inserted", "deleted"]
    for size, *cells in table["rows"]:
        for kind, cell in zip(("replaced", "inserted", "deleted"), cells, strict=True):
            share = certificate.holds_against(agnncert_code.edits(**{kind: int(size)})).mean()
            assert cell == f"{100 * share:.1f}\u00a0%"
    assert len(table["rows"]) >= 3


def test_the_headline_speaks_of_statements_and_of_nodes_elsewhere(certificate):
    words = headline(summarise(certificate, context(certificate)))
    count = int(words.split()[-2]) if words.endswith("statements") else 1
    share = certificate.holds_against(agnncert_code.edits(replaced=count)).mean()
    assert f"{100 * share:.1f}\u00a0%" in words
    plain = summarise(certificate, ReportContext())
    assert "statement" not in headline(plain)
    assert unit_table(plain) == {}


def test_the_explorer_offers_edits(certificate):
    summary = summarise(certificate, context(certificate))
    presets = {preset["name"]: preset for preset in explorer_meta(summary, certificate.evidence)["presets"]}
    wanted = presets["Three edited statements"]
    budget = ac.Budget(**wanted["budget"], **dict.fromkeys(wanted["unlimited"], float("inf")))
    assert budget == agnncert_code.edits(replaced=3)
    groups = controls("graph", edit_unit(certificate))
    names = {control["field"]: control["label"] for group in groups for control in group["controls"]}
    assert names["inject_nodes"].startswith("Statements inserted")
    fixed = edit_unit(certificate, flows=False).presets[1]
    assert fixed["unlimited"] == ["edges_per_injected"]


def test_the_page_has_the_table(certificate):
    assert "In edited statements" in render(summarise(certificate, context(certificate)))
    assert "In edited statements" not in render(summarise(certificate, ReportContext()))


def test_shares_are_of_the_functions_whose_class_is_known(certificate):
    truth = np.where(np.arange(20) < 10, certificate.label, -1)
    curve = summarise(certificate, context(certificate, truth=truth)).unit_curves["edited"]
    holds = certificate.holds_against(agnncert_code.edits(replaced=1))[:10]
    assert curve.at(1) == holds.mean()
