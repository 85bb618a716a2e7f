"""A page checks itself when it is opened: with the checker that is extracted from the proofs, and what a forger wrote is refuted."""

import base64
import gzip
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from agnncert.report.html import json_for_html
from agnncert.report.packing import pack
from tests.support.certificates import random_vote
from tests.support.pages import report, some_truth
from tests.support.stacked_records import KINDS, random_stacked, stacked_certificate
from tests.support.synthetic import made_up_certificate, sampled_certificate
from tests.support.theorems import THEOREMS

pytestmark = pytest.mark.browser
Arrays = dict[str, np.ndarray]


def checked(page: Any) -> dict[str, int]:
    """What the page says of itself."""
    page.wait_for_selector("html[data-checked]", timeout=60_000)
    said = page.locator("#self-check").evaluate("(one) => ({...one.dataset})")
    return {kind: int(number) for kind, number in said.items()}


def forge(path: Path, change: Callable[[dict[str, Any], Arrays], None]) -> Path:
    """Alters the numbers in a page: its settings and its packed arrays."""
    text = path.read_text("utf-8")
    found = re.search(r'id="meta">(.*?)</script>\s*<script type="text/plain" id="data">(.*?)</script>', text, re.DOTALL)
    assert found is not None
    meta, block = json.loads(found[1]), gzip.decompress(base64.b64decode(found[2]))
    arrays = {
        each["name"]: np.frombuffer(block, each["type"], each["length"], each["offset"]).copy()
        for each in meta["arrays"]
    }
    change(meta, arrays)
    meta["arrays"], packed = pack(arrays)
    text = text.replace(found[1], json_for_html(meta)).replace(found[2], base64.b64encode(packed).decode("ascii"))
    path.write_text(text, "utf-8")
    return path


@pytest.mark.parametrize("theorem", THEOREMS)
def test_an_honest_page_proves_what_it_states(theorem: str, tmp_path: Path, open_page: Any) -> None:
    rng = np.random.default_rng(len(theorem))
    for ids in ("node_id", "row"):
        certificate, _ = made_up_certificate(
            rng, theorem, 30, 12, 3, ids=ids, voting_rule=random_vote(rng, theorem), unstable=0.03
        )
        page = open_page(report(tmp_path, certificate, truth=some_truth(certificate)))
        said = checked(page)
        assert said["refuted"] == 0
        assert said["proved"] > 30
        assert said["open"] >= (certificate.radius < 0).sum()
        assert "none is refuted" in page.locator("#self-check").inner_text()


@pytest.mark.parametrize("kind", KINDS)
def test_an_honest_page_of_stacked_votes_proves_what_it_states(kind: str, tmp_path: Path, open_page: Any) -> None:
    certificate = stacked_certificate(random_stacked(np.random.default_rng(len(kind)), kind, num_targets=30))
    assert checked(open_page(report(tmp_path, certificate)))["refuted"] == 0


@pytest.mark.parametrize(
    "theorem", ["edge-centric/node", "node-centric/node", "gated/node", "per-neighbour/node", "per-pair/graph"]
)
def test_targets_without_single_votes_are_checked_from_their_counts(
    theorem: str, tmp_path: Path, open_page: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(3)
    monkeypatch.setattr("agnncert.report.page.num_detailed", lambda record: 4)
    certificate, _ = made_up_certificate(
        rng, theorem, 60, 20, 3, voting_rule=random_vote(rng, theorem), unstable=0.05, mean_degree=8.0
    )
    path = report(tmp_path, certificate)
    page = open_page(path)
    said = checked(page)
    assert (said["refuted"], said["proved"] > 60) == (0, True)
    assert "Of 4 targets the page holds every vote" in page.locator("#self-check-time").inner_text()

    def larger(meta: dict[str, Any], arrays: Arrays) -> None:
        arrays["radius"][50] += 1

    assert checked(open_page(forge(path, larger)))["refuted"] >= 1


def put(name: str, place: int, number: int) -> Callable[[dict[str, Any], Arrays], None]:
    def change(meta: dict[str, Any], arrays: Arrays) -> None:
        arrays[name] = arrays[name].astype(np.int64)
        arrays[name][place] += number

    return change


def raise_the_curve(meta: dict[str, Any], arrays: Arrays) -> None:
    meta["charts"]["accuracy"]["certified"][-1]["y"] += 0.1


FORGERIES = {
    "a larger radius": put("radius", 7, 1),
    "a smaller radius": put("radius", 7, -1),
    "another label": put("label", 7, 1),
    "more new neighbours": put("neighbours", 7, 1),
    "a larger radius of added and deleted ones": put("structure", 7, 1),
    "a higher curve": raise_the_curve,
}


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forged_number_is_refuted_and_its_target_is_named(name: str, tmp_path: Path, open_page: Any) -> None:
    rng = np.random.default_rng(8)
    theorem = "per-neighbour/node" if "added and deleted" in name else "node-centric/node"
    certificate, _ = made_up_certificate(rng, theorem, 20, 20, 3, mean_degree=3.0)
    path = report(tmp_path, certificate)
    before = checked(open_page(path))
    assert before["refuted"] == 0
    page = open_page(forge(path, FORGERIES[name]))
    assert checked(page)["refuted"] >= 1
    said = page.locator("#self-check").inner_text()
    assert said.startswith("Refuted:")
    if name != "a higher curve":
        assert f"see node {certificate.target[7]}" in said
    assert "alarm" in (page.locator("#self-check").get_attribute("class") or "")


def test_a_forged_vote_refutes_what_was_stated(tmp_path: Path, open_page: Any) -> None:
    certificate, _ = made_up_certificate(np.random.default_rng(8), "edge-centric/node", 20, 20, 3, mean_degree=6.0)
    path = report(tmp_path, certificate)

    def other_votes(meta: dict[str, Any], arrays: Arrays) -> None:
        arrays["vote"] = (arrays["vote"].astype(np.int64) + 1) % 3

    assert checked(open_page(forge(path, other_votes)))["refuted"] > 10


def test_random_samples_are_not_checked_by_the_page(tmp_path: Path, open_page: Any) -> None:
    page = open_page(report(tmp_path, sampled_certificate(np.random.default_rng(0), 20)))
    assert page.locator("#self-check-table").count() == 0
    assert page.locator("#self-check").is_hidden()


def test_twenty_thousand_targets_are_checked_in_seconds(tmp_path: Path, open_page: Any) -> None:
    certificate, _ = made_up_certificate(
        np.random.default_rng(10), "edge-centric/node", 20_000, 300, 10, mean_degree=12.0, unstable=0.001
    )
    page = open_page(report(tmp_path, certificate))
    assert checked(page)["refuted"] == 0
    seconds = page.locator("#self-check-time").inner_text()
    print(seconds)
    assert float(re.search(r"took ([\d.]+) s", seconds)[1]) < 60
