"""Label votes from the command line: a run like any other, without a model; what cannot be asked says why."""

import json
from pathlib import Path

import pytest

import agnncert as ac
from agnncert.cli import main

ALL = ("--set", "defence.candidates=all", "--set", "defence.num_labels=500")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("labels") / "run"
    for words in (
        ["train", "digits-knn", "--division", "labels", "--no-references", *ALL, "--out", str(folder)],
        ["certify", str(folder)],
    ):
        assert main(words) == 0
    return folder


def test_a_run_certifies_labels_and_its_file_verifies_with_data_and_model(agnncert, run) -> None:
    certificate = ac.load_certificate(run / "certificate.cert")
    assert certificate.claim.unit == "one training label that is flipped, added or removed"
    assert certificate.certified_accuracy(sizes=3) > 0.7
    verified = agnncert("verify", run, "--require", "data,model")
    assert verified.status == 0
    assert "computed again without any label" in verified.out


def test_show_answers_about_labels_and_says_what_is_not_covered(agnncert, run) -> None:
    answer = json.loads(agnncert("show", run, "--budget", "flip_labels=3", "--json").out)
    certificate = ac.load_certificate(run / "certificate.cert")
    assert answer["labels_that_hold"] == certificate.holds_against(ac.Budget(flip_labels=3)).sum()
    both = agnncert("show", run, "--budget", "flip_labels=1", "--budget", "add_edges=1")
    assert both.status == 2
    assert "labels and graph together" in " ".join(both.err.split())


def test_a_report_and_an_export_are_made_as_for_any_other_run(agnncert, run) -> None:
    assert agnncert("report", run).status == 0
    page = (run / "report.html").read_text(encoding="utf-8")
    assert "only training labels are attacked" in page
    assert agnncert("export", run).status == 0


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("attack", "RUN"), "cannot have its graph attacked, because"),
        (("explain", "RUN", "3"), "cannot explain a decision, because"),
        (("certify", "RUN", "--division", "node"), "the model was trained for label-votes"),
    ],
    ids=["attack", "explain", "another division"],
)
def test_what_it_cannot_do_is_said_in_one_sentence(agnncert, run, words, reason) -> None:
    answer = agnncert(*(run if word == "RUN" else word for word in words))
    assert answer.status == 2
    assert reason in " ".join(answer.err.split())


def test_training_refuses_settings_that_would_follow_from_labels(agnncert, place) -> None:
    refused = agnncert("train", "digits-knn", "--division", "labels", "--set", "defence.candidates=all", "--out", "x")
    assert refused.status == 2
    assert "must not follow from how many there are" in " ".join(refused.err.split())
    typo = agnncert("train", "digits-knn", "--division", "labels", "--set", "defence.rnak=3", "--out", "y")
    assert 'did you mean "rank"' in " ".join(typo.err.split())
