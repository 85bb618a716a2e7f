"""Certificates of cards are written anew with the words of this version: every kind of file, and nothing but words."""

from dataclasses import replace
from pathlib import Path

import pytest

from agnncert.addons import addons
from agnncert.certificates.file import read_contents, write_contents
from agnncert.errors import CertificateError
from agnncert.verdict import verify
from agnncert_peers.card_evidence import pack, unpacked
from agnncert_peers.card_making import FILES
from experiments.benchmarks.cards_anew import claim_of, rewrite

GOLDEN = sorted((Path(__file__).parents[2] / "soundness" / "golden" / "v1").glob("*.cert"))
ONE_OF_EACH = {read_contents(file).kind: file for file in GOLDEN}


@pytest.mark.parametrize("file", GOLDEN, ids=lambda file: file.stem)
def test_a_claim_in_words_of_this_version_stays_as_it_is(file) -> None:
    contents = read_contents(file)
    assert claim_of(contents) == contents.claim


def test_golden_files_are_of_all_kinds() -> None:
    assert set(ONE_OF_EACH) == set(addons("agnncert.evidence"))


@pytest.mark.parametrize("kind", ONE_OF_EACH)
def test_old_words_are_replaced_in_files_of_every_kind(kind, tmp_path) -> None:
    contents = read_contents(ONE_OF_EACH[kind])
    old = replace(contents, claim=replace(contents.claim, covers=("What older versions said.",)))
    plain = tmp_path / "old.cert"
    write_contents(plain, old)
    packed = tmp_path / FILES / "old.cert.xz"
    pack(plain.read_bytes(), packed)
    rewrite(packed)
    (written,) = set((tmp_path / FILES).glob("*.cert.xz")) - {packed}
    plain.write_bytes(unpacked(written))
    assert read_contents(plain).claim == contents.claim
    assert verify(plain).holds


def test_a_kind_that_is_not_known_is_named() -> None:
    contents = replace(read_contents(GOLDEN[0]), kind="tea leaves")
    with pytest.raises(CertificateError, match="tea leaves"):
        claim_of(contents)
