"""What a notebook shows of our objects."""

import pytest
import torch

import agnncert as ac
from agnncert.notebook import framed, paragraph, table
from tests.support.neighbour_graphs import NodeListener, town


@pytest.fixture(scope="module")
def certificate() -> ac.Certificate:
    return ac.certify(NodeListener(), town(8), ac.NodeCentric(6))


def test_markup_in_texts_is_text() -> None:
    assert paragraph("<b>\n&") == "<p>&lt;b&gt;<br>&amp;</p>"
    assert table(["<i>"], [["<script>"]]) == (
        "<table><thead><tr><th>&lt;i&gt;</th></tr></thead><tbody><tr><td>&lt;script&gt;</td></tr></tbody></table>"
    )
    assert "mathjax_ignore" in framed("")


def test_a_verdict_shows_its_headline_and_everything_that_it_says(certificate) -> None:
    verdict = ac.verify(certificate)
    shown = verdict._repr_html_()
    head, *entries = str(verdict).split("\n")
    assert head in shown
    assert shown.count("<tr>") == len(entries)


def test_a_decision_shows_its_radius_and_what_it_withstands(certificate) -> None:
    decision = certificate[certificate.target[0]]
    shown = decision._repr_html_()
    assert f"<td>{decision.radius}</td>" in shown
    assert "<td>inject nodes</td>" in shown


def test_an_audit_shows_every_finding_with_its_remedy() -> None:
    class Mean(torch.nn.Module):
        def forward(self, x, edge_index):
            return x - x.mean(0)

    report = ac.audit(Mean().eval(), town(8), ac.NodeCentric(6))
    assert not report.ok
    shown = report._repr_html_()
    for finding in report.findings:
        assert finding.remedy.split(" (")[0] in shown
    good = ac.audit(NodeListener(), town(8), ac.NodeCentric(6))
    assert "fit for certification" in good._repr_html_()


def test_evidence_prints_in_one_line_without_its_arrays(certificate) -> None:
    shown = repr(certificate.evidence)
    assert "array" not in shown
    assert f"{certificate.num_targets:,} targets" in shown
    assert "node-centric/node" in shown


def test_an_explanation_shows_its_table_and_all_its_sentences() -> None:
    data = town(8)
    explained = ac.explain(NodeListener(), data, ac.NodeCentric(6), data.node_id[0])
    shown = explained._repr_html_()
    assert shown.count("<tr>") == 1 + len(explained.rows())
    for sentence in explained.sentences():
        assert paragraph(sentence)[3:-4] in shown


def test_an_attack_shows_its_summary_and_the_targets_whose_label_changed_first() -> None:
    data = town(20)
    certificate = ac.certify(NodeListener(), data, ac.NodeCentric(5))
    report = ac.attack(NodeListener(), data, ac.NodeCentric(5), budget=ac.Budget(add_edges=2), certificate=certificate)
    assert 0 < report.succeeded.sum() < len(report.results)
    shown = report._repr_html_()
    assert paragraph(str(report)) in shown
    assert f"{len(report.results) - 10} more targets" in shown
    rows = shown.split("<tr>")[2:]
    changed = [int(result.label_before != result.label_after) for result in report.results]
    assert len(rows) == 10
    for row, is_changed in zip(rows, sorted(changed, reverse=True), strict=False):
        cells = row.split("<td>")[1:]
        assert (cells[1] != cells[2]) == is_changed
    alone = ac.attack(NodeListener(), data, ac.NodeCentric(5), budget=ac.Budget(add_edges=2), targets=[0])
    assert "<td>–</td>" in alone._repr_html_()
