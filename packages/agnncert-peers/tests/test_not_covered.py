"""What nothing is proved about has a dash in every table, and null in JSON: 0.0 would be a measurement."""

import csv
import io
import json
import re

import pytest
import torch

import agnncert as ac
from agnncert.certificates.budget import Budget
from agnncert_peers.comparison import DASH
from agnncert_peers.deletions import BiRS
from agnncert_peers.flips import SparseRS
from agnncert_peers.gnncert import GNNCertE
from tests.support.labelled import labelled_graph

QUICK = {
    "fit": {"epochs": 4, "evaluate_every": 2},
    "model_args": {"hidden_channels": 8},
    "sampling": {"selection": 10, "samples": 150},
}
NAME = "bi-rs(p_edge=0.4, p_node=0.5)"


@pytest.fixture(scope="module")
def data():
    return labelled_graph(num_nodes=60, noise=1.5, dtype=torch.float32)


@pytest.fixture(scope="module")
def comparison(data):
    return ac.compare(data, [ac.EdgeCentric(9), BiRS(0.4, 0.5)], against="edges", sizes=[0, 1, 3], **QUICK)


def line_of(table, name):
    return next(line for line in table.splitlines() if name in line)


def test_rows_have_none_where_nothing_is_proved_and_say_why(comparison):
    row = comparison.row(NAME)
    assert row["certified"][0] > 0
    assert row["certified"][1:] == row["balanced"][1:] == row["recall"][1:] == row["precision"][1:] == [None, None]
    assert row["not_covered"] == "nothing is proved about edges added or deleted"
    covered = comparison.row("edge-centric(T=9)")
    assert None not in covered["certified"]
    assert covered["not_covered"] == ""


@pytest.mark.parametrize("format", ["text", "markdown", "latex"])
def test_tables_have_a_dash_and_no_zero(comparison, format):
    dash = "--" if format == "latex" else DASH
    line = line_of(comparison.table(format), "bi-rs")
    assert line.count(dash) == 2
    assert not re.search(r"\b0\.0\b", line)
    assert "*" not in line
    assert dash not in line_of(comparison.table(format), "edge-centric")


def test_a_footnote_explains_the_dash_in_every_format(comparison, tmp_path):
    said = "nothing is proved about edges added or deleted: undefended, boosted trees on own features and neighbourhood aggregates, bi-rs"
    assert f"{DASH} {said}" in str(comparison)
    assert f"-- {said}" in comparison.table("latex")
    assert said in comparison._repr_html_()
    files = {path.suffix: path.read_text("utf-8") for path in comparison.save(tmp_path) if path.suffix != ".pdf"}
    assert f"- {DASH} {said}" in files[".md"]
    assert f"-- {said}" in files[".tex"]


def test_json_has_null_and_the_reason(comparison, tmp_path):
    comparison.save(tmp_path)
    stored = json.loads((tmp_path / "comparison.json").read_text())
    row = next(row for row in stored["rows"] if row["defence"] == NAME)
    assert row["certified"][1:] == [None, None]
    assert row["not_covered"] == "nothing is proved about edges added or deleted"


def test_csv_has_empty_cells(comparison):
    rows = csv.DictReader(io.StringIO(comparison.table("csv")))
    cells = next(row for row in rows if row["defence"] == NAME)
    assert cells["certified_1"] == cells["certified_3"] == ""
    assert float(cells["certified_0"]) > 0


def test_a_notebook_shows_the_dash(comparison):
    page = comparison._repr_html_()
    assert f"<td>{DASH}</td>" in page
    assert page.count("<tr>") == len(comparison.rows) + 1


def test_what_is_not_covered_is_not_called_below_the_majority_class(comparison):
    text = str(comparison)
    assert f"{NAME}: nothing is proved about edges added or deleted." in text
    assert f"{NAME}: below the majority class" not in text


def test_a_figure_has_no_point_where_nothing_is_proved(comparison, monkeypatch, tmp_path):
    drawn = []

    def keep(panels, path, *rest, **how):
        drawn.extend(panels[0].curves)
        return path

    monkeypatch.setattr("agnncert_peers.comparison.draw_panels", keep)
    comparison.figure(tmp_path / "it.svg")
    curve = next(curve for curve in drawn if curve.label.startswith("bi-rs"))
    assert list(curve.sizes) == [0]
    assert list(next(curve for curve in drawn if curve.label.startswith("edge")).sizes) == [0, 1, 3]


EVERYTHING = (
    Budget(add_edges=1),
    Budget(delete_edges=1),
    Budget(inject_nodes=1, edges_per_injected=2),
    Budget(change_features=1),
    Budget(target_features=True),
)


@pytest.mark.parametrize(
    ("defence", "covered"),
    [
        (ac.EdgeCentric(9), [True, True, True, True, False]),
        (GNNCertE(9), [True, True, False, False, False]),
        (ac.PerNeighbour(), [True, True, True, True, False]),
        (BiRS(0.4, 0.5), [False, False, True, False, False]),
        (SparseRS(0.01, 0.3), [True, True, False, False, False]),
        (ac.StackedVotes(epochs=2), [True, True, True, True, False]),
    ],
    ids=str,
)
def test_evidence_knows_what_it_covers_and_nothing_else_holds(data, defence, covered):
    model = ac.fit("gcn", data, defence, epochs=2)
    certificate = ac.certify(model, data, defence, data.test_mask)
    assert [certificate.evidence.covers(budget) for budget in EVERYTHING] == covered
    assert certificate.evidence.covers(Budget())
    for budget, is_covered in zip(EVERYTHING, covered, strict=True):
        if not is_covered:
            assert not certificate.holds_against(budget).any()
