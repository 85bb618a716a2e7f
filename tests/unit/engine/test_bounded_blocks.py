"""Rows in blocks: while a block waits for the others, it keeps nothing that they do not need."""

import weakref

import pytest
import torch

from agnncert.engine.bounded_arcs import Arcs, Received, Sent
from agnncert.engine.bounded_blocks import row_blocks
from agnncert.engine.bounded_model import BoundedModel, Edges, FeatureRows
from agnncert.engine.error_bounds import SINGLE
from agnncert.engine.features import Features
from agnncert.models.build import build_model
from tests.support.graphs import random_data

RING = torch.tensor([[0, 1, 2, 3], [1, 2, 3, 0]])


@pytest.mark.parametrize("loop", [[], [2]], ids=["without loops", "with a loop"])
def test_edges_are_freed_with_their_last_user(loop):
    arcs = Arcs.of(torch.cat([RING, torch.tensor([loop, loop], dtype=torch.int64)], dim=1), 4)
    others = arcs.without_loops
    assert (others is arcs) == (not loop)
    assert len(others.source) == 4
    remembered = weakref.ref(arcs)
    del arcs, others
    assert remembered() is None, "a cycle of references keeps them until Python collects garbage"


def test_where_all_rows_send_there_are_no_other_blocks():
    blocks = row_blocks(Arcs.of(RING, 4), 3)
    assert [len(block.rows) for block in blocks.sending] == [3, 1]
    assert blocks.others == []


def test_where_no_row_sends_there_are_no_sending_blocks():
    blocks = row_blocks(Arcs.of(RING[:, :0], 4), 3)
    assert blocks.sending == []
    assert [len(block.rows) for block in blocks.others] == [3, 1]


class Remembering(BoundedModel):
    """A model that remembers the rows that its layers made, without keeping them."""

    def _activation(self, function, x):
        rows = super()._activation(function, x)
        self.made = weakref.ref(rows.values)
        return rows


@pytest.mark.parametrize("name", ["gcn", "sage"])
def test_a_block_that_waits_keeps_neither_what_it_sent_nor_what_nobody_needs(name):
    data = random_data(0, smallest=6, density=0.5)
    model = build_model(name, data, hidden_channels=8, num_layers=3, out_channels=3, seed=0).eval()
    arcs = Arcs.of(data.edge_index, len(data.x))
    edges = Edges(arcs, arcs.without_loops, data.edge_index, {})
    features = FeatureRows(Features(data.x.float()), torch.arange(len(data.x)))
    with torch.no_grad():
        remembering = Remembering(model, SINGLE)
        exchange = remembering._logits(model, features, edges, None)
        mail = [next(exchange)]
        for _ in range(2):
            copy = Sent(mail[0].values.clone(), mail[0].bounds.clone())
            own = weakref.ref(mail.pop().values)
            assert own() is None
            mail.append(exchange.send(Received(copy, copy)))
            assert (remembering.made() is None) == (name == "gcn"), "SAGE multiplies its input by a second weight"
            others = weakref.ref(copy.values)
            del copy
            assert others() is None
