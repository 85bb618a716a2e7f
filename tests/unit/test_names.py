"""What ``import agnncert`` offers, and that tests lie where the code lies."""

import subprocess
import sys
from pathlib import Path

import pytest

import agnncert as ac
from agnncert.addons import addons
from agnncert.certificates.theorem_facts import theorem_mismatch
from agnncert.cli import main
from tests.support.paths import GOLDEN, PROJECT


def test_rooms_that_users_name_need_no_import_of_their_own(monkeypatch) -> None:
    rooms = {name: f"agnncert.{name}" for name in ("attacks", "errors")}
    rooms |= {"baselines": "agnncert_peers", "testing": "agnncert_peers.testing"}
    for room, module in rooms.items():
        monkeypatch.delitem(vars(ac), room, raising=False)  # as if nobody had imported it
        assert getattr(ac, room).__name__ == module


@pytest.fixture
def fresh_addons():
    yield addons
    addons.cache_clear()


def test_names_of_an_add_on_say_how_to_install_it_where_it_is_missing(monkeypatch, capsys, fresh_addons) -> None:
    monkeypatch.setattr("agnncert.addons.entry_points", lambda group: ())
    addons.cache_clear()
    command = "pip install ./packages/agnncert-peers in a clone of agnncert"
    peers, large = (
        ("Comparison", "baselines", "compare", "testing"),
        ("Ray", "convert_parquet", "open_graph", "write_graph"),
    )
    for name, package in {**dict.fromkeys(peers, "peers"), **dict.fromkeys(large, "large")}.items():
        monkeypatch.delitem(vars(ac), name, raising=False)
        said = f"agnncert.{name} needs agnncert_{package}.*pip install ./packages/agnncert-{package} in a clone"
        with pytest.raises(ac.AgnncertError, match=said):
            getattr(ac, name)
    with pytest.raises(ac.AgnncertError, match=f"from random samples needs agnncert_peers.*{command}"):
        ac.load_certificate(GOLDEN / "bi-rs.cert")
    assert main(["compare", "digits-knn"]) == 2
    assert command in capsys.readouterr().err
    with pytest.raises(ac.AgnncertError, match=f"from random samples needs agnncert_peers.*{command}"):
        ac.verify(GOLDEN / "bi-rs.cert")
    for read in (ac.load_certificate, ac.verify):
        with pytest.raises(ac.AgnncertError, match=f"a certificate of GNNCert needs agnncert_peers.*{command}"):
            read(GOLDEN / "gnncert-e-node.cert")
    with pytest.raises(ac.AgnncertError, match="a certificate of GNNCert needs agnncert_peers"):
        theorem_mismatch("custom/node", "gnncert-e(T=7, hash=md5, key=u64le)", 7, {"add_edges": 1})
    assert ac.verify(GOLDEN / "node-centric-node.cert").holds


def test_import_agnncert_and_its_errors_load_no_torch() -> None:
    script = "import agnncert as ac, sys; ac.errors.GraphError, dir(ac), ac.Budget(); print('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, text=True).stdout == "False\n"


PUBLIC = (
    "AgnncertError AppendOnly AuditReport Budget Certificate Claim ComparedControls Comparison ContestVerdict Control Defence Difference "
    "Division EdgeCentric Fallback GatedNodeCentric GraphSet HeteroModel IsolatedModels LabelVotes NodeCentric "
    "OperatingPoint PairVotes PerEdge PerNeighbour Perturbation Prices Ray Recipe ReportContext Undefended diff "
    "BagOfNodes GraphVotes Scaling StackedVotes StructureOnly "
    "Verdict VoteExplainer VoteExplanation VotingRule attack attacks audit baselines build_model build_report certify check_contest choose_threshold "
    "choose_voting_rule compare compare_controls convert_parquet dataset_digest errors explain fit from_hetero inductive_view "
    "Backtest Monitor backtest keep_for_threshold monitor ranges "
    "load_certificate load_dataset load_events load_model load_npz load_tables mark_trusted open_graph pretrained recipe "
    "ReceptiveField certify_field receptive_field labels_of save_figures save_model save_tables split teach testing subgraphs verify vote_loss write_graph "
)


def test_the_public_names_are_these_and_no_others() -> None:
    others = {"attacks", "errors", *ac._ADDED}  # a star import does not take them
    assert {*ac.__all__, *others} - {"__version__"} == set(PUBLIC.split()) == set(dir(ac)) - {"__version__"}


def test_every_public_name_can_be_had_and_a_wrong_one_cannot() -> None:
    for name in ac.__all__:
        assert getattr(ac, name) is not None
    with pytest.raises(AttributeError, match="certfy"):
        ac.certfy  # noqa: B018


def test_unit_tests_lie_in_the_folder_of_the_package_that_they_test() -> None:
    unit, source = PROJECT / "tests" / "unit", PROJECT / "src" / "agnncert"
    tested = {file.parent.relative_to(unit) for file in unit.rglob("test_*.py")} - {Path("experiments")}
    packages = {file.parent.relative_to(source) for file in source.rglob("*.py")}
    assert tested <= packages
    assert tested == packages - {Path("report/assets")}


def test_helpers_that_several_test_modules_share_live_in_one_place() -> None:
    """Elsewhere stand programs of their own (golden, forger, mutations, retraining, ...) and what one module uses."""
    tests = PROJECT / "tests"
    homes = {"support", "zoo", "golden", "forger", "corpus", "mutation", "attacks", "retraining"}
    folders = (tests, *PROJECT.glob("packages/*/tests"))
    modules = {file: file.read_text(encoding="utf-8") for folder in folders for file in folder.rglob("test_*.py")}
    shared = {}
    for file in tests.rglob("*.py"):
        if file.name.startswith(("test_", "conftest", "__init__")) or homes & {*file.relative_to(tests).parts}:
            continue
        name = ".".join(file.relative_to(PROJECT).with_suffix("").parts)
        users = [module.name for module, text in modules.items() if name in text]
        if len(users) != 1:
            shared[name] = users
    assert shared == {}
