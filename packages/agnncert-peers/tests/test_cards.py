"""Result cards: numbers are derived again from certificates, and forged ones are caught."""

import hashlib
import json
import lzma
import math
import tomllib
from dataclasses import replace
from pathlib import Path

import jsonschema
import numpy as np
import pytest
import torch
import typer

import agnncert as ac
from agnncert.certificates.budget import Budget
from agnncert.cli import main, run_app
from agnncert.errors import CertificateError, SettingsError
from agnncert_peers.card_check import Known, card_files, check_card, check_folder
from agnncert_peers.card_command import card
from agnncert_peers.card_command import cards as cards_command
from agnncert_peers.card_making import About, Stated, cards_of, labels_of, make_cards, restated, threats_of
from agnncert_peers.card_page import write_page
from agnncert_peers.cards import ON_REQUEST, SCHEMA, THREATS, budgets_of, read_card
from tests.support.paths import PROJECT

SIZES = (0, 1, 2)
APP = typer.Typer()
APP.command()(card)
APP.command("cards")(cards_command)
COMMITTED = PROJECT / "experiments" / "cards"


@pytest.fixture(scope="module")
def digits():
    return ac.load_dataset("digits-knn", split="20-per-class")


@pytest.fixture(scope="module")
def certificate(digits, tmp_path_factory) -> Path:
    file = tmp_path_factory.mktemp("certificate") / "digits.cert"
    model = ac.fit(ac.build_model("gcn", digits, hidden_channels=16), digits, ac.EdgeCentric(7), epochs=10, lr=0.05)
    ac.certify(model, digits, ac.EdgeCentric(7), digits.test_mask).save(file)
    return file


@pytest.fixture
def cards(digits, certificate, tmp_path) -> Path:
    """Cards of one defence and of one control without a proof."""
    about = About("votes", "digits-knn", 0, ac.dataset_digest(digits), "20 per class", "20-per-class", "nobody, 2026")
    make_cards(restated(certificate, tuple(THREATS), SIZES), about, tmp_path, sizes=SIZES)
    rows = digits.test_mask.nonzero().view(-1)
    plain = labels_of(rows.tolist(), (digits.y[rows] * (rows % 2)).tolist(), digits.y[rows].tolist())
    control = replace(about, defence="undefended", control=True)
    make_cards(plain, control, tmp_path, sizes=SIZES, kind="labels")
    return tmp_path


def run(words: list[str]) -> int:
    """Runs one of the two commands, as ``agnncert`` does, and returns its status."""
    return run_app(APP, words, "agnncert")


def test_the_package_offers_the_commands():
    stated = tomllib.loads((SCHEMA.parents[2] / "pyproject.toml").read_text())["project"]["entry-points"]
    own = stated["agnncert.commands"]
    assert (own["card"], own["cards"]) == ("agnncert_peers.card_command:card", "agnncert_peers.card_command:cards")


def card_of(folder: Path, threat: str, defence: str = "votes") -> Path:
    name = f"digits-knn_20-per-class_{threat.replace(' ', '-')}_{defence}.json"
    return folder / name


def rewrite(file: Path, change) -> None:
    stored = json.loads(file.read_text())
    change(stored)
    file.write_text(json.dumps(stored))


def test_a_card_claims_what_its_certificate_proves(cards, certificate, digits):
    found = ac.load_certificate(certificate)
    right = found.label == digits.y[digits.test_mask].numpy()
    assert len({read_card(card_of(cards, threat)).claimed for threat in ("edges", "features")}) == 2
    for threat in ("edges", "added edges", "features"):
        card = read_card(card_of(cards, threat))
        expected = [
            np.mean(right & np.all([found.holds_against(budget) for budget in budgets_of(threat, size)], axis=0))
            for size in SIZES
        ]
        assert card.claimed == pytest.approx(expected, abs=1e-5)
    assert {verdict.status for verdict in check_folder(cards)} == {"derived again"}


def test_any_changes_are_spent_in_every_way():
    for size in (1, 2, 3):
        ways = budgets_of("any changes", size)
        assert len(ways) == len(set(ways)) == math.comb(size + 4, 4)
        fields = ("add_edges", "delete_edges", "inject_nodes", "delete_nodes", "change_features")
        assert {sum(getattr(way, name) for name in fields) for way in ways} == {size}
        assert set(budgets_of("edges", size)) | set(budgets_of("nodes", size)) <= set(ways)


def test_threats_with_very_many_budgets_are_written_if_asked_for(certificate, digits, tmp_path):
    found = ac.load_certificate(certificate)
    assert set(threats_of(found)) & ON_REQUEST == set()
    about = About("votes", "digits-knn", 0, ac.dataset_digest(digits), "20 per class", "20-per-class", "nobody, 2026")
    wanted = ("edges", "any changes")
    files = make_cards(restated(certificate, wanted, SIZES), about, tmp_path, ("edges",), SIZES)
    claimed = read_card(files[0]).claimed
    assert claimed[1] > 0
    assert make_cards(restated(certificate, wanted, SIZES), about, tmp_path, ("any changes",), SIZES) == []
    assert {verdict.status for verdict in check_folder(tmp_path)} == {"derived again"}


def test_cards_have_the_form_of_the_schema(cards):
    schema = json.loads(SCHEMA.read_text())
    for file in cards.glob("*.json"):
        jsonschema.validate(json.loads(file.read_text()), schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**json.loads(file.read_text()), "threat": "everything"}, schema)


def raised(stored):
    stored["runs"][0]["certified"][1] = stored["claimed"][1] = round(stored["claimed"][1] + 0.01, 5)


def raised_mean(stored):
    stored["claimed"][2] = 0.99


def larger_size(stored):
    stored["sizes"][2] = 3


def other_threat(stored):
    stored["threat"] = "features"


def certain(stored):
    stored["guarantee"] = "probabilistic"


def fewer_targets(stored):
    stored["runs"][0]["targets"] -= 1


def other_evidence(stored):
    stored["runs"][0]["evidence"] = "labels"


def other_digest(stored):
    stored["runs"][0]["sha256"] = "0" * 64


def unknown_threat(stored):
    stored["threat"] = "everything"


def more_fields(stored):
    stored["remark"] = "trust me"


def no_numbers(stored):
    stored["claimed"][1] = "a lot"


def elsewhere(stored):
    stored["runs"][0]["file"] = "../outside.cert.xz"


FORGERIES = [
    raised, raised_mean, larger_size, certain, fewer_targets, other_evidence, other_digest, unknown_threat, more_fields,
    no_numbers,
]  # fmt: skip


@pytest.mark.parametrize("forgery", FORGERIES, ids=lambda forgery: forgery.__name__)
def test_a_forged_card_is_caught(cards, forgery):
    file = card_of(cards, "added edges")
    rewrite(file, forgery)
    verdict = check_card(file)
    assert verdict.status == "wrong"
    assert verdict.wrong


def test_numbers_of_another_threat_are_caught(cards):
    file = card_of(cards, "edges")
    rewrite(file, other_threat)
    assert "at size 1 the evidence proves" in check_card(file).wrong[0]


def test_evidence_outside_of_the_folder_is_not_read(cards, tmp_path):
    file = card_of(cards, "added edges")
    kept = file.parent / read_card(file).runs[0].file
    (tmp_path.parent / "outside.cert.xz").write_bytes(kept.read_bytes())
    rewrite(file, elsewhere)
    assert "outside the folder" in check_card(file).wrong[0]


def test_a_certificate_that_was_altered_is_caught_although_the_card_names_its_digest(cards):
    file = card_of(cards, "added edges")
    run = read_card(file).runs[0]
    content = bytearray(lzma.decompress((cards / run.file).read_bytes()))
    content[-200] ^= 1
    (cards / run.file).write_bytes(lzma.compress(bytes(content)))
    rewrite(file, lambda stored: stored["runs"][0].update(sha256=hashlib.sha256(content).hexdigest()))
    assert check_card(file).status == "wrong"


def test_packed_evidence_that_is_cut_short_is_caught(cards):
    file = card_of(cards, "added edges")
    kept = cards / read_card(file).runs[0].file
    kept.write_bytes(kept.read_bytes()[:-20])
    assert "cut short" in check_card(file).wrong[0]


def test_a_card_without_its_certificate_is_not_derived_again(cards, capsys):
    file = card_of(cards, "added edges")
    (cards / read_card(file).runs[0].file).unlink()
    assert check_card(file).status == "not derived again"
    assert run(["cards", "check", str(cards)]) == 3
    assert run(["cards", "check", str(cards), "--partial"]) == 0
    assert "is not in this folder" in capsys.readouterr().out


def test_a_card_says_that_its_certificate_was_not_kept(cards, capsys):
    file = card_of(cards, "added edges")
    rewrite(file, lambda stored: stored["runs"][0].update(sha256=None, file=None))
    assert check_card(file).status == "not derived again"
    assert run(["cards", "check", str(cards), "--partial"]) == 0
    assert "was not kept, so nobody can derive these numbers again" in capsys.readouterr().out


def test_a_file_without_its_digest_is_refused(cards):
    file = card_of(cards, "added edges")
    rewrite(file, lambda stored: stored["runs"][0].update(sha256=None))
    assert "without its digest" in check_card(file).wrong[0]


def test_a_stored_card_names_no_digest_of_a_file_that_nobody_has():
    """Certificates that were too large to be kept were of an earlier format, so their digests say nothing now."""
    stored = [run for file in card_files(COMMITTED) for run in read_card(file).runs]
    assert len(stored) > 700
    assert all((run.file is None) == (run.sha256 is None) for run in stored)


def test_the_command_counts_and_refuses(cards, capsys):
    assert run(["cards", "check", str(cards)]) == 0
    assert "numbers are as their certificates prove" in capsys.readouterr().out
    rewrite(card_of(cards, "edges"), raised)
    assert run(["cards", "check", str(cards)]) == 1
    assert "the evidence proves" in capsys.readouterr().out


def test_targets_and_true_classes_are_compared_with_the_dataset(cards, tmp_path):
    assert {verdict.status for verdict in check_folder(cards, root=tmp_path)} == {"derived again"}
    rewrite(card_of(cards, "edges"), lambda stored: stored.update(split="", protocol="30 %"))
    wrong = check_card(card_of(cards, "edges"), root=tmp_path).wrong
    assert any("another digest" in reason for reason in wrong)
    assert any("not those of the test part" in reason for reason in wrong)


def test_labels_prove_nothing_unless_they_are_a_constant(cards, digits):
    assert read_card(card_of(cards, "edges", "undefended")).claimed[1:] == (0, 0)
    rewrite(card_of(cards, "edges", "undefended"), raised)
    assert check_card(card_of(cards, "edges", "undefended")).status == "wrong"
    rows = digits.test_mask.nonzero().view(-1)
    constant = labels_of(rows.tolist(), [3] * len(rows), digits.y[rows].tolist())
    about = About("constant", "digits-knn", 0, "", "20 per class", "20-per-class", control=True)
    make_cards(constant, about, cards, sizes=SIZES, kind="labels")
    assert len(set(read_card(card_of(cards, "edges", "constant")).claimed)) == 1


def test_seeds_are_added_to_a_card_and_its_claim_is_their_mean(cards, certificate, digits):
    about = About("votes", "digits-knn", 1, ac.dataset_digest(digits), "20 per class", "20-per-class")
    content = restated(certificate, tuple(THREATS), SIZES)
    make_cards(content, about, cards, sizes=SIZES)
    make_cards(content, about, cards, sizes=SIZES)
    card = read_card(card_of(cards, "edges"))
    assert [run.seed for run in card.runs] == [0, 1]
    assert card.claimed == pytest.approx(np.mean([run.certified for run in card.runs], axis=0), abs=1e-5)
    with pytest.raises(SettingsError, match="other sizes"):
        make_cards(restated(certificate, tuple(THREATS), (0, 1)), about, cards, sizes=(0, 1))


def test_two_cards_about_one_result_are_noticed(cards):
    file = card_of(cards, "edges")
    (cards / "zz-again.json").write_text(file.read_text())
    found = {verdict.file.name: verdict for verdict in check_folder(cards)}
    assert "same result" in found["zz-again.json"].wrong[0]


def test_large_evidence_is_named_by_its_digest_alone(cards, certificate, digits, tmp_path):
    about = About("votes", "digits-knn", 0, ac.dataset_digest(digits), "20 per class", "20-per-class")
    make_cards(restated(certificate, ("edges",), SIZES), about, tmp_path / "few", ("edges",), SIZES, largest=10)
    card = read_card(tmp_path / "few" / "digits-knn_20-per-class_edges_votes.json")
    assert card.runs[0].file is None
    assert not (tmp_path / "few" / "certificates").exists()


def test_cards_of_one_certificate_need_to_know_its_dataset(certificate, tmp_path):
    with pytest.raises(SettingsError, match="pass --data and --seed"):
        cards_of(certificate, tmp_path)
    with pytest.raises(SettingsError, match=r"no \.cert file"):
        cards_of(tmp_path, tmp_path)
    with pytest.raises(SettingsError, match="no cards"):
        list(check_folder(tmp_path))


def test_a_run_and_a_certificate_become_cards(certificate, tmp_path, capsys):
    told = ["--data", "digits-knn", "--seed", "0", "--split", "20-per-class", "--defence", "mine"]
    assert run(["card", str(certificate), "--out", str(tmp_path / "cards"), *told]) == 0
    assert run(["cards", "check", str(tmp_path / "cards")]) == 0
    assert "mine" in (capsys.readouterr().out)
    folder = str(tmp_path / "run")
    assert main(["train", "digits-knn", "--epochs", "3", "--groups", "10", "--no-references", "--out", folder]) == 0
    assert main(["certify", folder, "--no-report"]) == 0
    assert run(["card", folder, "--out", str(tmp_path / "cards"), "--sizes", "0,1"]) == 0
    own = read_card(next(file for file in (tmp_path / "cards").glob("*edges*node-centric*")))
    assert (own.dataset, own.protocol, own.guarantee) == ("digits-knn", "30 %", "deterministic")
    assert check_card(next((tmp_path / "cards").glob("*_edges_node-centric*")), root=tmp_path).status == "derived again"


def test_a_comparison_becomes_cards(tmp_path):
    torch.manual_seed(0)
    data = ac.load_dataset("digits-knn")
    ac.compare(
        data, [ac.NodeCentric(10)], sizes=[0, 1], fit={"epochs": 3}, references=False, folder=tmp_path / "certificates"
    )
    files = cards_of(tmp_path, tmp_path / "cards", Stated(dataset="digits-knn", seed=0), sizes=(0, 1))
    assert files
    assert all(check_card(file).status == "derived again" for file in files)
    assert read_card(files[0]).runs[0].seconds["training"] > 0


def test_the_page_shows_every_good_card_and_names_the_wrong_ones(cards, tmp_path):
    page = write_page(cards, tmp_path / "out" / "page.html").read_text()
    assert page.count('<tr class="is-') == len(list(cards.glob("*.json")))
    assert page.count('<tr class="is-ceiling"') == len(THREATS)
    assert "http://" not in page.replace("http://www.w3.org", "")
    assert "<link" not in page
    assert "src=" not in page.replace("src:url", "").replace("data-", "")
    rewrite(card_of(cards, "edges"), raised)
    rewrite(card_of(cards, "features"), lambda stored: stored.update(defence="<script>alert(1)</script>"))
    page = write_page(cards, tmp_path / "out" / "page.html").read_text()
    assert "1 cards are wrong, and are not shown" in page
    assert "<script>alert(1)" not in page


def test_a_file_that_is_no_card_is_named(tmp_path):
    for text in ("[]", "{", '{"format": "agnncert-card", "version": 1}', "9" * 5):
        (tmp_path / "odd.json").write_text(text)
        with pytest.raises(CertificateError, match=r"odd\.json"):
            read_card(tmp_path / "odd.json")
        assert check_card(tmp_path / "odd.json").status == "wrong"


def test_budgets_of_a_threat():
    assert budgets_of("injected nodes", 2) == [Budget(inject_nodes=2, edges_per_injected=5)]
    assert len(budgets_of("edges", 3)) == 4
    with pytest.raises(SettingsError, match="no threat is called"):
        budgets_of("edge", 1)


def test_committed_cards_have_the_form_of_the_schema_and_some_are_derived_again():
    schema = json.loads(SCHEMA.read_text())
    validator = jsonschema.validators.validator_for(schema)
    validator.check_schema(schema)
    files = sorted(COMMITTED.glob("*.json"))
    assert len(files) > 50
    for file in files:
        validator(schema).validate(json.loads(file.read_text()))
    known = Known()
    some = [file for file in files if all(run.file for run in read_card(file).runs)][::25]
    assert some
    for file in some:
        assert check_card(file, known=known).status == "derived again"
