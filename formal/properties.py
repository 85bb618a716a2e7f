"""What is verified, one row for each theorem: from the sentence of a claim to the test.

    python -m formal.properties [--check]

writes the list in ``formal/README.md`` and the page ``docs/theorems.md``. ``--check`` writes nothing, and its exit status
is 1 if something would change. A test follows every link.
"""

import argparse
import ast
import re
import sys
from dataclasses import dataclass
from pathlib import Path

from formal.statements import place_of

PROJECT = Path(__file__).resolve().parents[1]
README, PAGE, PROOFS = (
    PROJECT / "formal" / "README.md",
    PROJECT / "docs" / "theorems.md",
    PROJECT / "docs" / "proofs.md",
)
BEGIN, END = "<!-- properties -->", "<!-- end of properties -->"
D, V, S, L = "src/agnncert/divided/theorems/", "src/agnncert/verifier/", "src/agnncert/", "tests/soundness/laws/"


@dataclass(frozen=True)
class Property:
    """One theorem.

    Attributes:
        sentence: What it says to whoever reads a claim.
        paper: The theorem of the paper; "new" if the paper has none.
        ours: The heading in docs/proofs.md.
        coq: The final statements in Coq, the most important one first.
        prover: Where the library uses it: file and name.
        recount: Where the verifier derives it again.
        test: What tries to break it.
    """

    sentence: str
    paper: str
    ours: str
    coq: tuple[str, ...]
    prover: str
    recount: str
    test: str

    @property
    def anchor(self) -> str:
        """The part of a link that leads to the heading in docs/proofs.md."""
        return slug(self.ours)


PROPERTIES = (
    Property(
        "As long as no more votes change than the radius says, this label stays",
        "Theorem 1",
        "Theorem 1: the radius",
        ("radius_sound", "radius_exact"),
        S + "proving/theorems.py:certified_radius",
        V + "recount.py:radius",
        L + "test_votes.py:test_the_radius_is_exact_for_every_vote",
    ),
    Property(
        "Votes that are harder to reach count only as far as an attack can reach them",
        "new",
        "Theorem 2: votes that are harder to reach",
        ("vote_sound", "vote_exact"),
        S + "proving/theorems.py:withstands",
        V + "recount.py:holds",
        L + "test_exhaustive.py:test_no_mixed_attack_flips_a_certified_label_and_the_bound_is_attained",
    ),
    Property(
        "No added, deleted or changed edges, and no nodes with their edges, can change this label, if each edge has one vote",
        "Theorems 2 to 5",
        "Theorem 3: edge-centric, node classification",
        ("edge_centric_certificate", "cover_table", "checked_edge_centric"),
        D + "edge_centric.py:_EdgeCentricNode.limits",
        V + "theorems/edge_centric.py:_Node.effect",
        L + "test_exhaustive.py:test_no_mixed_attack_flips_a_certified_label_and_the_bound_is_attained",
    ),
    Property(
        "No injected node can change this label, whatever its edges and features",
        "Theorems 6 to 8",
        "Theorem 4: node-centric, node classification",
        ("node_centric_certificate", "paper_theorem_7", "checked_node_centric"),
        D + "node_centric.py:NodeCentricNode.limits",
        V + "theorems/node_centric.py:_Node.effect",
        L + "test_division_laws.py:test_one_unit_of_an_attack_moves_only_the_promised_votes",
    ),
    Property(
        "Other features of the node itself cannot change this label either",
        "new",
        "Theorem 5: gated features",
        ("gated_certificate", "checked_gated"),
        D + "gated.py:_GatedNode.limits",
        V + "theorems/node_centric.py:_Gated",
        L + "test_counterexamples.py:test_with_gated_features_own_features_move_one_vote",
    ),
    Property(
        "So many changed nodes or edges of this graph cannot change its label",
        "as for nodes",
        "Theorem 6: graph classification",
        (
            "node_centric_graph_certificate",
            "edge_centric_graph_certificate",
            "node_centric_graph_certificate_with_loops",
            "graph_cover_table",
        ),
        D + "node_centric.py:_NodeCentricGraph.limits",
        V + "theorems/node_centric.py:_Graph.effect",
        L
        + "test_counterexamples.py:test_a_self_loop_moves_the_vote_of_a_lone_node_which_counting_pairs_of_nodes_forgets",
    ),
    Property(
        "The certificates of GNNCert hold for edges, for features, and for both",
        "none: GNNCert (ICLR 2024)",
        "GNNCert",
        ("gnncert_e_certificate", "gnncert_n_certificate", "gnncert_en_certificate"),
        "packages/agnncert-peers/src/agnncert_peers/gnncert_theorems.py:_BothNode.limits",
        "packages/agnncert-peers/src/agnncert_peers/gnncert_recount.py:_BothGraph.effect",
        L + "test_exhaustive.py:test_no_mixed_attack_flips_a_certified_label_and_the_bound_is_attained",
    ),
    Property(
        "Only new neighbours count: everything else may change without limit",
        "new",
        "Only new neighbours count",
        ("only_neighbours", "only_edges", "checked_new_neighbours"),
        S + "proving/theorems.py:neighbours_needed",
        V + "recount.py:right_neighbours",
        L + "test_exhaustive.py:test_only_new_neighbours_count_when_everything_else_is_unlimited",
    ),
    Property(
        "One attack on the graph changes so many labels at most, all targets together",
        "new",
        "Many targets, one attacked graph",
        ("broken_bound", "collective_certificate", "affordable_sound"),
        S + "divided/evidence.py:VoteEvidence.broken_at_most",
        V + "recount.py:broken",
        L + "test_collective.py:test_no_attack_that_spares_the_targets_breaks_more_than_the_bound",
    ),
    Property(
        "Votes that a class is given in advance are counted, and in doubt for the attacker",
        "new",
        "Theorem 8: votes with a prior",
        ("vote_sound", "no_edge_doubt", "radius_formula"),
        S + "proving/theorems.py:count_votes",
        V + "piles.py:prior_of",
        L + "test_votes.py:test_no_mixed_attack_flips_a_certified_label_whatever_the_vote",
    ),
    Property(
        "If every neighbour, pair or node has a vote of its own, each change reaches one or two of them",
        "new",
        "Theorem 9: a group for each neighbour",
        (
            "per_neighbour_certificate",
            "per_pair_certificate",
            "per_node_graph_certificate",
            "per_pair_graph_certificate",
            "own_broken_bound",
        ),
        D + "per_neighbour.py:PerNeighbourNode.touches",
        V + "theorems/per_neighbour.py:PerNeighbourNode.effect",
        L + "test_own_groups.py:test_no_mixed_attack_flips_a_certified_label",
    ),
    Property(
        "So many new, lost or altered neighbours cannot change the class of this score",
        "new",
        "Theorem 10: stacked votes",
        ("stacked_certificate", "stacked_lead_sound", "stacked_broken_bound"),
        S + "stacked/evidence.py:Leads.stays_ahead",
        V + "recount_stacked.py:DegreeTable.survives",
        L + "test_stacked_votes.py:test_no_attack_within_the_budget_changes_a_certified_label",
    ),
    Property(
        "The same for neighbours that ask their own neighbours",
        "new",
        "Theorem 11: two levels of votes",
        ("two_levels_certificate", "two_levels_lead", "softmax_certificate"),
        S + "stacked/evidence.py:Leads.stays_ahead_second",
        V + "recount_stacked.py:DegreeTable.survives_second",
        L + "test_stacked_graphs.py:test_no_nodes_within_the_budget_change_a_certified_label",
    ),
    Property(
        "No attack within the budget gives this node that class",
        "new",
        "Theorem 12: possible classes",
        (
            "left_out_sound",
            "own_left_out_sound",
            "winner_is_possible",
            "stacked_excluded",
            "two_levels_excluded",
            "checked_labels_excluded",
            "checked_joint_excluded",
        ),
        S + "proving/possible.py:possible_classes",
        V + "recount_possible.py:of_votes",
        L + "test_possible.py:test_in_three_tiers_the_possible_classes_are_exactly_those_that_can_win",
    ),
    Property(
        "No attack on this label costs less than its price",
        "new",
        "Theorem 13: prices",
        ("price_is_budget", "price_node_centric"),
        S + "proving/prices.py:cheapest_in_tiers",
        V + "recount_prices.py:cheapest",
        L + "test_prices.py:test_the_price_of_a_target_is_that_of_the_cheapest_attack",
    ),
    Property(
        "So many wrong training labels cannot change this decision",
        "new",
        "Theorem 14: labels changed before training",
        ("label_votes_sound", "label_votes_exact", "checked_labels"),
        S + "labels/evidence.py:LabelEvidence.stays_ahead",
        V + "recount_labels.py:stays_ahead",
        L + "test_label_votes.py:test_a_label_withstands_a_number_of_changes_exactly_where_it_is_certified",
    ),
    Property(
        "So many poisoned training graphs, and changes of the test graph besides, cannot change this label",
        "new",
        "Theorem 15: poisoned training graphs",
        ("poisoned_node_centric", "poisoned_edge_centric", "poisoned_radius", "poisoned_vote"),
        S + "isolated/evidence.py:IsolatedEvidence.keeps_label",
        V + "recount_isolated.py:Views.holds",
        L + "test_isolated.py:test_no_altered_models_and_no_changed_test_graph_change_a_certified_label",
    ),
    Property(
        "Edges that were changed before training cannot change this label",
        "new",
        "Theorem 16: training without edges",
        ("edge_blind_same", "edge_blind_certificate", "one_training_edge"),
        S + "stacked/training.py:fit_edge_blind",
        V + "recount_stacked.py:stays_ahead",
        L + "test_edge_blind.py:test_no_edge_that_is_changed_before_training_changes_a_certified_label",
    ),
    Property(
        "So many training labels and neighbours together cannot change this decision",
        "new",
        "Theorem 17: labels and edges together",
        ("labels_and_edges_sound", "checked_joint"),
        S + "labels/joint_evidence.py:JointEvidence.stays_ahead",
        V + "recount_joint.py:stays_ahead",
        L + "test_labels_and_edges.py:test_no_changed_labels_and_neighbours_change_a_certified_label",
    ),
    Property(
        "So many changed edges and nodes cannot change the decision about this pair",
        "new",
        "Theorem 18: pairs of nodes, votes of common neighbours",
        ("pairs_certificate", "pairs_lead", "pairs_excluded", "pairs_price"),
        S + "pairs/evidence.py:PairEvidence.votes_reached",
        V + "recount_pairs.py:in_votes",
        L + "test_pair_votes.py:test_no_attack_within_the_budget_changes_a_certified_label",
    ),
    Property(
        "The same by the contacts whom one of the two trusts, whatever accounts are injected",
        "new",
        "Theorem 19: contacts whom a node trusts",
        ("trusted_certificate", "trusted_excluded", "trusted_price"),
        S + "pairs/evidence.py:PairEvidence.votes_reached",
        V + "recount_pairs.py:in_votes",
        L + "test_pair_votes.py:test_any_number_of_injected_accounts_costs_nothing_where_contacts_are_trusted",
    ),
    Property(
        "Whoever is flagged stays flagged, whatever rows and accounts are appended",
        "new",
        "Theorem 21: scores that appended rows can only raise",
        ("stays_flagged", "types_hold", "tree_rises", "deletions_bound_sums", "everybody_can_be_framed"),
        S + "append/polarity.py:account_type",
        V + "recount_append.py:refusals",
        L + "test_append_programs.py:test_no_random_attack_contradicts_the_type_of_a_random_program",
    ),
    Property(
        "So many features, or edges, of what is not trusted cannot change the label of this graph",
        "new",
        "Theorem 22: items that change one by one",
        ("graph_votes_sound", "graph_votes_exact", "graph_votes_one_kind"),
        S + "graph_votes/evidence.py:GraphEvidence.lead_left",
        V + "recount_graph_votes.py:Target.survives",
        L + "test_graph_votes.py:test_statements_are_true_and_none_is_too_weak",
    ),
    Property(
        "So many nodes that come, go or are altered, with any edges, cannot change the label of this graph",
        "new",
        "Theorem 23: nodes that come and go",
        ("node_votes_within", "node_votes_in_all", "node_votes_exact"),
        S + "graph_votes/evidence.py:GraphEvidence.lead_left",
        V + "recount_graph_votes.py:Target.survives",
        L + "test_graph_votes.py:test_statements_are_true_and_none_is_too_weak",
    ),
)
MORE = (
    (
        "What the extracted checker accepts follows from the votes in the file",
        ("checked_stated", "checked_radius", "label_is_voted", "stacked_test_sound"),
    ),
    ("A number that does not fit stops it", ("sum_checked", "difference_checked", "product_checked")),
    (
        "What `agnncert check` accepts is true of every play, with every extension of the format",
        ("stays_sound", "excludes_sound", "broken_sound"),
    ),
    (
        "Networks of message passing layers are local, and infinite graphs lose nothing",
        ("message_passing_local", "extended_local"),
    ),
    (
        "What rounding can move is bounded, and a lead beyond it decides on every machine",
        ("linear_bounded", "gcn_bounded", "lead_decides", "lead_on_every_machine"),
    ),
    (
        "Hypotheses that look too strong cannot be dropped",
        ("changed_pairs_must_not_turn", "target_must_be_spared", "one_training_edge"),
    ),
)
# What is compared with what: the derivations, where, and how often.
COMPARED = (
    (
        "prover, recount",
        "`tests/unit/verifier/test_recount.py`, and every file that `verify` reads",
        "every run of the tests, every `verify`",
    ),
    (
        "prover, recount, extracted checker",
        "`python -m formal.compare`",
        "in `make formal`; a million answers before a release",
    ),
    (
        "prover, recount, extracted checker, contest",
        "`python -m formal.contests`",
        "by hand, rows in `experiments/results/contests.csv`; some answers of each kind in every run of the tests",
    ),
    (
        "`agnncert check`, a checker in JavaScript that was written from the page about the format",
        "`tests/unit/contest/test_another_language.py`",
        "every run of the tests",
    ),
    (
        "`agnncert check`, extracted checker of contests",
        "`tests/soundness/formal/test_contests.py`",
        "every run of the tests",
    ),
    (
        "extracted checker in a report page, prover, recount",
        "`tests/e2e/browser`",
        "every run of the tests, and whenever a page is opened",
    ),
    ("certified labels, every attack on small graphs", "`tests/soundness/laws`", "every run of the tests"),
    ("statements of contests, every play on small forms", "`tests/unit/contest`", "every run of the tests"),
    ("fast engine, naive engine, a reference with neither", "`tests/soundness/oracle`", "every run of the tests"),
    (
        "each statement in Coq, the same weakened",
        "`python formal/weaken.py`",
        "a part of them in `.ci/run`, all in `make formal`",
    ),
)


def slug(heading: str) -> str:
    """Returns the part of a link that leads to a heading."""
    return re.sub(r"[\s-]+", "-", re.sub(r"[^\w\s-]", "", heading.lower())).strip("-")


def source_of(place: str) -> str:
    """Returns the text of a function or class, ``file:Class.name``."""
    file, _, names = place.partition(":")
    text = (PROJECT / file).read_text("utf-8")
    node: ast.AST = ast.parse(text)
    for name in names.split("."):
        found = [each for each in getattr(node, "body", []) if getattr(each, "name", None) == name]
        if not found:
            raise LookupError(f"{file} has no {names}")
        node = found[0]
    segment = ast.get_source_segment(text, node)
    assert segment is not None
    return segment


def _link(place: str) -> str:
    file, _, name = place.partition(":")
    return f"[`{name}`](../{file})"  # without the line, which other changes move


def _coq(name: str) -> str:
    file, line = place_of(name)
    return f"[`{name}`](statements/{file}#L{line})"


def readme_block() -> str:
    """Returns the list of verified properties and the tables, for a reader of the repository."""
    lines = ["Each sentence leads to its statement in Coq.", ""]
    lines += [f"- {each.sentence}: {_coq(each.coq[0])}." for each in PROPERTIES]
    lines += [f"- {sentence}: {', '.join(map(_coq, names))}." for sentence, names in MORE]
    lines += [
        "",
        "| the claim says | paper | ours | in Coq | prover | recount | test |",
        "|---|---|---|---|---|---|---|",
    ]
    for each in PROPERTIES:
        ours = f"[{each.ours.partition(':')[0]}](../docs/proofs.md#{each.anchor})"
        cells = [each.sentence, each.paper, ours, ", ".join(map(_coq, each.coq))]
        cells += [_link(each.prover), _link(each.recount), _link(each.test)]
        lines.append(f"| {' | '.join(cells)} |")
    lines += ["", "### What is compared with what", "", "| derivations | where | how often |", "|---|---|---|"]
    lines += [f"| {' | '.join(each)} |" for each in COMPARED]
    return "\n".join(lines)


def page() -> str:
    """Returns the page for readers of the documentation. ``docs/hooks/pages.py`` puts statements and functions into it."""
    lines = [
        "# From a sentence to its proof",
        "",
        "<!-- written by python -m formal.properties -->",
        "A certificate makes claims in sentences. For each of them this page has the paper's theorem, the proof for people, the statement that Coq has checked, the functions that derive it, and a test that tries to break it. Choose a sentence.",
        "",
        "| the claim says | paper | ours | in Coq |",
        "|---|---|---|---|",
    ]
    for each in PROPERTIES:
        ours = f"[{each.ours.partition(':')[0]}](proofs.md#{each.anchor})"
        lines.append(f"| [{each.sentence}](#{slug(each.sentence)}) | {each.paper} | {ours} | `{each.coq[0]}` |")
    lines += [
        "",
        "**What is compared with what.** The same statements are derived several times, by programs that share as little as possible.",
        "",
    ]
    lines += ["| derivations | where | how often |", "|---|---|---|", *(f"| {' | '.join(each)} |" for each in COMPARED)]
    for each in PROPERTIES:
        lines += ["", f"## {each.sentence}", ""]
        paper = {"new": "The paper has no such theorem."}.get(each.paper, f"In the paper: {each.paper}.")
        lines.append(f"{paper} Proof in English: [{each.ours}](proofs.md#{each.anchor}).")
        for name in each.coq:
            file, _ = place_of(name)
            lines += ["", f'??? note "In Coq: {name}, formal/statements/{file}"', "", f"    <!-- coq: {name} -->"]
        for title, place in (("Prover", each.prover), ("Recount", each.recount), ("Test", each.test)):
            file, _, name = place.partition(":")
            lines += ["", f'??? note "{title}: {name}, {file}"', "", f"    <!-- source: {place} -->"]
    return "\n".join(lines) + "\n"


def texts() -> dict[Path, str]:
    """Returns what both files should say."""
    readme = README.read_text("utf-8")
    before, _, rest = readme.partition(BEGIN)
    after = rest.partition(END)[2]
    return {README: f"{before}{BEGIN}\n{readme_block()}\n{END}{after}", PAGE: page()}


def main() -> int:
    """Writes the files, or compares them."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--check", action="store_true")
    wanted = texts()
    if parser.parse_args().check:
        return int(any(not file.is_file() or file.read_text("utf-8") != text for file, text in wanted.items()))
    for file, text in wanted.items():
        file.write_text(text, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
