"""With a probe of the audit broken on purpose, a model of the unfit zoo slips through: no probe is there for nothing."""

import warnings

import pytest
import torch
import torch_geometric.nn as pyg
from torch_geometric.nn.conv import gcn_conv

from agnncert.auditing import (
    constructed_graphs,
    edge_features,
    known_layers,
    original_code,
    probe_changes,
    probes,
    state,
    user_graphs,
)
from agnncert.auditing import model_audit as auditing
from agnncert.auditing.evaluation import Probe
from agnncert.auditing.model_audit import audit
from agnncert.auditing.probe_graphs import FeatureTable
from agnncert.auditing.probes import Comparison, Probes
from agnncert.divisions.base import Division
from agnncert.divisions.edge import EdgeCentric
from agnncert.divisions.node import NodeCentric
from tests.support.computed_columns import COMPUTED, left_by_a_transform
from tests.support.mutations import Planted
from tests.zoo.blind_deceivers import MEMORY, STRUCTURE, VALUES, WEIGHTS, of_structure, of_values
from tests.zoo.deceivers import ASLEEP, REMEMBERING, WHOLE_GRAPH, asking, at_exactly, degrees, gcn_norm
from tests.zoo.local import CLASSES, WIDTH, zoo_data
from tests.zoo.unfit import UNFIT, leaking

DATA, LARGE = zoo_data(), zoo_data(nodes=1200, pairs=1500)


def is_refused(name: str, division: Division) -> bool:
    with torch.random.fork_rng(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.manual_seed(0)
        model = SLY[name]() if name in SLY else UNFIT[name].make()
        data = LARGE if name in UNFIT and UNFIT[name].large else DATA
        return not audit(model.eval(), division=division, data=data).ok


def harmless_corruption(patch):
    patch.setattr(
        FeatureTable, "draw_corrupt", lambda table, count, finite, generator: table.draw_ordinary(count, generator)
    )


def no_finite_corruption(patch):
    corrupt = FeatureTable.draw_corrupt
    patch.setattr(
        FeatureTable, "draw_corrupt", lambda table, count, finite, generator: corrupt(table, count, False, generator)
    )
    patch.setattr(FeatureTable, "draw_large", FeatureTable.draw_ordinary)
    no_altered_rows(patch)


def no_altered_rows(patch):
    patch.setattr(Probes, "_reasons_of_one_row", lambda probes: iter(()))


def no_altered_values(patch):
    patch.setattr(Probes, "_reasons_of_one_value", lambda probes: iter(()))


def rows_only_as_in_the_data(patch):
    patch.setattr(probes, "SCALES", (1,))
    patch.setattr(probes, "FEW_SCALES", (1,))


def nothing_more(patch):
    patch.setattr(Probes, "_reasons_of_one_more", lambda probes: iter(()))
    no_altered_rows(patch)
    no_altered_values(patch)


def extras_of_one_size(patch):
    patch.setattr(constructed_graphs, "_further_extras", dict)


def one_alone(patch):
    patch.setattr(probes, "CROWD", 1)


def values_left_as_they_are(patch):
    patch.setattr(probe_changes, "corrupt_values", lambda value, finite, generator: value)
    nothing_more(patch)


def edges_left_as_they_are(patch):
    patch.setattr(probe_changes, "rewired", lambda graph, side, generator: graph)
    patch.setattr(Probes, "_after_others", lambda probes, graph, scale: graph)
    nothing_more(patch)


def nothing_added(patch):
    patch.setattr(Probes, "_reasons_of_size", lambda probes: iter(()))
    nothing_more(patch)


def no_arcs_that_leave(patch):
    patch.setattr(Probes, "_outgoing_moves", lambda probe: iter(()))


def same_arcs_for_everybody(patch):
    patch.setattr(probes, "with_other_sinks", lambda graph, table, is_sender, generator: iter((graph, graph)))
    patch.setattr(probes, "with_new_sinks", lambda graph, rows, generator: graph)


def only_small_graphs(patch):
    patch.setattr(probes, "MOST_ROWS", 50)
    patch.setattr(user_graphs, "LEAST_ROWS", 50)
    nothing_more(patch)


def no_more_digits(patch):
    patch.setattr(Probes, "_double_adapter", None)


def rounding_forgives(patch):
    patch.setattr(Probe, "moved", lambda probe, change, here=None, there=None, bits=False: False)


def no_second_look(patch):
    patch.setattr(Probe, "is_stateless", lambda probe, again=None: True)
    nothing_remembered(patch)


def any_class_will_do(patch):
    patch.setattr(auditing, "by_construction", lambda model: True)
    patch.setattr(Probes, "is_as_expected", lambda probe: True)


def nothing_remembered(patch):
    patch.setattr(probes, "state_of", lambda model: {})


def tensors_are_not_state(patch):
    plain = state._text
    patch.setattr(state, "_text", lambda value: "" if isinstance(value, torch.Tensor) else plain(value))


def only_attributes_are_state(patch):
    patch.setattr(state, "_parts_of_function", lambda function: iter(()))


def modules_are_not_state(patch):
    patch.setattr(state, "_parts_of_module", lambda module: iter(()))


def nothing_behind(patch):
    patch.setattr(state, "_parts_behind", lambda value: iter(()))


def sparse_numbers_are_not_state(patch):
    patch.setattr(state, "_SPARSE", {})


def instructions_are_not_state(patch):
    patch.setattr(state, "_instructions", lambda code: "")


def named_defaults_are_not_state(patch):
    plain = state._parts_of_function

    def other_parts(function):
        return (part for part in plain(function) if part[0] != "'s named defaults")

    patch.setattr(state, "_parts_of_function", other_parts)


def no_chance(patch):
    patch.setattr(state, "_digest", lambda value: "")


def only_made_up_graphs(patch):
    patch.setattr(probes, "one_subgraph", lambda *given: None)


def without(extra):
    def mistake(patch):
        kept = {name: component for name, component in constructed_graphs.EXTRAS.items() if name not in extra}
        patch.setattr(constructed_graphs, "EXTRAS", kept)

    mistake.__name__ = f"without {extra[0]}"
    return mistake


def one_look_is_enough(patch):
    patch.setattr(auditing, "by_construction", lambda model: True)

    def unchanged(probes, probe):
        everyone = torch.arange(len(probe.base))
        return Comparison(probe.graph, everyone, everyone)

    patch.setattr(Probes, "_all_changes", unchanged)


def extreme(x, hidden, edge_index):
    return hidden * (x.nan_to_num(0, 0, 0).abs().amax() > 50).to(x.dtype)


SLY = {
    "only if somebody is large": leaking(extreme),
    "a bounded part of the mean": leaking(lambda x, h, e: 1e-8 * h.nan_to_num().clamp(-1, 1).mean(0)),
    **{name: asking(name) for name in WHOLE_GRAPH},
    **{name: of_values(name) for name in VALUES},
    **{name: of_structure(name) for name in STRUCTURE},
    **WEIGHTS,
    "somebody with 60 to 100 neighbours": leaking(lambda x, h, e: h * float(60 <= degrees(e, x).max() <= 100)),
    "a median that was shifted": leaking(lambda x, h, e: h * float(5 < x.median() <= 50)),
    **{f"count in {place}": make for place, make in (REMEMBERING | MEMORY).items()},
    "one node more": at_exactly(DATA.num_nodes + 1),
    **ASLEEP,
}

MUTATIONS = [
    (harmless_corruption, "dense matrix"),
    (no_finite_corruption, "only if somebody is large"),
    (values_left_as_they_are, "weights by the largest"),
    (edges_left_as_they_are, "largest degree"),
    (nothing_added, "DropEdge with a fixed seed"),
    (nothing_added, "number of nodes"),
    (no_arcs_that_leave, "those who listen"),
    (same_arcs_for_everybody, "out-degree by softmax"),
    (only_small_graphs, "polite to small graphs"),
    (no_more_digits, "number of nodes"),
    (rounding_forgives, "a tiny part of the mean"),
    (rounding_forgives, "a bounded part of the mean"),
    (no_second_look, "chance"),
    (any_class_will_do, "polite to small graphs"),
    (one_look_is_enough, "mean of all"),
    (nothing_more, "parallel edges"),
    (nothing_more, "every edge leads both ways"),
    (nothing_more, "one node more"),
    (only_made_up_graphs, "one node more"),
    (without(["parallel edge"]), "parallel edges"),
    (no_altered_rows, "bytes"),
    (no_altered_rows, "a row with one number"),
    (rows_only_as_in_the_data, "percentages"),
    (rows_only_as_in_the_data, "weights in per cent"),
    (one_alone, "a median that was shifted"),
    (no_altered_values, "weights in per cent"),
    (extras_of_one_size, "somebody with 60 to 100 neighbours"),
    (extras_of_one_size, "many triangles"),
    (without(["chain"]), "a long way"),
    (nothing_remembered, "count in a list"),
    (tensors_are_not_state, "count in a buffer"),
    (only_attributes_are_state, "count in a global variable"),
    (no_chance, "count in torch's random numbers"),
    (modules_are_not_state, "count in a module of one's own"),
    (nothing_behind, "count in a function that waits, of a module"),
    (sparse_numbers_are_not_state, "count in a sparse tensor"),
    (instructions_are_not_state, "count in a constant of a function"),
    (named_defaults_are_not_state, "count in the default of an argument that can only be named"),
]


def no_bands(patch):
    patch.setattr(Probes, "_reasons_of_bands", lambda probes, x, graph: iter(()))
    patch.setattr(Probes, "_band_of_values_moves", lambda probes, probe, name, everyone: False)


def not_many(patch):
    patch.setattr(Probes, "_reasons_of_many", lambda probes: iter(()))


def nothing_outside(patch):
    patch.setattr(auditing, "inspect_outside_world", lambda model: iter(()))


LATER = [
    (no_bands, "a band of the largest feature"),
    (no_bands, "a band far above the data"),
    (not_many, "more than fifty times the nodes"),
    (not_many, "a hub of five thousand"),
    (nothing_outside, "the clock"),
    (nothing_outside, "a file"),
]


@pytest.mark.parametrize(("mistake", "name"), LATER, ids=lambda part: getattr(part, "__name__", part))
def test_without_a_later_look_a_model_sleeps_on(monkeypatch, mistake, name):
    assert is_refused(name, NodeCentric(5))
    mistake(monkeypatch)
    assert not is_refused(name, NodeCentric(5))


@pytest.mark.parametrize(("mistake", "name"), MUTATIONS, ids=lambda part: getattr(part, "__name__", part))
def test_a_broken_probe_lets_a_model_slip_through(monkeypatch, mistake, name):
    # Arcs that leave nodes shift places and numbers too: they are not asked about in the edge-centric division.
    is_edge_centric = mistake is nothing_added or mistake.__name__ == "without chain"
    division = EdgeCentric(5) if is_edge_centric else NodeCentric(5)
    for later in (no_bands, not_many, nothing_outside):  # which find some of the same models
        later(monkeypatch)
    assert is_refused(name, division)
    with monkeypatch.context() as patch:
        planted = Planted(patch)
        mistake(planted)
        assert not is_refused(name, division)
        planted.require_reached()


def test_a_list_without_pins_would_trust_any_text(monkeypatch):
    layer = pyg.GCNConv(WIDTH, CLASSES).eval()
    monkeypatch.setitem(known_layers.READ, "nn/conv/gcn_conv.py", "0" * 64)
    assert not known_layers.by_construction(layer)
    monkeypatch.setattr(known_layers, "sources_were_read", lambda: True)
    assert known_layers.by_construction(layer)


def whatever_is_called(patch):
    patch.setattr(known_layers, "is_original", lambda classes, functions: True)


def whatever_an_instance_has(patch):
    patch.setattr(known_layers, "_is_as_built", lambda layer: True)


def any_function_of_the_name(patch):
    patch.setattr(original_code, "_fingerprint", lambda code: code.co_name)
    patch.setattr(original_code, "_fingerprints_of_file", original_code._fingerprints_of_file.__wrapped__)


def any_module(patch):
    patch.setattr(original_code, "_is_ours", lambda module: True)


def another_gcn_norm(patch):
    patch.setattr(gcn_conv, "gcn_norm", gcn_norm)


def another_message(patch):
    def message(self, x_j, edge_weight):
        return x_j

    code = message.__code__.replace(co_qualname="GCNConv.message")
    patch.setattr(pyg.GCNConv.message, "__code__", code)


def an_activation_of_ones_own(patch):
    patch.setattr(pyg.GCN, "__doc__", "nothing is exchanged")


class Twice:
    def __call__(self, x):
        return x + x


TRUST = [
    (whatever_is_called, another_gcn_norm, "relu"),
    (any_module, another_gcn_norm, "relu"),
    (any_function_of_the_name, another_message, "relu"),
    (whatever_an_instance_has, an_activation_of_ones_own, Twice()),
]


@pytest.mark.parametrize(("mistake", "tampering", "act"), TRUST, ids=lambda part: getattr(part, "__name__", "act"))
def test_a_broken_list_would_trust_what_nobody_read(monkeypatch, mistake, tampering, act):
    model = pyg.GCN(WIDTH, 8, 2, CLASSES, act=act).eval()
    tampering(monkeypatch)
    assert not known_layers.by_construction(model)
    mistake(monkeypatch)
    assert known_layers.by_construction(model)


def blind_to_sums(patch):
    patch.setattr(edge_features, "SUSPICIOUS", 2)


def blind_to_equations(patch):
    patch.setattr(edge_features, "SOLVED", 2)


def blind_to_counts(patch):
    patch.setattr(edge_features, "CORRELATED", 2)


def blind_to_names(patch):
    patch.setattr(edge_features, "LEFT_BY_TRANSFORMS", ())


COMPUTED_FROM_EDGES = [
    (blind_to_sums, "means over neighbours"),
    (blind_to_equations, "Laplacian eigenvectors"),
    (blind_to_equations, "PageRank"),
    (blind_to_counts, "clustering coefficients"),
    (blind_to_counts, "returns of a random walk"),
    (blind_to_names, "what a transform left"),
]


@pytest.mark.parametrize(("mistake", "name"), COMPUTED_FROM_EDGES, ids=lambda part: getattr(part, "__name__", part))
def test_a_broken_inspection_lets_a_computed_column_through(monkeypatch, mistake, name):
    data = left_by_a_transform() if name not in COMPUTED else COMPUTED[name][0]()
    assert list(edge_features.inspect_edge_features(data))
    mistake(monkeypatch)
    assert not list(edge_features.inspect_edge_features(data))
