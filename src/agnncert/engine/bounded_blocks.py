"""Rows of a graph in blocks that stay in the processor's cache.

A layer reads nothing of other rows but what they send. So rows that send nothing are evaluated block by block, through
all layers at once. The blocks of rows that send wait for each other where a layer sends: all of them finish the layer
before any begins with the next.
"""

from collections.abc import Callable, Generator
from itertools import pairwise
from typing import NamedTuple

import torch
from torch import Tensor

from agnncert.engine.bounded_arcs import Arcs, Received, Sent
from agnncert.engine.bounded_rows import BoundedRows

BLOCK_ROWS = 4096  # rows that are evaluated at a time: a hidden layer of 64 then takes a megabyte

# What a layer returns, once it has said what its rows send, and has been told what all rows sent.
Exchange = Generator[Sent, Received, BoundedRows]


class RowBlock(NamedTuple):
    """Some rows of a graph.

    Attributes:
        rows: Which rows.
        arcs: The edges to them. They come from positions among the rows that send.
        arcs_without_loops: The same without loops.
    """

    rows: Tensor
    arcs: Arcs
    arcs_without_loops: Arcs


class RowBlocks(NamedTuple):
    """All rows of a graph.

    Attributes:
        sending: Those that edges come from.
        others: All others.
    """

    sending: list[RowBlock]
    others: list[RowBlock]


def evaluate_together(exchange: Exchange) -> BoundedRows:
    """Returns what a model computes of all rows at once."""
    try:
        sent = next(exchange)
        while True:
            sent = exchange.send(Received(sent, sent))
    except StopIteration as end:
        rows: BoundedRows = end.value
        return rows


def evaluate_in_blocks(
    blocks: RowBlocks, begin: Callable[[RowBlock], Exchange], finish: Callable[[Tensor, BoundedRows], None]
) -> None:
    """Computes a model block by block.

    Args:
        blocks: The rows.
        begin: Begins to compute the logits of a block.
        finish: Called with the rows of each block and their logits.
    """
    if not blocks.sending:
        for block in blocks.others:
            finish(block.rows, evaluate_together(begin(block)))
        return
    sent_by_layer = _evaluate_in_step(blocks.sending, begin, finish, keeps_all=bool(blocks.others))
    for block in blocks.others:
        exchange = begin(block)
        try:
            own = next(exchange)
            for sent in sent_by_layer:
                own = exchange.send(Received(own, sent))
        except StopIteration as end:
            finish(block.rows, end.value)


def _evaluate_in_step(
    blocks: list[RowBlock],
    begin: Callable[[RowBlock], Exchange],
    finish: Callable[[Tensor, BoundedRows], None],
    keeps_all: bool,
) -> list[Sent]:
    """Computes the blocks of rows that send, layer by layer, and returns what they sent in each layer.

    Args:
        blocks: The blocks.
        begin: As in :func:`evaluate_in_blocks`.
        finish: As in :func:`evaluate_in_blocks`.
        keeps_all: Whether what was sent in all layers is asked for, or only in the last.
    """
    exchanges = [begin(block) for block in blocks]
    ends = torch.tensor([0, *(len(block.rows) for block in blocks)]).cumsum(0).tolist()
    parts = [slice(first, end) for first, end in pairwise(ends)]
    sent_by_layer: list[Sent] = []
    while True:
        sent: Sent | None = None
        for block, exchange, part in zip(blocks, exchanges, parts, strict=True):
            try:
                if sent_by_layer:
                    before = sent_by_layer[-1]
                    own = exchange.send(Received(Sent(before.values[part], before.bounds[part]), before))
                else:
                    own = next(exchange)
            except StopIteration as end:
                finish(block.rows, end.value)
                continue
            if sent is None:
                sent = Sent(own.values.new_empty(ends[-1], own.values.size(1)), own.bounds.new_empty(ends[-1], 2))
            sent.values[part] = own.values
            sent.bounds[part] = own.bounds
        if sent is None:
            return sent_by_layer
        sent_by_layer = [*sent_by_layer, sent] if keeps_all else [sent]


def row_blocks(arcs: Arcs, block_rows: int) -> RowBlocks:
    """Divides the rows of a graph into blocks.

    Args:
        arcs: The edges.
        block_rows: Number of rows of a block.
    """
    sends = torch.zeros(arcs.num_rows, dtype=torch.bool)
    sends[arcs.source] = True
    position = torch.cumsum(sends, 0) - 1
    without_loops = arcs.without_loops
    blocks: list[list[RowBlock]] = []
    for rows in (sends, ~sends):
        if not bool(rows.any()):
            blocks.append([])  # and not a block without rows: where no rows are left, no layer is kept for them
            continue
        some = _of_rows(arcs, rows, position, block_rows)
        others = some if without_loops is arcs else _of_rows(without_loops, rows, position, block_rows)
        index = torch.split(rows.nonzero().view(-1), block_rows)
        blocks.append([RowBlock(*parts) for parts in zip(index, some, others, strict=False)])
    return RowBlocks(*blocks)


def _of_rows(arcs: Arcs, rows: Tensor, position: Tensor, block_rows: int) -> list[Arcs]:
    """Returns the edges to some rows, in blocks of rows.

    Args:
        arcs: All edges.
        rows: Which rows.
        position: Position of each row among those that send.
        block_rows: Number of rows of a block.
    """
    leads_there = torch.repeat_interleave(rows, arcs.degree, output_size=len(arcs.source))
    source = position[arcs.source[leads_there]]
    degrees = torch.split(arcs.degree[rows], block_rows)
    sizes = [int(degree.sum()) for degree in degrees]
    return [Arcs(some, degree) for some, degree in zip(torch.split(source, sizes), degrees, strict=True)]
