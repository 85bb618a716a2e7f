"""What the hosted workflows run is pinned, and keeps no credentials."""

import re
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[3]
WORKFLOWS = sorted((ROOT / ".github").rglob("*.yml"))
PINNED = re.compile(r"[\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+")


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.stem)
def test_actions_of_others_are_named_by_digest_with_their_version_beside_it(file: Path) -> None:
    used = re.findall(r"uses: (.+)", file.read_text(encoding="utf-8"))
    floating = [name for name in used if not name.startswith("./") and not PINNED.fullmatch(name)]
    assert floating == []


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.stem)
def test_a_checkout_keeps_no_credentials(file: Path) -> None:
    for job in (yaml.safe_load(file.read_text(encoding="utf-8")).get("jobs") or {}).values():
        for step in job.get("steps", []):
            if step.get("uses", "").startswith("actions/checkout@"):
                assert step["with"]["persist-credentials"] is False


def test_one_digest_stands_for_each_action() -> None:
    digests: dict[str, set[str]] = {}
    for file in WORKFLOWS:
        for name, digest in re.findall(r"uses: ([\w-]+/[\w-]+)@(.+)", file.read_text(encoding="utf-8")):
            digests.setdefault(name, set()).add(digest)
    assert digests
    assert {name: found for name, found in digests.items() if len(found) > 1} == {}
