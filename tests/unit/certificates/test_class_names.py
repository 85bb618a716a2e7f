"""Names of classes: kept in the file, shown, compared with the data, and never more or fewer than classes."""

import logging
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import agnncert as ac
from agnncert.certificates.class_names import checked_class_names, class_word, names_in_data
from agnncert.certificates.file import read_contents, write_contents
from agnncert.errors import CertificateError, SettingsError
from agnncert.proving.certificate import load_certificate
from agnncert.verdict import verify
from tests.soundness.forger.forging import lay_open, seal
from tests.support.certificates import certificate_of, random_evidence
from tests.support.graphs import random_data
from tests.support.models import build

NAMES = ("honest", "fraud", "点")


def made_with_names():
    return certificate_of(random_evidence(np.random.default_rng(0), "gated/node")).with_class_names(NAMES)


@pytest.fixture
def named():
    return made_with_names()


def test_names_come_back_from_the_file_and_through_a_hand_over(named, tmp_path):
    file = tmp_path / "a.cert"
    named.save(file)
    assert load_certificate(file).class_names == NAMES
    write_contents(file, replace(read_contents(file), issued={"by": "us"}))
    assert load_certificate(file).class_names == NAMES
    assert verify(file).holds


def test_a_certificate_without_names_stores_none(named, tmp_path):
    plain = named.with_class_names(())
    plain.save(tmp_path / "a.cert")
    assert "class_names" not in lay_open(tmp_path / "a.cert").header
    assert plain.class_word(1) == "class 1"


def test_a_decision_and_a_printed_certificate_name_the_class(named):
    decision = named[named.target[0].item()]
    assert decision.class_name == NAMES[decision.label]
    assert f"label={decision.label} ({decision.class_name})" in repr(decision)
    assert "honest, fraud, 点" in str(named)


def test_a_class_may_be_asked_for_by_its_name(named):
    budget = ac.Budget(add_edges=2)
    assert named.excluded("fraud", budget).tolist() == named.excluded(1, budget).tolist()
    prices = ac.Prices(add_edges=1)
    assert named.cheapest(prices, "点").tolist() == named.cheapest(prices, 2).tolist()
    with pytest.raises(SettingsError, match="the classes are honest, fraud, 点"):
        named.excluded("genuine", budget)
    with pytest.raises(SettingsError, match="0 to 2, without names"):
        named.with_class_names(()).excluded("fraud", budget)


@pytest.mark.parametrize(
    "names",
    [("a", "b"), ("a", "b", "c", "d"), ("a", "a", "b"), ("a", "", "b"), ("a", "b" * 201, "c"), ("a", 1, "c"),
     ("a", "b\n", "c"), ("a", "\x1b[2J", "c"), ("a", "\u202eb", "c")],
)  # fmt: skip
def test_names_that_nobody_could_use_are_refused(named, names):
    with pytest.raises(CertificateError):
        named.with_class_names(names)


@pytest.mark.parametrize("names", [["a", "b"], ["a", "b", "c", "d"]])
def test_a_file_that_names_more_or_fewer_classes_than_it_counts_is_refused(named, names, tmp_path):
    named.save(tmp_path / "a.cert")
    draft = lay_open(tmp_path / "a.cert")
    draft.header["class_names"] = names
    assert seal(draft, tmp_path / "a.cert")
    assert f"the file names {len(names)} classes, but has evidence about 3" in verify(tmp_path / "a.cert").reasons


@pytest.mark.parametrize("names", [[], "abc", [1, 2, 3], ["a", "a", "b"], {"a": 1}, None, ["a", "b", "\u202ec"]])
def test_a_file_with_names_that_are_none_is_refused(named, names, tmp_path):
    named.save(tmp_path / "a.cert")
    draft = lay_open(tmp_path / "a.cert")
    draft.header["class_names"] = names
    assert seal(draft, tmp_path / "a.cert")
    assert not verify(tmp_path / "a.cert").holds


def test_certify_takes_the_names_of_the_data_and_verify_compares_them(tmp_path):
    data, file = random_data(0, smallest=6), tmp_path / "a.cert"
    data.class_names = list(NAMES)
    model = build("gcn", "node")
    certificate = ac.certify(model, data, ac.NodeCentric(4))
    assert certificate.class_names == NAMES
    certificate.save(file)
    alone = verify(file)
    assert "what the classes are called: pass data" in alone.not_checked
    counted = [f"{(certificate.label == k).sum()} {name}" for k, name in enumerate(NAMES) if k in certificate.label]
    assert alone.checked[1].endswith(f"{len(certificate)} targets: {', '.join(counted)}")
    assert verify(file, data=data, model=model).holds
    data.class_names = ["fraud", "honest", "点"]
    assert "the file calls the classes honest, fraud, 点, the data fraud, honest, 点" in verify(file, data=data).reasons
    del data.class_names
    unnamed = verify(file, data=data)
    assert unnamed.holds
    assert "what the classes are called: the data gives them no such names" in unnamed.not_checked


@pytest.mark.parametrize("names", [None, "abc", 7, ["a", "b"], ["a", "a", "a"], ["a", "", "b"]])
def test_names_of_data_that_do_not_fit_are_left_out(names, caplog):
    with caplog.at_level(logging.WARNING):
        assert names_in_data(SimpleNamespace(class_names=names), 3) == ()
    assert bool(caplog.records) == isinstance(names, list)


def test_names_of_data_are_made_printable():
    assert names_in_data(SimpleNamespace(class_names=["a\x1b[2J", 5]), 2) == (r"a\x1b[2J", "5")


def test_words():
    assert [class_word(NAMES, k) for k in (0, 3, -1)] == ["honest", "class 3", "class -1"]
    assert checked_class_names(NAMES) == NAMES
