"""With a probe of the audit broken on purpose, a model of the unfit zoo slips through: no probe is there for nothing."""

import warnings

import pytest
import torch
import torch_geometric.nn as pyg

from agnncert.auditing import known_layers, probe_graphs, probes
from agnncert.auditing import model_audit as auditing
from agnncert.auditing.model_audit import audit
from agnncert.auditing.probes import Probe, Probes
from agnncert.divisions.base import Division
from agnncert.divisions.edge import EdgeCentric
from agnncert.divisions.node import NodeCentric

from ..support.local_zoo import CLASSES, WIDTH, zoo_data
from ..support.unfit_zoo import UNFIT, leaking

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
        probe_graphs.Table, "corrupt", lambda table, count, finite, generator: table.borrowed(count, generator)
    )


def no_finite_corruption(patch):
    corrupt = probe_graphs.Table.corrupt
    patch.setattr(
        probe_graphs.Table, "corrupt", lambda table, count, finite, generator: corrupt(table, count, False, generator)
    )
    patch.setattr(probe_graphs.Table, "large", probe_graphs.Table.borrowed)


def values_left_as_they_are(patch):
    patch.setattr(probes, "corrupt_values", lambda value, finite, generator: value)


def edges_left_as_they_are(patch):
    patch.setattr(Probes, "_rewired", lambda probe, graph, side: graph)
    patch.setattr(Probes, "_behind", lambda probe, near, scale: near)


def nothing_added(patch):
    patch.setattr(Probes, "_resized", lambda probe: iter(()))


def no_arcs_that_leave(patch):
    patch.setattr(Probes, "_outgoing_moves", lambda probe: iter(()))


def same_arcs_for_everybody(patch):
    patch.setattr(Probes, "_other_sinks", lambda probes, probe, speaks: iter((probe.graph, probe.graph)))
    patch.setattr(Probes, "_with_sinks", lambda probes, probe: iter((probe.graph, probe.graph)))


def only_small_graphs(patch):
    patch.setattr(probes, "MOST_ROWS", 50)
    patch.setattr(probe_graphs, "LEAST_ROWS", 50)


def no_more_digits(patch):
    patch.setattr(Probes, "_double_call", None)


def rounding_forgives(patch):
    patch.setattr(Probe, "moved", lambda probe, change, here=None, there=None, bits=False: False)


def no_second_look(patch):
    patch.setattr(Probe, "is_stateless", lambda probe: True)


def any_class_will_do(patch):
    patch.setattr(auditing, "by_construction", lambda model: True)
    only_small_graphs(patch)


def extreme(x, hidden, edge_index):
    return hidden * (x.nan_to_num(0, 0, 0).abs().amax() > 50).to(x.dtype)


SLY = {
    "only if somebody is large": leaking(extreme),
    "a bounded part of the mean": leaking(lambda x, h, e: 1e-8 * h.nan_to_num().clamp(-1, 1).mean(0)),
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
]


@pytest.mark.parametrize(("mistake", "name"), MUTATIONS, ids=lambda part: getattr(part, "__name__", part))
def test_a_broken_probe_lets_a_model_slip_through(monkeypatch, mistake, name):
    # Arcs that leave nodes shift places and numbers too: they are not asked about in the edge-centric division.
    division = EdgeCentric(5) if mistake is nothing_added else NodeCentric(5)
    assert is_refused(name, division)
    with monkeypatch.context() as patch:
        mistake(patch)
        assert not is_refused(name, division)


def test_a_list_without_pins_would_trust_any_text(monkeypatch):
    layer = pyg.GCNConv(WIDTH, CLASSES).eval()
    monkeypatch.setitem(known_layers.READ, "nn/conv/gcn_conv.py", "0" * 64)
    assert not known_layers.by_construction(layer)
    monkeypatch.setattr(known_layers, "sources_were_read", lambda: True)
    assert known_layers.by_construction(layer)
