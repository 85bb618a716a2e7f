"""What commands tell people to type next can be typed as it stands."""

import shlex
from collections import defaultdict
from pathlib import Path

import pytest

import agnncert as ac
from agnncert.cli.folder import RunFolder, toml_text
from agnncert.errors import DatasetError


def hint(text: str, word: str) -> list[str]:
    """The last command that a text names with this word."""
    return shlex.split(text[text.rindex(f"agnncert {word} ") :].splitlines()[0])


def test_the_next_command_names_the_folder_of_datasets(agnncert, place) -> None:
    Path("sets").mkdir()
    fast = ("--epochs", 1, "--groups", 4, "--no-references", "--model", "gcn")
    trained = agnncert("train", "digits-knn", *fast, "--root", "sets", "--out", "a run")
    assert trained.status == 0, trained.err
    following = hint(trained.out, "certify")
    assert following[:3] == ["agnncert", "certify", "a run"]
    assert following[3:] == ["--root", "sets"]
    certified = agnncert(*following[1:])
    assert certified.status == 0, certified.err
    check = hint(certified.out, "verify")
    assert check[2:] == ["a run", "--root", "sets"]
    assert agnncert(*check[1:]).status == 0
    assert "agnncert verify &#39;a run&#39; --root sets" in Path("a run/report.html").read_text("utf-8")


def test_a_folder_that_a_stranger_wrote_puts_no_command_into_a_hint(tmp_path) -> None:
    (tmp_path / "settings.toml").write_text(toml_text({"train": {"root": "x; rm -rf ~\x1b[2J"}}), "utf-8")
    assert RunFolder(tmp_path).options == r" --root 'x; rm -rf ~\x1b[2J'"


@pytest.mark.parametrize("kind", ["nodes", "edges"])
def test_a_missing_table_names_the_setting_for_another_file(kind, agnncert, place) -> None:
    Path(f"tables/{kind}.csv").rename("tables/payments.csv")
    with pytest.raises(DatasetError, match=rf"{kind}=…; in commands --set {kind}=FILE"):
        ac.load_tables("tables")
    refused = agnncert("train", "tables", "--model", "gcn")
    assert refused.status == 2
    assert f"--set {kind}=FILE" in refused.err
    mended = agnncert(
        "train", "tables", "--model", "gcn", "--epochs", 1, "--groups", 3, "--no-references", "--out", "run",
        "--set", f"{kind}=tables/payments.csv",
    )  # fmt: skip
    assert mended.status == 0, mended.err


def test_words_of_the_domain_are_set_once_and_used_by_every_later_command(agnncert, place) -> None:
    fast = ("--epochs", 1, "--groups", 4, "--no-references", "--model", "gcn", "--out", "run")
    words = ("--set", "words.edge=payment", "--set", "words.node=account")
    assert agnncert("train", "tables", *fast, *words).status == 0
    certified = agnncert("certify", "run")
    assert certified.status == 0, certified.err
    shown = agnncert("show", "run").out
    said = [line for line in shown.splitlines() if "when an attacker" in line or line.startswith("Without an attack")]
    assert said
    assert not any(" edges" in line or " nodes" in line for line in said)
    assert agnncert("train", "tables", *fast, "--set", "words.vote=ballot").status == 2


def test_a_feature_that_counts_contacts_is_named_before_a_model_is_trained(agnncert, place) -> None:
    partners: dict[str, set[str]] = defaultdict(set)
    for line in Path("tables/edges.csv").read_text(encoding="utf-8").splitlines()[1:]:
        one, other = line.split(",")
        partners[one].add(other)
        partners[other].add(one)
    first, *rows = Path("tables/nodes.csv").read_text(encoding="utf-8").splitlines()
    rows = [f"{row},{3 * len(partners[row.partition(',')[0]]) + 1}" for row in rows]
    Path("tables/nodes.csv").write_text("\n".join([f"{first},contacts", *rows]) + "\n", encoding="utf-8")
    words = ("train", "tables", "--epochs", 1, "--no-references")
    trained = agnncert(*words, "--set", "encode=auto", "--out", "counting")
    assert trained.status == 0, trained.err
    assert 'warning: "contacts" (column 2) of the features follows the number of edges' in trained.out
    assert "follows the number of edges" in agnncert("certify", "counting").err
    assert "warning: column 2 of the features follows" in agnncert(*words, "--out", "plain").out
    without = agnncert(*words, "--set", "feature=a,b", "--out", "without")
    assert "of the features" not in without.out
    assert agnncert("certify", "without").status == 0
