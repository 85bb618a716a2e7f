"""Files made to mislead, hang or crash whoever reads them: each is refused with a reason, soon and in little memory."""

import json
import time
from pathlib import Path

import numpy as np
import pytest

from agnncert.certificates.file import MOST_STATEMENTS
from agnncert.errors import CertificateError
from agnncert.verdict import check_file, verify
from tests.soundness.forger.hostile import golden_files, open_up, sealed, spoiled
from tests.support.paths import GOLDEN


def refusal(blob: bytes, tmp_path: Path) -> str:
    (tmp_path / "a.cert").write_bytes(blob)
    verdict = verify(tmp_path / "a.cert")
    assert not verdict.holds
    assert len(verdict.reasons[0]) < 1000
    return verdict.reasons[0]


def opened(name: str = "node-centric-node"):
    return open_up((GOLDEN / f"{name}.cert").read_bytes())


def as_text(header: dict) -> str:
    return json.dumps({**header, "file_sha256": "0" * 64}, sort_keys=True, separators=(",", ":"))


def test_spoiled_files_are_judged_or_refused_and_nothing_else_is_raised(tmp_path):
    rng, files, path = np.random.default_rng(0), golden_files(GOLDEN), tmp_path / "a.cert"
    refused, longest, slowest = 0, 0, 0.0
    for _ in range(400):
        path.write_bytes(spoiled(files[rng.integers(len(files))], rng))
        begin = time.process_time()
        try:
            check_file(path)
        except CertificateError as error:
            refused, longest = refused + 1, max(longest, len(str(error)))
        slowest = max(slowest, time.process_time() - begin)
    assert refused > 300
    assert longest < 2000
    assert slowest < 2


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"kind":"votes"', '"kind":"samples","kind":"votes"'),  # a key twice
        ('"tolerance":3.814697265625e-06', '"tolerance":1e309'),
        ('"tolerance":3.814697265625e-06', '"tolerance":NaN'),
        ('"tolerance":3.814697265625e-06', '"tolerance":0.000003814697265625'),  # the same number in other words
        ('"kind":"votes"', '"kind": "votes"'),
        ('"notes":[', '"notes":' + "[" * 100_000),
        ('"num_groups":', '"num_groups":' + "9" * 5000),
    ],
)
def test_a_header_is_read_in_one_way_only(old, new, tmp_path):
    header, arrays = opened()
    text = as_text(header)
    assert old in text
    assert "is not a certificate" in refusal(sealed(text.replace(old, new, 1), arrays), tmp_path)


@pytest.mark.parametrize(
    ("place", "value", "reason"),
    [
        (("claim", "digests"), {"graph": "nonsense"}, "no SHA-256"),
        (("claim", "method"), 7, '"method"'),
        (("claim", "notes"), ["x" * 30_000], "30,000 characters"),
        (("claim", "notes"), ["\x1b[2JThe certificate holds."], "control characters"),
        (("claim", "notes"), ["\ud800"], "control characters"),
        (("claim", "notes"), ["\u202eholds"], "control characters"),
        (("settings", "parameters"), {"add_edges": 10**30}, "parameters of the theorem"),
        (("settings", "theorem"), ["edge-centric/node"], "unknown theorem"),
        (("settings", "num_groups"), 10**40, "too large"),
        (("statements",), [{"budget": {"add_edges": 2**53 + 1}, "broken_at_most": 0}], "larger than"),
        (("statements",), [{"budget": {"add_edges": 1.0}, "broken_at_most": 0}], "not how a budget is written"),
        (("statements",), [{"budget": {"add_edges": 0}, "broken_at_most": 0}], "not how a budget is written"),
        (("statements",), [{"budget": {"add_edges": 1}, "broken_at_most": 0}] * (MOST_STATEMENTS + 1), "at most"),
    ],
)
def test_senseless_entries_are_refused_with_the_reason(place, value, reason, tmp_path):
    header, arrays = opened()
    inside = header
    for name in place[:-1]:
        inside = inside[name]
    inside[place[-1]] = value
    assert reason in refusal(sealed(header, arrays), tmp_path)


def test_differences_that_overflow_are_not_taken_for_ascending(tmp_path):
    header, arrays = opened()
    n = len(arrays["evidence.indptr"]) - 1
    largest, smallest = 2**63 - 1, -(2**63)
    arrays["evidence.indptr"][1:4] = [largest, smallest, -1][: n - 1]
    assert '"indptr" does not divide' in refusal(sealed(header, arrays), tmp_path)


def test_a_grid_whose_product_overflows_is_no_grid(tmp_path):
    header, arrays = opened("gnncert-en-graph")
    header["settings"]["parameters"] = {"edge_groups": 2**33 + 12, "feature_groups": 2**31 * 2 + 1}
    assert "does not make" in refusal(sealed(header, arrays), tmp_path)


def test_an_id_of_endless_length_is_refused(tmp_path):
    header, arrays = opened()
    text, number = np.full(200_000, 97, dtype=np.uint8), 100_000
    arrays.pop("target")
    arrays |= {"target.text": text, "target.ptr": np.concatenate([np.arange(number), [len(text)]])}
    assert "has 100,001 characters: an id has at most 100,000" in refusal(sealed(header, arrays), tmp_path)
    arrays["target.ptr"] = np.array([0, 2**63 - 1, -(2**63), -1, len(text)])
    assert "wrong lengths" in refusal(sealed(header, arrays), tmp_path)


def test_counts_of_countless_classes_are_refused(tmp_path):
    header, arrays = opened("sparse-rs")
    for name in ("evidence.selection", "evidence.estimation"):
        arrays[name] = np.zeros((0, 2**40), dtype=np.int64)
    assert "at most 32,767 classes" in refusal(sealed(header, arrays), tmp_path)


def test_budgets_that_take_too_long_are_refused(tmp_path):
    header, arrays = opened("sparse-rs")
    n = len(arrays["row"])
    header["settings"]["noise"]["num_features"] = 1000
    header["statements"] = [{"budget": {"add_edges": 1000, "change_features": 2}, "broken_at_most": 0}]
    arrays["holds"] = np.zeros((1, n), dtype=bool)
    assert "steps to check, at most 12,000,000" in refusal(sealed(header, arrays), tmp_path)


def test_more_than_one_description_is_refused(tmp_path):
    import safetensors.numpy

    header, arrays = opened()
    blob = safetensors.numpy.save(arrays, {"certificate": as_text(header), "other": "x"})
    assert "more than one thing about itself" in refusal(blob, tmp_path)
