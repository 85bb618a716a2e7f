"""docs/trust.md says the truth: its files exist, are as long as it says, and the halves import nothing of each other."""

import ast
import json
import re
import tomllib
from pathlib import Path

import pytest

from tests.soundness.forger.test_fuzz import NAMES
from tests.soundness.retraining.offline import PLANTED, RESULT, ROWS, rows_in, summary
from tests.support.paths import PROJECT

SOURCE = PROJECT / "src" / "agnncert"
PEERS = PROJECT / "packages" / "agnncert-peers" / "src"
PAGE = (PROJECT / "docs" / "trust.md").read_text(encoding="utf-8")


def rows(title: str) -> list[list[str]]:
    section = re.search(rf"## {title}\n(.*?)(\n## |\Z)", PAGE, re.DOTALL)
    return [row.strip("| ").split(" | ") for row in section[1].splitlines() if row.startswith("| `")]


def named(title: str) -> list[str]:
    return [name for row in rows(title) for name in re.findall(r"`([^`]+)`", row[0])]


TRUSTED, PROVING = named("What to read"), named("What you do not have to trust")


def modules(names: list[str]) -> set[str]:
    return {("" if name.startswith("agnncert_") else "agnncert.") + name.replace("/", ".") for name in names}


def source_of(name: str) -> Path:
    return (PEERS if name.startswith("agnncert_peers/") else SOURCE) / f"{name}.py"


def imports(name: str) -> set[str]:
    """The library's modules that a file imports, also inside functions; of ``verify``, what a file alone needs."""
    tree = ast.parse(source_of(name).read_text(encoding="utf-8"))
    nodes = tree.body if name == "verdict" else ast.walk(tree)
    imported = set()
    for node in nodes:
        if isinstance(node, ast.ImportFrom):
            imported |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Import):
            imported |= {alias.name for alias in node.names}
    return {
        module
        for module in imported
        if any((at / f"{module.replace('.', '/')}.py").is_file() for at in (SOURCE.parent, PEERS))
    }


def test_the_page_names_every_file_of_prover_and_verifier_once():
    files = [path for package in ("certificates", "proving", "verifier") for path in (SOURCE / package).rglob("*.py")]
    names = {path.relative_to(SOURCE).with_suffix("").as_posix() for path in files if path.stem != "__init__"}
    assert sorted([*TRUSTED, *PROVING]) == sorted(
        names
        | {f"divided/{name}" for name in ("evidence", "words", "division_words")}
        | {
            f"divided/{path.parent.name}/{path.stem}"
            for folder in ("facts", "theorems")
            for path in (SOURCE / "divided" / folder).glob("*.py")
            if path.stem != "__init__"
        }
        | {"stacked/record", "stacked/claim", "stacked/evidence"}
        | {"labels/record", "labels/claim", "labels/evidence"}
        | {"labels/joint_record", "labels/joint_claim", "labels/joint_evidence"}
        | {"pairs/record", "pairs/claim", "pairs/evidence"}
        | {"isolated/record", "isolated/claim", "isolated/evidence"}
        | {"append/record", "append/claim", "append/program", "append/tables", "append/evidence", "append/polarity"}
        | {"append/trees", "append/words", "append/evaluate", "append/ledger"}
        | {"graph_votes/record", "graph_votes/claim", "graph_votes/evidence"}
        | {
            "addons",
            "findings",
            "storage",
            "errors",
            "verdict",
            "agnncert_peers/gnncert_facts",
            "agnncert_peers/gnncert_recount",
            "agnncert_peers/gnncert_theorems",
            "agnncert_peers/recount_samples",
            "agnncert_peers/sample_claim",
        }
    )


@pytest.mark.parametrize("name", TRUSTED)
def test_a_trusted_file_imports_trusted_files_only(name):
    assert imports(name) <= modules(TRUSTED)


@pytest.mark.parametrize("name", PROVING)
def test_a_proving_file_imports_nothing_that_checks(name):
    checking = [file for file in TRUSTED if file.startswith("verifier/")]
    assert not imports(name) & modules([*checking, "verdict"])


def test_the_contracts_speak_about_the_same_files():
    contracts = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    (trusted,) = (c for c in contracts if c["name"].startswith("what a verifier trusts"))
    (samples,) = (c for c in contracts if c["name"].startswith("what checks statements about samples"))
    (layers,) = (c["layers"] for c in contracts if c["type"] == "layers")
    assert {"torch", "torch_geometric", "scipy"} <= set(trusted["forbidden_modules"])
    assert "agnncert.proving | agnncert.verifier" in layers  # neither imports the other
    assert {*trusted["forbidden_modules"]} <= {*samples["forbidden_modules"]}
    for module in modules(TRUSTED) - {"agnncert.verdict"}:
        listed = [*trusted["source_modules"], *samples["source_modules"]]
        assert any(f"{module}.".startswith(f"{whole}.") for whole in listed)
    for module in modules(PROVING):
        assert any(f"{module}.".startswith(f"{whole}.") for whole in trusted["forbidden_modules"])


def code_lines(text: str) -> int:
    """Lines that hold code: no blank ones, no comments, no docstrings."""
    explained = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            explained |= set(range(node.lineno, node.end_lineno + 1))
    lines = enumerate(text.splitlines(), start=1)
    return sum(bool(line.strip()) and not line.strip().startswith("#") and k not in explained for k, line in lines)


def stated(pattern: str) -> int:
    (number,) = re.findall(pattern, PAGE)
    return int(number.replace(",", ""))


def test_the_stated_lengths_are_about_right():
    texts = {name: source_of(name).read_text(encoding="utf-8") for name in TRUSTED}
    length = {name: len(text.splitlines()) for name, text in texts.items()}
    assert sum(length.values()) == pytest.approx(stated(r"That is about ([\d,]+) lines"), rel=0.06)
    assert sum(map(code_lines, texts.values())) == pytest.approx(stated(r"of which ([\d,]+) are code"), rel=0.06)
    (spared,) = re.findall(r"For a certificate of votes, (.*?) do not run", PAGE, re.DOTALL)
    rest = set(TRUSTED) - {f"verifier/{name}" if "/" not in name else name for name in re.findall(r"`([^`]+)`", spared)}
    assert len(rest) < len(TRUSTED) - 3
    assert sum(length[name] for name in rest) == pytest.approx(stated(r"some ([\d,]+) lines remain"), rel=0.06)


def test_the_figures_of_the_fuzz_are_those_of_its_table():
    table = (PROJECT / "experiments" / "benchmarks" / "results" / "forger.md").read_text(encoding="utf-8")
    attempts, refused, equal, unaltered, *bad = (
        int(cell.replace(",", "")) for cell in re.findall(r"\| all \|(.*)\|", table)[0].split("|")
    )
    assert bad == [0, 0, 0]
    assert stated(r"A fuzz altered ([\d,]+) certificates") == attempts - unaltered == refused + equal
    assert stated(r"sealed them again .*: ([\d,]+)\s+were refused") == refused
    assert stated(r"were refused, ([\d,]+) said") == equal


OTHER_KINDS = {
    "Stacked votes": "stacked", "training labels": "labels", "pairs": "pairs", "graph votes": "graph-votes",
    "append-only scores": "append", "isolated models": "isolated",
}  # fmt: skip


def test_the_kinds_of_certificate_in_the_fuzz_are_those_that_the_page_names():
    table = (PROJECT / "experiments" / "benchmarks" / "results" / "forger.md").read_text(encoding="utf-8")
    in_table = re.findall(
        r"^\| (?:v1 )?([a-z][a-z0-9-]*) \|", table.partition("## By kind of certificate")[2], re.MULTILINE
    )
    assert {"edge", "node", "gated", "custom", "gnncert-e", "rs"} <= set(in_table)
    assert not [kind for kind in in_table if kind.startswith(tuple(OTHER_KINDS.values()))]
    (said,) = re.findall(r"anything else\. (.*?) are not in that table", PAGE)
    (by_hand,) = re.findall(r"Files of (.*?) it has only when it is started by hand", PAGE)
    assert sorted([*re.split(r", | and ", said), by_hand]) == sorted(OTHER_KINDS)
    drawn = {name.removeprefix("golden ") for name in NAMES if name.startswith("golden ")}
    for kind, begin in OTHER_KINDS.items():
        assert any(name.startswith(begin) for name in drawn) == (kind != by_hand), kind


def test_the_figures_of_the_attacks_on_the_whole_way_are_those_of_their_rows():
    found = json.loads(RESULT.read_text(encoding="utf-8"))
    assert summary(rows_in(ROWS), found["planted_found_after"]) == found
    total = found["total"]
    assert stated(r"([\d,]+) attacks, [\d,]+ of them with another training") == total["attacks"]
    assert stated(r"([\d,]+) of them with another training") == total["retrained"]
    assert stated(r"left ([\d,]+) labels that had to stay") == total["checks"]
    assert re.search(r"labels that had to stay: none changed", PAGE) is not None
    assert total["false"] == 0
    assert stated(r"after ([\d,]+) of them, a label changed") == total["sharp"]
    planted = found["planted_found_after"]
    assert planted.keys() == PLANTED.keys()
    assert all(set(ways) <= set(PLANTED[fault][1]) for fault, ways in planted.items())
    after = [number for ways in planted.values() for number in ways.values()]
    assert stated(r"planted again and found on ([\d,]+) of [\d,]+ ways") == len(after)
    assert stated(r"found on [\d,]+ of ([\d,]+) ways") == sum(len(ways) for _, ways in PLANTED.values())
    assert stated(r"ways, after ([\d,]+) attacks at most") == max(after)
    assert stated(r"small and of ([\d,]+) kinds") == sum(way.get("attacks", 0) > 0 for way in found["ways"].values())
