"""What the page unpacks is what was packed."""

import gzip
import json
from dataclasses import replace

import numpy as np
import pytest

from agnncert.report.charts import SIZE_ONLY_WORD, accuracy_chart, accuracy_table
from agnncert.report.explorer import num_detailed, vote_arrays
from agnncert.report.html import json_for_html
from agnncert.report.packing import pack
from agnncert.report.page import target_arrays
from agnncert.report.summary import AT_MOST, VOTES_REFERENCE, ReportContext, summarise
from tests.support.synthetic import made_up_certificate, random_evidence


def unpack(places: list[dict[str, object]], packed: bytes) -> dict[str, np.ndarray]:
    block = gzip.decompress(packed)
    return {
        p["name"]: np.frombuffer(block, np.dtype(p["type"]).newbyteorder("<"), p["length"], p["offset"]) for p in places
    }


@pytest.mark.parametrize(
    ("low", "high"), [(0, 255), (-1, 127), (0, 256), (-1, 40_000), (-(2**31), 2**31 - 1), (-(2**31) - 1, 2**40)]
)
def test_whole_numbers_come_back_as_they_were(low: int, high: int) -> None:
    array = np.array([low, 0, high, high])
    places, packed = pack({"first": np.arange(3), "second": array})
    assert unpack(places, packed)["second"].tolist() == array.tolist()
    assert all(place["offset"] % 8 == 0 for place in places), "typed arrays of a browser need aligned places"


def test_every_vote_comes_back_with_its_group() -> None:
    evidence, _ = random_evidence(np.random.default_rng(0), "gated/node", 40, 30, 4, unstable=0.1)
    votes, arrays = evidence.votes, unpack(*pack(vote_arrays(evidence, 40)))
    starts = np.concatenate([[0], np.cumsum(arrays["listed_len"], dtype=np.int64)])
    for v in range(40):
        mine = slice(starts[v], starts[v + 1])
        assert (np.cumsum(arrays["group_step"][mine]) - 1).tolist() == votes.group[mine].tolist()
    assert arrays["vote"].tolist() == votes.vote.tolist()
    assert ((arrays["flags"] & 1) != 0).tolist() == votes.stable.tolist()
    assert ((arrays["flags"] & 2) != 0).tolist() == votes.reached.tolist()


def test_ids_come_back_as_text_to_the_last_digit_and_character() -> None:
    ids = [2**53 + 1, 2**63, -(2**200), "a", "a\0", "", " 7", 7, "\u2028</script>", "\u00e9", "e\u0301"]
    random = np.random.default_rng(0)
    certificate, _ = made_up_certificate(random, "edge-centric/node", len(ids), 10, 3, target=ids)
    arrays = unpack(*pack(target_arrays(summarise(certificate, None))))
    assert json.loads(arrays["ids"].tobytes()) == [str(name) for name in ids]


def test_what_is_certified_is_never_rounded_up() -> None:
    certificate, _ = made_up_certificate(np.random.default_rng(1), "node-centric/node", 2400, 10, 3)
    truth = certificate.label.copy()
    truth[-1] = (truth[-1] + 1) % 3
    summary = summarise(certificate, ReportContext(truth=truth, degree=np.full(2400, 100)))
    assert certificate.radius.min() >= 0
    assert accuracy_table(summary)["rows"][0][1] == "99.9\u00a0%"  # 2399 of 2400
    assert "certified accuracy: 99.9\u00a0% at size 0" in accuracy_chart(summary)["summary"]


def test_the_size_alone_is_shown_as_an_envelope_as_far_as_the_curve_reaches() -> None:
    certificate, _ = made_up_certificate(np.random.default_rng(0), "edge-centric/graph", 30, 20, 3)
    pairs = [(0, 0.9), (1, 0.8), (2, 0.7), (10_000, 0.6)]
    summary = summarise(certificate, ReportContext(truth=certificate.label, majority=0.5, size_only=pairs))
    chart, table = accuracy_chart(summary), accuracy_table(summary)
    assert chart["size_only"] == [{"x": float(x), "y": y} for x, y in pairs[:-1]]
    assert "envelope" in chart["size_only_word"]
    column = table["names"].index(SIZE_ONLY_WORD) + 1
    by_size = {row[0]: row[column] for row in table["rows"]}
    assert by_size["0"] == "90.0\u00a0%"
    assert accuracy_chart(summarise(certificate, None))["size_only"] == []
    assert SIZE_ONLY_WORD not in accuracy_table(summarise(certificate, None))["names"]


def test_single_votes_stay_out_when_they_would_make_the_page_too_large() -> None:
    evidence, _ = random_evidence(np.random.default_rng(1), "custom/node", 200, 50, 10)
    assert num_detailed(evidence) == 200
    some = num_detailed(evidence, limit=2000)
    assert 0 < some < 200
    assert len(pack(vote_arrays(evidence, some))[1]) <= 2000


def test_strings_cannot_leave_their_script_element() -> None:
    evil = {"a": "</script><!-- & \u2028", "b": ["<b>"]}
    text = json_for_html(evil)
    assert not set("<>&\u2028") & set(text)
    assert json.loads(text) == evil


@pytest.mark.parametrize(
    ("name", "key", "cell"), [(f"{AT_MOST} (any)", "ceiling", "73.5"), (VOTES_REFERENCE, "reference", "73.4")]
)
def test_what_is_possible_is_drawn_for_the_first_curve_and_listed_for_all(name: str, key: str, cell: str) -> None:
    certificate, _ = made_up_certificate(np.random.default_rng(0), "node-centric/graph", 30, 20, 3)
    given = {name: [(1, 0.7341), (0, 0.9), (10_000, 0.1)], f"{AT_MOST} (other)": [(0, 0.95)]}
    summary = summarise(certificate, ReportContext(truth=certificate.label, possible=given))
    chart, table = accuracy_chart(summary), accuracy_table(summary)
    assert chart["possible"] == [{"key": key, "name": name, "points": [{"x": 0.0, "y": 0.9}, {"x": 1.0, "y": 0.7341}]}]
    assert [table["names"].count(column) for column in given] == [1, 1]
    column = table["names"].index(name) + 1
    assert {row[0]: row[column] for row in table["rows"]}["0"] == "90.0\u00a0%"
    assert summary.certified.size[-1] < 12, "size 1 is not in the table"
    assert {row[0]: row[column] for row in table["rows"]}["1"] == f"{cell}\u00a0%"
    assert all(len(row) == len(table["names"]) + 1 for row in table["rows"])
    assert accuracy_chart(summarise(replace(certificate, truth=None), ReportContext(possible=given)))["possible"] == []
