"""Rows of stacked votes, and of models that read no edges."""

from experiments.benchmarks import stacked
from experiments.paper import votes
from experiments.paper.rows import Results
from tests.unit.experiments.test_page import rows

ONE, TWO = "stacked-votes(levels=1, sum)", "stacked-votes(levels=2, sum)"


def stacked_row(rule=ONE, size=1, seed=0, first=0.9, alone=0.8, **changes):
    fallen = [first - 0.02 * k for k in range(6)]
    return {
        "dataset": "cora-ml", "seed": seed, "rule": rule, "size": size, "protocol": "inductive", "trusted": None,
        "without edges": alone, "structure": fallen, "edges": [value + 0.01 for value in fallen], **changes,
    }  # fmt: skip


REFERENCE = {"dataset": "cora-ml", "what": votes.REFERENCE, "reference": [0.95, 0.9, 0.8, 0.8, 0.8, 0.8]}
CEILINGS = [
    {**REFERENCE, "without edges": 0.8},
    {"dataset": "aids", "what": "number of nodes", "possible": [0.999, 0.997, 0.992, 0.987, 0.948, 0.905]},
    *({"dataset": "aids", "what": votes.CONTROL, "seed": k, "accuracy": 0.9 + 0.02 * k} for k in range(2)),
]


def results_of(*stacked, designs=(), ceilings=CEILINGS):
    return Results(rows(), designs=designs, stacked=stacked, ceilings=ceilings)


def test_each_level_is_held_against_what_it_is_proved_for():
    found = results_of(stacked_row(), stacked_row(rule=TWO, first=0.85))
    (one,), (two,) = (votes.stacked(found, "cora-ml", "inductive", rule, 1, None) for rule in (ONE, TWO))
    assert one["certified"] == one["structure"]
    assert two["certified"] == two["edges"]
    assert votes.models(found, "cora-ml", "inductive") == [(ONE, 1), (TWO, 1)]


def test_the_best_model_without_edges_is_the_one_to_beat():
    design = {"dataset": "cora-ml", "seed": 0, "accuracy_mlp": 0.885}
    found = results_of(stacked_row(), designs=[design])
    assert [(name, spread.mean) for name, spread in votes.without_edges(found, "cora-ml")] == [
        ("one MLP, trained as for votes designed for a size", 0.885),
        ("five MLPs", 0.8),
    ]


def test_the_control_of_graphs_is_the_mean_over_seeds():
    spread = votes.control(results_of(stacked_row()), "aids")
    assert (round(spread.mean, 3), spread.count) == (0.91, 2)


def test_a_table_of_few_labels_is_of_these_rows_alone():
    assert stacked.page(stacked.FEW_ROWS).count("20-per-class") == 1
    assert "20-per-class" not in stacked.page()
