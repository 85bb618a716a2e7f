"""The add-on packages use the core through a short list of names, none of them private; the lists only shrink."""

import ast
from pathlib import Path

import pytest

PACKAGES = Path(__file__).parents[2] / "packages"
LIVE = """
ABSTAIN AgnncertError as_numbers assemble audit audit_own BallotEvidence bind Budget Caller CanonicalData
CanonicalGraph cast Certificate certify CertifySettings CHUNK_ROWS content_policy Cover Decision did_you_mean
DivisionError DOUBT EdgeCentric encode_id everything_but_additions exact_ids Facts Features find_run font_faces
GatedNodeCentric gnn GraphError Id id_array IdError INT64 keys_of least_load load_certificate make_claim missing
model_digest ModelContractError ModelOfRun MOST_PER_NEIGHBOUR NodeCentric order_of parse_division PerEdge PerNeighbour
Perturbation prepared Prior radius_of REACHED require_order require_stacked Root RULES SAFETY SettingsError Shake
SparseRows stacked_counts StackedEvidence StackedModel structure study_of_run style_sheet sums_of_largest Targets Task
under_vote UNLISTED UNREACHED Votes VotingRule watched weighed who_votes WIDE WorkersError
"""
CODE = """
AgnncertError AttackUnit BallotEvidence BallotTable best_class_prior BoolArray Budget CanonicalData Certificate
certified_accuracy certify checked_labels content_policy DatasetError default_root did_you_mean Division file_name
find_run FloatArray follow font_faces graph_classes GraphSet IntArray is_module_spec largest_amount load_certificate
load_description load_model load_run_data load_weights make_division missing ModelContractError ModelSettings
NodeDivision OnProgress parse_division part_rows PerNeighbour read_sealed RunFolder save_model Screen
settings_of_folder SettingsError SOURCES stored_settings stratified_split style_sheet table user_model VOTE Votes
VotingRule window write_atomic write_sealed
"""
PEERS = """
Against audit AuditReport BallotEvidence BallotTable BaseModel best_class_prior bind BoolArray Budget BudgetError
Caller canonical CanonicalData CanonicalGraph Certificate CertificateError certify_model check_settings checked
choose_voting_rule CHUNK_ROWS Claim class_names Contents count_classes Counted COUNTS Curve dataset_digest Defence
did_you_mean Division DIVISIONS draw_panels edge_values_of EdgeCentric EdgeDivision EngineName ENGINES Evidence
Features file_name find_run fit_arguments_of fit_model FloatArray follow FORMATS Found fresh_model graph_digest
GRAPH_FREE GraphError GraphSizes hashing Here infer_task IntArray is_module_spec joined keys_of laid_out
largest_amount load_certificate load_data load_dataset MAJORITY make_sample_claim MEASURES Measures measures_by_size
measures_of model_digest ModelContractError ModelSettings node_keys NodeDivision noise_unit NotCovered numbers
OnProgress options other_classes other_model pairs Panel part_rows PerNeighbour Perturbation predict prepared
prior_text Progress RandomDefence read_sealed read_settings require_kinds require_vote RunFolder Screen SettingsError
SIZE_ONLY size_rule SizedGraphs SparseRows Study table target_rows target_weights Task touched_edge_groups
touched_pairs UNDEFENDED under_vote usual_arguments VotingRule window Workers write_atomic write_sealed wrong_targets
"""


def core_names(package: str) -> set[str]:
    """Names that a package imports from the modules of ``agnncert``."""
    files = (PACKAGES / f"agnncert-{package}" / "src" / f"agnncert_{package}").rglob("*.py")
    nodes = (node for file in files for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))))
    imports = (node for node in nodes if isinstance(node, ast.ImportFrom))
    return {name.name for node in imports if (node.module or "").split(".")[0] == "agnncert" for name in node.names}


@pytest.mark.parametrize(("package", "listed"), [("live", LIVE), ("code", CODE), ("peers", PEERS)])
def test_the_core_is_used_through_the_listed_names(package: str, listed: str) -> None:
    used = core_names(package)
    assert used - set(listed.split()) == set(), "use a listed name, or argue for one more in the same commit"
    assert set(listed.split()) - used == set(), "remove the names that are not used any more"
    assert not [name for name in used if name.startswith("_")]
