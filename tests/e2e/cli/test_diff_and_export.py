"""What changed since last week, and one row per target for other programs, from the command line."""

import csv
import json
import shutil
from pathlib import Path

import pytest

import agnncert as ac
from agnncert.storage import read_sealed


@pytest.fixture
def later(agnncert, certified) -> Path:
    """The same run, certified with another threshold."""
    shutil.copytree(certified, "later")
    done = agnncert("certify", "later", "--prior", "dog=9", "--no-report")
    assert done.status == 0, done.err
    return Path("later")


def test_a_run_does_not_differ_from_itself(agnncert, certified) -> None:
    answer = agnncert("diff", certified, certified / "certificate.cert")
    assert answer.status == 0, answer.err
    assert "Nothing changed at size 1" in answer.out
    assert "Graph, model, threshold and defence are the same." in answer.out


def test_a_lost_certificate_ends_a_pipeline_and_a_page_lists_it(agnncert, certified, later) -> None:
    old, new = (ac.load_certificate(folder / "certificate.cert") for folder in (certified, later))
    answer = agnncert("diff", certified, later, "--json", "--page", "page.html")
    told = json.loads(answer.out)
    assert told["reasons"] == ["threshold"]
    expected = ac.diff(old, new)
    assert told["counts"] == expected.counts
    assert told["counts"]["label"] + told["counts"]["lost"] > 0
    assert answer.status == 1
    assert "What changed" in Path("page.html").read_text("utf-8")
    assert agnncert("diff", certified, later, "--fail-on", "nothing").status == 0
    assert agnncert("diff", certified, later, "--fail-on", "new,gone").status == 0
    assert agnncert("diff", certified, later, "--fail-on", "lots").status == 2


def test_a_budget_may_be_asked_for(agnncert, certified, later) -> None:
    answer = agnncert("diff", certified, later, "--budget", "inject_nodes=1", "--budget", "delete_edges=inf", "--json")
    assert json.loads(answer.out)["at"] == "Budget(delete_edges=inf, inject_nodes=1)"
    assert agnncert("diff", certified, later, "--budget", "spells=1").status == 2


def test_every_target_is_exported_with_its_run(agnncert, certified) -> None:
    certificate = ac.load_certificate(certified / "certificate.cert")
    answer = agnncert("export", certified)
    assert answer.status == 0, answer.err
    with (certified / "targets.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["id"] for row in rows] == [str(target) for target in certificate]
    assert [row["class_name"] for row in rows] == [("cat", "dog")[label] for label in certificate.label]
    digest = read_sealed(certified / "certificate.cert", "agnncert-certificate", 1)[0]["file_sha256"]
    for row, radius, label in zip(rows, certificate.radius, certificate.label, strict=True):
        assert (int(row["radius"]), int(row["label"])) == (radius, label)
        assert (row["run"], row["certificate_sha256"]) == (certified.resolve().name, digest)


@pytest.mark.parametrize("to", ["json", "parquet"])
def test_other_formats_have_the_same_rows(to, agnncert, certified) -> None:
    certificate = ac.load_certificate(certified / "certificate.cert")
    assert agnncert("export", certified / "certificate.cert", "--to", to, "--out", f"rows.{to}").status == 0
    if to == "json":
        rows = json.loads(Path("rows.json").read_text("utf-8"))
    else:
        pd = pytest.importorskip("pandas")
        rows = pd.read_parquet("rows.parquet").to_dict("records")
    assert [row["radius"] for row in rows] == certificate.radius.tolist()
    assert [row["margin"] for row in rows] == certificate.to_pandas()["margin"].tolist()


def test_an_unknown_format_is_met_with_the_known_ones(agnncert, certified) -> None:
    answer = agnncert("export", certified, "--to", "excel")
    assert answer.status == 2
    assert "csv" in answer.err


GOLDEN = Path(__file__).parents[2] / "soundness" / "golden" / "v1"


def exported(agnncert, name, to="csv"):
    answer = agnncert("export", GOLDEN / f"{name}.cert", "--to", to, "--out", f"rows.{to}")
    assert answer.status == 0, answer.err
    if to == "json":
        return json.loads(Path("rows.json").read_text(encoding="utf-8"))
    with Path("rows.csv").open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("to", ["csv", "json"])
@pytest.mark.parametrize("name", ["pairs-both", "pairs-common", "pairs-trusted"])
def test_pairs_are_exported_with_both_ids_and_new_edges(agnncert, place, name, to) -> None:
    certificate = ac.load_certificate(GOLDEN / f"{name}.cert")
    rows = exported(agnncert, name, to)
    assert [f"{row['source']} – {row['target']}" for row in rows] == [str(target) for target in certificate]
    assert [float(row["new_edges"]) for row in rows] == certificate.new_neighbours.tolist()
    assert "new_neighbours" not in rows[0]
    assert "structure_radius" in rows[0]


@pytest.mark.parametrize("name", ["labels-any", "labels-flips", "joint-any", "joint-flips", "isolated-node-views"])
def test_a_radius_about_training_data_says_so_and_is_no_radius_about_edges(agnncert, place, name) -> None:
    certificate = ac.load_certificate(GOLDEN / f"{name}.cert")
    rows = exported(agnncert, name)
    assert {row["unit"] for row in rows} == {certificate.claim.unit}
    assert "training" in certificate.claim.unit
    assert not {"structure_radius", "new_neighbours", "new_edges", "source"} & set(rows[0])


def test_a_radius_about_the_graph_says_what_it_counts(agnncert, place) -> None:
    file = sorted(GOLDEN.glob("stacked*.cert"))[0]
    rows = exported(agnncert, file.stem)
    assert {row["unit"] for row in rows} == {ac.load_certificate(file).claim.unit}
    assert "structure_radius" in rows[0]


@pytest.mark.parametrize("file", sorted(GOLDEN.glob("*.cert")), ids=lambda file: file.stem)
def test_an_exported_column_has_a_value_in_some_row(agnncert, place, file) -> None:
    for title, cells in _columns(exported(agnncert, file.stem)).items():
        may_fail = title in ("radius", "structure_radius") or title.startswith(("votes_", "score_"))
        assert may_fail or set(cells) - {"", "-1", "-1.0"}, title


def _columns(rows):
    return {title: [row[title] for row in rows] for title in rows[0]}
