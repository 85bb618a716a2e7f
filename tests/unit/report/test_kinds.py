"""What a page says about a defence comes from its evidence, and is true of it, also for a kind that nobody knows."""

import html
import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from agnncert.certificates.budget import Budget
from agnncert.proving.certificate import Certificate, load_certificate
from agnncert.proving.words import Deed
from agnncert.report.charts import budget_table, degree_chart
from agnncert.report.figures import save_figures, save_tables
from agnncert.report.page import build_report
from agnncert.report.summary import ReportContext, Summary, summarise
from agnncert.report.text import beside, deed, headline_times, percent, structure_notes
from agnncert.stacked.evidence import StackedEvidence
from tests.support.paths import GOLDEN
from tests.support.synthetic import made_up_certificate, sampled_certificate
from tests.support.toys import TOY_UNIT, toy_certificate

STACKED = ("stacked-sum", "stacked-gated", "stacked-two-levels", "stacked-trusted-values")


def page_of(certificate: Certificate, folder: Path, **context: object) -> str:
    """The text of a page, without its scripts."""
    told = ReportContext(**context)  # type: ignore[arg-type]
    page = build_report(certificate, folder / "page.html", context=told).read_text("utf-8")
    body = page[page.index("<body>") : page.index("<script")]
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", body)).split())


def stacked(name: str, with_votes: bool = True) -> Certificate:
    certificate = load_certificate(GOLDEN / f"{name}.cert")
    if with_votes:
        return certificate
    evidence = certificate.evidence
    assert isinstance(evidence, StackedEvidence)
    silent = replace(evidence, gate=np.zeros_like(evidence.gate))
    return Certificate(certificate.claim, silent, certificate.target)


def test_a_kind_that_nobody_knows_gets_a_whole_page(tmp_path: Path) -> None:
    certificate = toy_certificate()
    truth = np.where(np.arange(30) < 5, 0, certificate.label)
    page = page_of(certificate, tmp_path, truth=truth, degree=np.full(30, 3), certificate_path="toy.cert")
    size = headline_times(summarise(certificate, ReportContext(truth=truth)))
    kept = float(((truth == certificate.label) & (certificate.radius >= size)).mean())
    assert f"At least {percent(kept, -1)} of 30".replace("\u00a0", " ") in page
    assert f"when an attacker reaches size {size} ({TOY_UNIT})" in page
    assert "Each label is decided by the defence toys." in page
    assert "certified defence" in page
    assert "labels and radii follow from the counts in it" in page
    assert "agnncert verify toy.cert --data DATA --model package.module:factory --weights FILE" in page
    assert "Counts: that of the label against that of the runner-up." in page
    for foreign in ("vote", "subgraph", "sample", "score", "elected", "recheck", "could delete all of them"):
        assert foreign not in page.lower(), foreign


def test_figures_and_tables_of_an_unknown_kind_are_written(tmp_path: Path) -> None:
    certificate = toy_certificate()
    context = ReportContext(truth=certificate.label, degree=np.full(30, 3))
    assert len(save_figures(certificate, tmp_path, context)) == 6
    files = {file.name: file.read_text() for file in save_tables(certificate, tmp_path, context)}
    assert files["targets.csv"].splitlines()[0] == "target,label,truth,degree,radius,votes_0,votes_1,votes_2"
    assert json.loads(files["classes.json"])[0]["recall"] == 1.0


def test_a_size_goes_into_a_unit_that_has_brackets() -> None:
    assert deed(summarise(toy_certificate(), None)) == Deed(
        f"reaches size 1 ({TOY_UNIT})", f"reaches size {{size}} ({TOY_UNIT})"
    )
    assert deed(summarise(toy_certificate(), None)).times(7) == f"reaches size 7 ({TOY_UNIT})"


@pytest.mark.parametrize("make", [toy_certificate, lambda: sampled_certificate(np.random.default_rng(0), 30)])
def test_budgets_without_an_explorer_are_those_of_the_library(make) -> None:
    certificate = make()
    truth = np.where(np.arange(certificate.num_targets) % 4, certificate.label, -1)
    truth[1] = (truth[1] + 1) % 3
    table = budget_table(summarise(certificate, ReportContext(truth=truth)))
    rows = {row[0]: row[1:] for row in table["rows"]}
    counted = truth == certificate.label
    for name, field in (("Edges added", "add_edges"), ("Nodes deleted", "delete_nodes")):
        for cell, amount in zip(rows[name], (1, 3, 10), strict=True):
            kept = (certificate.holds_against(Budget(**{field: amount})) & counted).sum() / (truth >= 0).sum()
            assert float(cell.removesuffix("\u00a0%")) == np.floor(1000 * kept + 1e-9) / 10
    assert rows["Its own features change"] == ["0.0\u00a0%", "–", "–"]


def test_a_page_with_an_explorer_has_no_table_of_budgets() -> None:
    certificate, _ = made_up_certificate(np.random.default_rng(0), "node-centric/node", 20, 20, 3)
    assert budget_table(summarise(certificate, None)) == {}
    nobody = toy_certificate(0)
    assert budget_table(summarise(nobody, None)) == {}


@pytest.mark.parametrize("name", STACKED)
def test_a_page_says_that_neighbours_vote_where_they_do(name: str, tmp_path: Path) -> None:
    page = page_of(stacked(name), tmp_path)
    assert "of one bounded vote for each" in page
    assert "How the votes are counted" in page
    assert "no vote in this model" not in page
    assert "subgraph" not in page.lower()
    assert ("the mean of one bounded vote" in page) == (name == "stacked-trusted-values")


@pytest.mark.parametrize("name", STACKED)
def test_a_page_says_that_edges_have_no_vote_where_votes_are_not_used(name: str, tmp_path: Path) -> None:
    certificate = stacked(name, with_votes=False)
    trusted = name == "stacked-trusted-values"
    summary = summarise(certificate, None)
    (said,) = (line for line in beside(summary) if "no vote in this model" in line)
    assert ("about a model without edges" in said) == (not trusted)
    assert ("no edge but the trusted ones" in said) == trusted
    page = page_of(certificate, tmp_path)
    assert said in page
    assert "bounded vote for each" not in page
    assert "The votes of" in page
    assert "have the factor 0" in page


def test_what_is_assumed_about_trusted_edges_is_read_first() -> None:
    for with_votes in (True, False):
        summary = summarise(stacked("stacked-trusted-values", with_votes), None)
        assert beside(summary)[0].startswith("Assumed: Edges that are marked as trusted")
        assert deed(summary).times(3).endswith("trusted edges apart")
        assert structure_notes(summary) == [], "votes along trusted edges are a part of the prior"


@pytest.mark.parametrize("name", ["stacked-sum", "stacked-two-levels"])
def test_stacked_labels_without_edges_are_those_of_targets_without_neighbours(name: str) -> None:
    certificate = stacked(name)
    record = certificate.evidence
    alone = replace(
        record,
        indptr=np.zeros_like(record.indptr),
        which=record.which[:0],
        targets_per_node=record.targets_per_node[:0],
    )
    labels = record.no_edge_labels()
    assert labels.tolist() == alone.label_and_radius()[0].tolist()
    assert (labels != certificate.label).any()
    same = f"{100 * (labels == certificate.label).mean():.1f}\u00a0%"
    assert structure_notes(summarise(certificate, None))[0].startswith(f"For {same} of the nodes the label is the one")


def test_stacked_means_without_edges_have_the_votes_of_the_pseudo_count() -> None:
    record = stacked("stacked-trusted-values").evidence
    classes = range(record.num_classes)
    pseudo_votes = tuple(record.pseudo // 2 * (k == 1) for k in classes)
    record = replace(record, trusted=-1, prior=np.zeros_like(record.prior), pseudo_votes=pseudo_votes)
    alone = replace(
        record,
        indptr=np.zeros_like(record.indptr),
        which=record.which[:0],
        targets_per_node=record.targets_per_node[:0],
    )
    assert set(record.no_edge_labels().tolist()) == {1}
    assert record.no_edge_labels().tolist() == alone.label_and_radius()[0].tolist()


def over_degree(certificate: Certificate) -> Summary:
    return summarise(certificate, ReportContext(degree=np.full(certificate.num_targets, 2)))


def test_only_where_a_step_deletes_an_edge_all_edges_may_be_gone_beyond_the_degree() -> None:
    edges, _ = made_up_certificate(np.random.default_rng(1), "edge-centric/node", 30, 40, 3)
    features, _ = made_up_certificate(np.random.default_rng(1), "gnncert-n/node", 30, 40, 3)
    assert degree_chart(over_degree(edges))["ceiling"]
    assert degree_chart(over_degree(stacked("stacked-sum")))["ceiling"]
    for other in (features, toy_certificate(), stacked("stacked-trusted-values", with_votes=False)):
        assert degree_chart(over_degree(other))["ceiling"] == ""


def test_samples_keep_their_words(tmp_path: Path) -> None:
    page = page_of(sampled_certificate(np.random.default_rng(1), 10), tmp_path, certificate_path="a.cert")
    assert "Each label is the most frequent prediction under random noise." in page
    assert "One target and its samples" in page
    assert "agnncert verify a.cert --data DATA --model package.module:factory --weights FILE --recheck 1 " in page
