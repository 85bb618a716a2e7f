"""Certificate files: they come back whole, and anything altered, cut or foreign is refused with the reason."""

import os
import struct

import numpy as np
import pytest
import safetensors.numpy

from agnncert.certificates.budget import Budget
from agnncert.certificates.file import VERSION, read_contents
from agnncert.errors import CertificateError
from agnncert.proving.certificate import Certificate, load_certificate, usual_budgets
from agnncert.verdict import verify
from agnncert_peers.deletion_noise import DeletionNoise
from agnncert_peers.samples import SampleEvidence, sample_claim
from tests.soundness.forger.hostile import open_up
from tests.support.certificates import certificate_of, random_evidence
from tests.support.theorems import THEOREMS


@pytest.fixture
def rng():
    return np.random.default_rng(3)


@pytest.fixture
def cert(rng) -> Certificate:
    known = {"row": np.arange(30)[::-1].copy(), "truth": rng.integers(0, 3, 30), "degree": rng.integers(0, 9, 30)}
    return certificate_of(random_evidence(rng, "edge-centric/node"), **known)


@pytest.fixture
def path(cert, tmp_path):
    file = tmp_path / "some.cert"
    cert.save(file)
    return file


def sampled(rng) -> Certificate:
    counts = rng.multinomial(100, [0.9, 0.05, 0.05], size=8)
    evidence = SampleEvidence("bi-rs", DeletionNoise(0.8, 0.9), counts, counts * 10, alpha=0.01)
    return Certificate(sample_claim(evidence), evidence, np.arange(8))


def forge(path, header, arrays) -> None:
    """Writes a file that is sealed correctly, whatever it says."""
    from agnncert.storage import write_sealed

    write_sealed(path, header, arrays)


def refusal(path) -> str:
    """Why loading and verifying refuse a file; both must."""
    verdict = verify(path)
    assert not verdict.holds
    assert verdict.reasons
    with pytest.raises(CertificateError):
        load_certificate(path)
    return verdict.reasons[0]


@pytest.mark.parametrize("theorem", THEOREMS)
def test_a_certificate_comes_back_whole(theorem, rng, tmp_path):
    cert = certificate_of(random_evidence(rng, theorem), truth=rng.integers(0, 3, 30))
    cert.save(tmp_path / "a.cert")
    again = load_certificate(tmp_path / "a.cert")
    assert again.claim == cert.claim
    for name in ("target", "row", "truth", "label", "radius", "counts", "new_neighbours"):
        assert np.array_equal(getattr(again, name), getattr(cert, name)), name
    assert again.degree is None
    budget = Budget(add_edges=2, delete_nodes=1)
    assert again.holds_against(budget).tolist() == cert.holds_against(budget).tolist()
    assert verify(tmp_path / "a.cert").holds


def test_a_sampled_certificate_comes_back_whole(rng, tmp_path):
    cert = sampled(rng)
    cert.save(tmp_path / "a.cert", budgets=[Budget(inject_nodes=1, edges_per_injected=2)])
    again = load_certificate(tmp_path / "a.cert")
    assert again.claim == cert.claim
    assert again.radius.tolist() == cert.radius.tolist()
    assert verify(tmp_path / "a.cert").holds


def test_ids_may_be_any_text(rng, tmp_path):
    names = ["", "user 7", "Ünïcödé", "点", "a" * 70_000, "\n", "00", "NaN", "\0", "a", "a\0", "\u00e9", "e\u0301"]
    cert = certificate_of(random_evidence(rng, "gated/node", num_targets=len(names)), target=names)
    assert cert.target.tolist() == names
    cert.save(tmp_path / "a.cert")
    assert load_certificate(tmp_path / "a.cert").target.tolist() == names
    assert verify(tmp_path / "a.cert").holds


@pytest.mark.parametrize(
    "ids",
    [
        [-1, 2**63, 0],
        np.array([2**63, 1, 2**64 - 1], dtype=np.uint64),
        [2**200, -(2**200), "a"],
        [2**63 - 1, -(2**63), 7],
        np.array([7, "seven", 2**80], dtype=object),
    ],
    ids=repr,
)
def test_ids_may_be_any_integer(ids, rng, tmp_path):
    cert = certificate_of(random_evidence(rng, "gated/node", num_targets=3), target=ids)
    cert.save(tmp_path / "a.cert")
    again = load_certificate(tmp_path / "a.cert")
    assert again.target.tolist() == cert.target.tolist() == list(ids)
    assert again.target.dtype == cert.target.dtype
    assert verify(tmp_path / "a.cert").holds


def test_the_decimal_text_of_an_integer_is_that_integer_in_files_of_any_age(rng, tmp_path):
    cert = certificate_of(random_evidence(rng, "gated/node", num_targets=3), target=["7", str(2**70), "x"])
    cert.save(tmp_path / "a.cert")
    header, arrays = open_up(tmp_path / "a.cert")
    assert arrays["target.text"].tobytes() == b"7" + str(2**70).encode() + b"x"
    assert load_certificate(tmp_path / "a.cert").target.tolist() == [7, 2**70, "x"]
    text = np.frombuffer(b"1020", dtype=np.uint8)
    forge(tmp_path / "a.cert", header, arrays | {"target.text": text, "target.ptr": np.array([0, 2, 3, 4])})
    assert load_certificate(tmp_path / "a.cert").target.dtype == np.int64


def test_ids_that_are_one_are_refused_however_they_are_spelled(rng, tmp_path):
    cert = certificate_of(random_evidence(rng, "gated/node", num_targets=3), target=["7", "8", "x"])
    cert.save(tmp_path / "a.cert")
    header, arrays = open_up(tmp_path / "a.cert")
    forge(tmp_path / "a.cert", header, arrays | {"target.text": np.frombuffer(b"77x", dtype=np.uint8)})
    assert "twice" in refusal(tmp_path / "a.cert")


def test_no_targets_can_be_stored(rng, tmp_path):
    for ids in (np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.str_)):
        certificate_of(random_evidence(rng, "gated/node", num_targets=0), target=ids).save(tmp_path / "a.cert")
        assert load_certificate(tmp_path / "a.cert").num_targets == 0
        assert verify(tmp_path / "a.cert").holds


def test_the_same_certificate_gives_the_same_bytes(cert, path, tmp_path):
    cert.save(tmp_path / "again.cert")
    assert (tmp_path / "again.cert").read_bytes() == path.read_bytes()


def test_stated_budgets_are_stored_with_what_they_break(cert, tmp_path):
    budgets = [Budget(add_edges=3, delete_edges=np.inf), Budget(target_features=True)]
    cert.save(tmp_path / "a.cert", budgets=budgets)
    contents = read_contents(tmp_path / "a.cert")
    assert contents.budgets == tuple(budgets)
    assert contents.broken_at_most == tuple(cert.broken_at_most(b) for b in budgets)
    assert contents.arrays["holds"][0].tolist() == cert.holds_against(budgets[0]).tolist()
    cert.save(tmp_path / "a.cert")
    assert read_contents(tmp_path / "a.cert").budgets == usual_budgets(cert.claim)


def test_every_altered_byte_is_noticed(path):
    blob = path.read_bytes()
    random = np.random.default_rng(0)
    for place in [*range(12), *random.integers(0, len(blob), 300)]:
        altered = bytearray(blob)
        altered[place] ^= 1 << int(random.integers(8))
        path.write_bytes(bytes(altered))
        assert refusal(path)


def test_a_file_cut_anywhere_is_refused(path):
    blob = path.read_bytes()
    for length in [*range(0, 200, 7), *range(200, len(blob), 211), len(blob) - 1]:
        path.write_bytes(blob[:length])
        assert "not a certificate" in refusal(path) or "altered" in refusal(path)
    path.write_bytes(blob + b"\0")
    assert "altered" in refusal(path)


GARBAGE = {
    "nothing": b"",
    "text": b"Dear reader, this is not a certificate at all.",
    "noise": bytes(np.random.default_rng(4).integers(0, 256, 5000, dtype=np.uint8)),
    "a pickle": b"\x80\x04\x95\x1f\x00\x00\x00\x00\x00\x00\x00\x8c\x05posix\x94\x8c\x06system\x94\x93\x94\x8c\x04true\x94\x85\x94R\x94.",
    "an endless header": struct.pack("<Q", 2**63) + b"{}",
    "deep brackets": struct.pack("<Q", 100_000) + b"[" * 100_000,
    "another header": struct.pack("<Q", 20) + b'{"__metadata__": {}}',
    "a list as header": struct.pack("<Q", 40) + b'{"__metadata__": {"certificate": "[1]"}}'.ljust(40),
    "numbers as header": struct.pack("<Q", 33) + b'{"__metadata__":{"certificate":7}}'[:33],
}


@pytest.mark.parametrize("what", GARBAGE)
def test_garbage_is_refused_without_running_anything(what, tmp_path):
    (tmp_path / "garbage").write_bytes(GARBAGE[what])
    assert "not a certificate" in refusal(tmp_path / "garbage")


def test_a_plain_safetensors_file_is_no_certificate(tmp_path):
    safetensors.numpy.save_file({"weight": np.zeros(3)}, tmp_path / "model.safetensors")
    assert "not a certificate" in refusal(tmp_path / "model.safetensors")


def test_another_version_is_refused(path):
    header, arrays = open_up(path)
    for version in (VERSION + 1, VERSION + 2, 10**30):
        forge(path, header | {"version": version}, arrays)
        assert f"reads version {VERSION} only: update agnncert" in refusal(path)
    for version in (0, -1, "1", None, True, 1.0):
        forge(path, header | {"version": version}, arrays)
        assert "no version" in refusal(path)
    forge(path, header | {"format": "something-else"}, arrays)
    assert "its format is 'something-else'" in refusal(path)


def test_two_digests_are_one_too_many(path):
    header, arrays = open_up(path)
    with pytest.raises(CertificateError, match="this file has 2"):
        forge(path, header | {"settings": header["settings"] | {"file_sha256": "0" * 64}}, arrays)


def test_every_header_field_that_is_missing_or_odd_is_refused_even_if_sealed_again(path):
    header, arrays = open_up(path)
    for name in header:
        if name not in ("file_sha256", "format", "version"):
            forge(path, {k: v for k, v in header.items() if k != name}, arrays)
            assert "fields" in refusal(path)
            for odd in (None, 7, "x", [], ["x"], {"x": 1}):
                if odd != [] or name != "statements":
                    forge(path, header | {name: odd}, arrays)
                    assert refusal(path)
    forge(path, header | {"extra": 1}, arrays)
    assert "fields" in refusal(path)


def test_every_array_that_is_missing_or_misshapen_is_refused_even_if_sealed_again(path):
    header, arrays = open_up(path)
    for name, array in arrays.items():
        if name not in ("truth", "degree"):  # these two may be missing
            forge(path, header, {k: v for k, v in arrays.items() if k != name})
            assert refusal(path)
        for odd in (array[:-1], array[:, None], array.astype(np.float32), np.append(array, array[-1:])):
            forge(path, header, arrays | {name: odd})
            assert refusal(path), name
    forge(path, header, arrays | {"surplus": np.zeros(3)})
    assert refusal(path)
    forge(path, header, arrays | {"evidence.surplus": np.zeros(3)})
    assert refusal(path)


@pytest.mark.parametrize("name", ["label", "radius", "new_neighbours", "holds", "target", "row"])
def test_altered_statements_are_refused_even_if_sealed_again(path, name):
    header, arrays = open_up(path)
    array = arrays[name].copy()
    place = (0, 3) if array.ndim == 2 else 3
    array[place] = (
        not array[place] if array.dtype == bool else array[0] if name in ("target", "row") else array[place] + 1
    )
    forge(path, header, arrays | {name: array})
    assert not verify(path).holds


def test_altered_numbers_of_broken_targets_and_budgets_are_refused_even_if_sealed_again(path):
    header, arrays = open_up(path)
    for i, statement in enumerate(header["statements"]):
        for odd in (
            statement | {"broken_at_most": statement["broken_at_most"] - 1},
            statement | {"budget": {}},
            statement | {"budget": {"add_edges": -1}},
            statement | {"budget": {"add_edges": "many"}},
            statement | {"budget": {"unknown": 1}},
            statement | {"budget": {"add_edges": 10**400}},
            statement | {"broken_at_most": 1.5},
        ):
            statements = [odd if j == i else other for j, other in enumerate(header["statements"])]
            forge(path, header | {"statements": statements}, arrays)
            assert not verify(path).holds


@pytest.mark.parametrize(
    "field", ["unit", "covers", "assumes", "not_proved", "task", "ids", "guarantee", "num_groups", "method"]
)
def test_altered_words_are_refused_even_if_sealed_again(path, field):
    header, arrays = open_up(path)
    claim = header["claim"]
    odd = {
        "task": "graph",
        "ids": "row",
        "guarantee": "probabilistic",
        "num_groups": 7,
        "unit": "one node",
        "method": "x",
    }
    forge(path, header | {"claim": claim | {field: odd.get(field, ["Anything at all."])}}, arrays)
    assert not verify(path).holds


def test_a_stronger_rule_for_the_same_votes_is_refused(path):
    """The words of the claim belong to the rule, and so do the numbers."""
    header, arrays = open_up(path)
    forge(path, header | {"settings": header["settings"] | {"theorem": "gated/node"}}, arrays)
    assert not verify(path).holds


def test_altered_samples_are_refused(rng, tmp_path):
    sampled(rng).save(tmp_path / "a.cert")
    header, arrays = open_up(tmp_path / "a.cert")
    better = arrays["evidence.estimation"].copy()
    better[0] = [0, 0, 1000]
    forge(tmp_path / "a.cert", header, arrays | {"evidence.estimation": better})
    assert not verify(tmp_path / "a.cert").holds
    forge(tmp_path / "a.cert", header | {"claim": header["claim"] | {"alpha": 0.001}}, arrays)
    assert not verify(tmp_path / "a.cert").holds


def test_a_failed_write_leaves_the_old_file_and_nothing_else(cert, path, monkeypatch):
    before = path.read_bytes()

    def full_disk(_file):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(CertificateError, match="No space left on device"):
        cert.save(path)
    assert path.read_bytes() == before
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_unreadable_places_are_named(cert, tmp_path):
    with pytest.raises(CertificateError, match="cannot read"):
        load_certificate(tmp_path / "nowhere.cert")
    with pytest.raises(CertificateError, match="cannot write"):
        cert.save(tmp_path / "no" / "such" / "folder.cert")
    with pytest.raises(CertificateError, match="no file"):
        verify(tmp_path / "nowhere.cert")
