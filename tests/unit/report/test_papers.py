"""Figures and tables for papers."""

import csv
import json
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from agnncert.report.figures import save_figures, save_tables
from agnncert.report.summary import AT_MOST, ReportContext
from tests.support.paths import PROJECT
from tests.support.synthetic import made_up_certificate, sampled_certificate


def test_figures_are_written_as_svg_and_pdf(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    certificate, degree = made_up_certificate(np.random.default_rng(0), "edge-centric/node", 30, 20, 3)
    context = ReportContext(
        truth=certificate.label, degree=degree, mlp=0.7, undefended=0.8, attacked=[(0, 1.0), (3, 0.9)]
    )
    written = save_figures(certificate, tmp_path, context)
    assert [path.name for path in written] == [
        "certified_accuracy.svg",
        "certified_accuracy.pdf",
        "certified_recall.svg",
        "certified_recall.pdf",
        "certified_accuracy_over_degree.svg",
        "certified_accuracy_over_degree.pdf",
    ]
    again = save_figures(certificate, tmp_path / "again", context)
    for one, other in zip(written, again, strict=True):
        assert one.read_bytes() == other.read_bytes()
        assert one.read_bytes()[:5] in (b"<?xml", b"%PDF-")


def test_pictures_have_a_role_a_title_and_a_description_for_those_who_do_not_see_them(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    certificate, degree = made_up_certificate(np.random.default_rng(0), "edge-centric/node", 30, 20, 3)
    names = ["<b>", "b & c", "d"]
    context = ReportContext(truth=certificate.label, degree=degree, mlp=0.7, class_names=names)
    pictures = [path for path in save_figures(certificate, tmp_path, context) if path.suffix == ".svg"]
    for path in [*pictures, *(PROJECT / "docs").rglob("*.svg")]:
        root = ElementTree.parse(path).getroot()
        assert root.get("role") == "img", path.name
        title, *_ = (element for element in root if element.tag.endswith("}title"))
        assert title.text, path.name
    spoken = [ElementTree.parse(path).getroot().findtext("{*}desc") or "" for path in pictures]
    assert "MLP, no graph: 70.0 %" in spoken[0]
    assert all(name in spoken[1] for name in names)


def test_an_envelope_and_what_is_possible_are_in_figures_and_tables(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    certificate, _ = made_up_certificate(np.random.default_rng(0), "edge-centric/graph", 30, 20, 3)
    curve = [(0, 0.9), (2, 0.6)]
    context = ReportContext(truth=certificate.label, size_only=curve, possible={f"{AT_MOST} (edges)": curve})
    drawn = save_figures(certificate, tmp_path, context)[0].read_text("utf-8")
    name = "at most possible from node types (edges)"
    assert ">size alone (envelope)</text>" in drawn
    assert f">{name}</text>" in drawn
    assert name in save_tables(certificate, tmp_path, context)[1].read_text("utf-8")


def test_without_degrees_there_is_one_figure(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    certificate = sampled_certificate(np.random.default_rng(1), 10)
    assert len(save_figures(certificate, tmp_path)) == 2


def test_tables_hold_every_size_and_every_target(tmp_path: Path) -> None:
    certificate, degree = made_up_certificate(np.random.default_rng(2), "node-centric/node", 30, 20, 3)
    truth = np.arange(30) % 3
    curve, latex, targets, *_ = save_tables(certificate, tmp_path, ReportContext(truth=truth, degree=degree, mlp=0.7))
    with curve.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            expected = ((certificate.label == truth) & (certificate.radius >= int(row["size"]))).mean()
            assert float(row["certified_accuracy"]) == expected
    with targets.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [int(row["radius"]) for row in rows] == certificate.radius.tolist()
    assert [[int(row[f"votes_{k}"]) for k in range(3)] for row in rows] == certificate.counts.tolist()
    text = latex.read_text("utf-8")
    assert text.count(r"\\") == text.count("\n") - 5
    assert r"70.0~\%" in text


def test_tables_hold_every_class(tmp_path: Path) -> None:
    certificate, _ = made_up_certificate(np.random.default_rng(2), "node-centric/node", 30, 20, 3)
    truth = np.arange(30) % 3
    context = ReportContext(truth=truth, class_names=["good", "bad", "=odd"])
    *_, as_csv, as_json, latex = save_tables(certificate, tmp_path, context)
    with as_csv.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["name"] for row in rows} == {"good", "bad", "'=odd"}
    for row, record in zip(rows, json.loads(as_json.read_text("utf-8")), strict=True):
        of_class, holds = truth == int(row["class"]), certificate.radius >= int(row["size"])
        kept = (certificate.label == truth) & holds & of_class
        assert float(row["recall"]) == record["recall"] == kept.sum() / of_class.sum()
        open_to = ~of_class & certificate.possible(int(row["size"]))[:, int(row["class"])]
        assert float(row["false_positive_rate"]) == open_to.sum() / 20
    assert latex.read_text("utf-8").startswith("\\begin{tabular}{lrr")
    assert "\\toprule" in latex.read_text("utf-8")


def test_strange_ids_survive_the_tables(tmp_path: Path) -> None:
    ids = ['a,"b"\nc', "=1+1", "ü", "a\rb", "a\r\n", "a", "a\0", "007", "", 2**63, -(2**200), 7]
    size = len(ids)
    certificate, _ = made_up_certificate(np.random.default_rng(3), "edge-centric/node", size, 10, 3, target=ids)
    *_, targets = save_tables(certificate, tmp_path)
    with targets.open(encoding="utf-8", newline="") as file:
        found = [row["target"] for row in csv.DictReader(file)]
    assert found == ["'=1+1" if name == "=1+1" else str(name) for name in ids]  # no spreadsheet runs it
