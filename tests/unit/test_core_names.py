"""Add-on packages use no private name of the core; live and code use it through a short list, which only shrinks."""

import ast
from functools import cache

import pytest

from tests.support.paths import PROJECT

PACKAGES = PROJECT / "packages"
LIVE = """
ABSTAIN AgnncertError as_numbers assemble audit audit_own BallotEvidence bind Budget Caller CanonicalData
CanonicalGraph cast Certificate certify CertifySettings CHUNK_ROWS Cover Decision did_you_mean
DivisionError DOUBT EdgeCentric encode_id everything_but_additions exact_ids Facts Features fill_page find_run
GatedNodeCentric gnn GraphError Id id_array IdError INT64 keys_of least_load load_certificate make_claim missing
model_digest ModelContractError ModelOfRun MOST_PER_NEIGHBOUR NodeCentric order_of parse_division PerEdge PerNeighbour
Perturbation prepared Prior radius_of REACHED require_order require_stacked Root RULES SAFETY SettingsError Shake
SparseRows stacked_counts StackedEvidence StackedModel structure study_of_run sums_of_largest Targets Task
under_vote UNLISTED UNREACHED Votes VotingRule watched weighed who_votes WIDE WorkersError
"""
CODE = """
AgnncertError AttackUnit BallotEvidence BallotTable best_class_prior BoolArray Budget CanonicalData Certificate
certified_accuracy certify checked_labels DatasetError default_root did_you_mean Division file_name
fill_page find_run FloatArray follow graph_classes GraphSet IntArray is_module_spec largest_amount load_certificate
load_description load_model load_run_data load_weights make_division missing ModelContractError ModelSettings
NodeDivision OnProgress parse_division part_rows PerNeighbour read_sealed RunFolder save_model Screen
settings_of_folder SettingsError SOURCES stored_settings stratified_split table user_model VOTE Votes
VotingRule window write_atomic write_sealed
"""


@cache
def core_names(package: str) -> set[str]:
    """Names that a package imports from the modules of ``agnncert``."""
    files = (PACKAGES / f"agnncert-{package}" / "src" / f"agnncert_{package}").rglob("*.py")
    nodes = (node for file in files for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))))
    imports = (node for node in nodes if isinstance(node, ast.ImportFrom))
    return {name.name for node in imports if (node.module or "").split(".")[0] == "agnncert" for name in node.names}


@pytest.mark.parametrize(("package", "listed"), [("live", LIVE), ("code", CODE)])
def test_the_core_is_used_through_the_listed_names(package: str, listed: str) -> None:
    used = core_names(package)
    assert used - set(listed.split()) == set(), "use a listed name, or argue for one more in the same commit"
    assert set(listed.split()) - used == set(), "remove the names that are not used any more"


@pytest.mark.parametrize("package", ["live", "code", "peers"])
def test_no_private_name_of_the_core_is_used(package: str) -> None:
    assert not [name for name in core_names(package) if name.startswith("_")]
