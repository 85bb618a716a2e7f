"""The accuracy that a scan states, computed a second time; and what a detector's folder may hold."""

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, balanced_accuracy_score

import agnncert as ac
import agnncert_code
from agnncert.errors import SettingsError
from agnncert_code.bigvul import load_big_vul
from agnncert_code.detector import load_detector, measure_accuracy, measure_run
from agnncert_code.findings import Accuracy, accuracy_text
from agnncert_code.tokens import tokens
from tests.support.scanned import write_corpus


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return write_corpus(tmp_path_factory.mktemp("labelled"), count=60)


@pytest.fixture(scope="module")
def fitted(root, tmp_path_factory):
    place = tmp_path_factory.mktemp("runs") / "votes"
    return place, agnncert_code.fit_detector(place, root, size=1, seed=3)


def test_the_accuracy_of_the_detector_and_of_length_are_those_of_the_test_part(fitted, root):
    _, detector = fitted
    data = load_big_vul(root, 3, embed=agnncert_code.pieces)
    truth, test = data.y[data.test].numpy(), data.test.tolist()
    label = ac.certify(
        detector.model, data, detector.division, targets=data.test, voting_rule=detector.voting_rule
    ).label
    lengths = [sum(len(tokens(name.split(" ", 1)[1])) for name in data[k].node_id) for k in range(len(data))]
    found, by_length = detector.accuracy, np.array([lengths[k] for k in test]) > detector.accuracy.tokens
    assert found.detector == accuracy_score(truth, label)
    assert found.detector_balanced == balanced_accuracy_score(truth, label)
    assert found.length == accuracy_score(truth, by_length)
    assert found.length_balanced == balanced_accuracy_score(truth, by_length)
    known = [*data.train.tolist(), *data.val.tolist()]
    score = {
        limit: balanced_accuracy_score(data.y[known], np.array([lengths[k] for k in known]) > limit)
        for limit in {lengths[k] for k in known}
    }
    assert score[found.tokens] == max(score.values())


def test_a_detector_is_loaded_with_its_vote_and_measured_again_with_the_same_result(fitted, root):
    place, detector = fitted
    assert load_detector(place).accuracy == detector.accuracy == measure_run(place, root)
    assert load_detector(place).voting_rule == detector.voting_rule
    other = load_detector(place, prior=(7, 0))
    assert (other.accuracy, other.voting_rule.prior[:2]) == (None, (7, 0))
    data = load_big_vul(root, 3, embed=agnncert_code.pieces)
    assert measure_accuracy(load_detector(place), data) == detector.accuracy


def test_a_folder_with_anything_else_is_not_overwritten(fitted, root, tmp_path):
    place, detector = fitted
    assert agnncert_code.fit_detector(place, root, size=1, seed=3).accuracy == detector.accuracy
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(SettingsError, match="choose another folder"):
        agnncert_code.fit_detector(tmp_path, root)


@pytest.mark.parametrize(("balanced", "words"), [(0.6, "not better"), (0.64, "hardly better"), (0.7, "is better")])
def test_the_comparison_with_length_is_put_into_words(balanced, words):
    assert words in accuracy_text(Accuracy("big-vul", 168, 0.7, balanced, 0.7, 0.6, 117))
    assert "unknown" in accuracy_text(None)
