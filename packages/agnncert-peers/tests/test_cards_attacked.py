"""Forged and damaged cards: each of these passed, or stopped the check of the whole folder, before it was mended."""

import hashlib
import json
import lzma
from dataclasses import replace
from pathlib import Path

import pytest
import typer

import agnncert as ac
from agnncert.cli import run_app
from agnncert.cli.handover import redacted
from agnncert_peers.card_check import check_card, check_folder
from agnncert_peers.card_command import card
from agnncert_peers.card_command import cards as cards_command
from agnncert_peers.card_making import About, labels_of, make_cards, restated
from agnncert_peers.card_page import write_page
from agnncert_peers.cards import THREATS, read_card
from agnncert_peers.deletions import BiRS
from tests.support.labelled import labelled_graph

SIZES = (0, 1, 2)
ABOUT = About("votes", "digits-knn", 0, "", "20 per class", "20-per-class", "nobody, 2026")
APP = typer.Typer()
APP.command()(card)
APP.command("cards")(cards_command)


@pytest.fixture(scope="module")
def graph():
    return labelled_graph(num_nodes=60, noise=1.5)


@pytest.fixture(scope="module")
def model(graph):
    return ac.fit(ac.build_model("gcn", graph, hidden_channels=8), graph, ac.EdgeCentric(7), epochs=5)


def certificate_of(defence, graph, model, folder: Path) -> Path:
    file = folder / "graph.cert"
    ac.certify(model, graph, defence, graph.test_mask).save(file)
    return file


@pytest.fixture
def certificate(graph, model, tmp_path) -> Path:
    return certificate_of(ac.EdgeCentric(7), graph, model, tmp_path)


@pytest.fixture
def cards(certificate, tmp_path) -> Path:
    folder = tmp_path / "cards"
    make_cards(restated(certificate, tuple(THREATS), SIZES), ABOUT, folder, ("added edges",), SIZES)
    return folder


def only_card(folder: Path) -> Path:
    (file,) = folder.glob("*.json")
    return file


def rewrite(file: Path, change) -> None:
    stored = json.loads(file.read_text())
    change(stored)
    file.write_text(json.dumps(stored))


def put_evidence(folder: Path, content: bytes, **fields) -> None:
    """Replaces the evidence of the only card, with its digest."""
    file = only_card(folder)
    kept = folder / read_card(file).runs[0].file
    kept.write_bytes(lzma.compress(content))
    rewrite(file, lambda stored: stored["runs"][0].update(sha256=hashlib.sha256(content).hexdigest(), **fields))


def test_the_cards_are_right_before_they_are_attacked(cards):
    assert check_card(only_card(cards)).status == "derived again"


def other_settings(stored):
    stored["settings"] = "node-centric(T=7, hash=md5, key=u64le)"


def easier_split(stored):
    stored["split"] = ""


def harder_protocol(stored):
    stored["split"], stored["protocol"] = "", "20 per class"


def own_words(stored):
    stored["rederived"] = "checked by three experts"


def one_run_as_two(stored):
    stored["runs"].append({**stored["runs"][0], "seed": 1})


def no_target(stored):
    stored["runs"][0].update(targets=0)


def negative_seed(stored):
    stored["runs"][0]["seed"] = -1


def endless_seed(stored):
    stored["runs"][0]["seed"] = 10**400


def words_for_seconds(stored):
    stored["runs"][0]["seconds"] = {"training": "fast"}


def endless_seconds(stored):
    stored["runs"][0]["seconds"] = {"training": 10**400}


def seconds_in_lists(stored):
    stored["runs"][0]["seconds"] = {"training": [1.0]}


def guarantee_of_ones_own(stored):
    stored["guarantee"] = "absolute"
    stored["runs"][0].update(file=None)


def digest_of_ones_own(stored):
    stored["runs"][0].update(file=None, sha256="see supplement")


FORGERIES = {
    other_settings: "the settings are not those of the certificate",
    easier_split: "20 per class",
    harder_protocol: "20 per class",
    own_words: "rederived",
    one_run_as_two: "the same evidence",
    no_target: "targets",
    negative_seed: "seed",
    endless_seed: "seed",
    words_for_seconds: "seconds",
    endless_seconds: "seconds",
    seconds_in_lists: "seconds",
    guarantee_of_ones_own: "guarantee",
    digest_of_ones_own: "sha256",
}


@pytest.mark.parametrize("forgery", FORGERIES, ids=lambda forgery: forgery.__name__)
def test_a_forged_card_is_wrong_and_says_why(cards, forgery):
    rewrite(only_card(cards), forgery)
    verdict = check_card(only_card(cards))
    assert verdict.status == "wrong"
    assert FORGERIES[forgery] in " ".join(verdict.wrong)


@pytest.mark.parametrize("forgery", FORGERIES, ids=lambda forgery: forgery.__name__)
def test_a_forged_card_stops_neither_the_check_nor_the_page(cards, forgery, tmp_path):
    rewrite(only_card(cards), forgery)
    assert [verdict.status for verdict in check_folder(cards, root=tmp_path)] == ["wrong"]
    assert "checked by three experts" not in write_page(cards, tmp_path / "page.html").read_text("utf-8")


def test_a_name_that_stands_twice_is_refused(cards):
    file = only_card(cards)
    file.write_text(file.read_text().replace('"claimed": [', '"claimed": [1, 1, 1],\n "claimed": [', 1))
    assert "stands twice" in check_card(file).wrong[0]


def test_numbers_of_a_test_that_is_unsound_are_no_result(graph, model, tmp_path):
    unsound = BiRS(0.4, 0.5, test="legacy-unsound", samples=150, selection=10)
    file = certificate_of(unsound, graph, model, tmp_path)
    with pytest.raises(ac.errors.CertificateError, match="unsound"):
        make_cards(restated(file, tuple(THREATS), SIZES), ABOUT, tmp_path / "cards", ("injected nodes",), SIZES)


def test_the_certificate_of_an_unsound_test_under_a_card_is_caught(graph, model, tmp_path):
    folder = tmp_path / "cards"
    sound, unsound = (BiRS(0.4, 0.5, test=test, samples=150, selection=10) for test in ("B2", "legacy-unsound"))
    content = restated(certificate_of(sound, graph, model, tmp_path), tuple(THREATS), SIZES)
    make_cards(content, replace(ABOUT, control=True), folder, ("injected nodes",), SIZES)
    assert check_card(only_card(folder)).status == "derived again"
    put_evidence(folder, restated(certificate_of(unsound, graph, model, tmp_path), tuple(THREATS), SIZES))
    assert "unsound" in check_card(only_card(folder)).wrong[0]


def test_cards_of_random_samples_are_derived_again_and_their_counts_cannot_be_traded(graph, model, tmp_path):
    folder = tmp_path / "cards"
    defence = BiRS(0.4, 0.5, samples=150, selection=10)
    content = restated(certificate_of(defence, graph, model, tmp_path), tuple(THREATS), SIZES)
    about = replace(ABOUT, control=True, settings=str(defence))
    make_cards(content, about, folder, ("injected nodes",), SIZES)
    assert check_card(only_card(folder)).status == "derived again"
    rewrite(only_card(folder), lambda stored: stored.update(settings=str(replace(defence, p_edge=0.9))))
    assert "the settings are not those of the certificate" in check_card(only_card(folder)).wrong[0]


def test_a_card_whose_split_is_not_that_of_its_protocol_is_not_made(certificate, tmp_path):
    content = restated(certificate, tuple(THREATS), SIZES)
    with pytest.raises(ac.errors.SettingsError, match="has the split"):
        make_cards(content, replace(ABOUT, split=""), tmp_path / "cards", ("added edges",), SIZES)


def test_a_redacted_form_is_no_evidence(cards, certificate):
    content = json.dumps(redacted(ac.load_certificate(certificate), certificate)).encode()
    put_evidence(cards, content)
    assert check_card(only_card(cards)).status == "wrong"
    put_evidence(cards, content, evidence="labels")
    assert check_card(only_card(cards)).status == "wrong"


UNKNOWN = labels_of([0, 1, 2], [-1, -1, -1], [-1, -1, -1])
LABELS = {
    "nobody knows the true classes": UNKNOWN,
    "fractions": b'{"target": [0, 1], "label": [0.2, 0.9], "truth": [0, 0]}',
    "answers": b'{"target": [0, 1], "label": [true, true], "truth": [1, 1]}',
    "tables": b'{"target": [[0], [1]], "label": [[0], [0]], "truth": [[0], [0]]}',
    "endless": b'{"target": [0, 1], "label": [0, 1e400], "truth": [0, 0]}',
    "beyond": b'{"target": [0, 1], "label": [0, %d], "truth": [0, 0]}' % 10**400,
    "nested": b"[" * 100_000,
    "no object": b"[]",
    "nothing": b'{"target": [], "label": [], "truth": []}',
}


@pytest.mark.parametrize("content", LABELS.values(), ids=LABELS)
def test_labels_that_are_none_are_refused(cards, content):
    put_evidence(cards, content, evidence="labels", targets=2, certified=[1.0, 1.0, 1.0])
    rewrite(only_card(cards), lambda stored: stored.update(guarantee="none", claimed=[1.0, 1.0, 1.0]))
    assert [verdict.status for verdict in check_folder(cards)] == ["wrong"]


def test_unknown_true_classes_do_not_count_as_right(cards):
    put_evidence(cards, UNKNOWN, evidence="labels", targets=3, certified=[1.0, 1.0, 1.0])
    rewrite(only_card(cards), lambda stored: stored.update(guarantee="none", claimed=[1.0, 1.0, 1.0]))
    assert "true class" in check_card(only_card(cards)).wrong[0]


def test_the_command_says_what_it_did_not_compare(cards, capsys):
    assert run_app(APP, ["cards", "check", str(cards)], "agnncert") == 0
    assert "were not compared with the datasets: pass --root" in capsys.readouterr().out
