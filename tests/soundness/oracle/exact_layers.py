"""Known layers in exact arithmetic: fractions for what is rational, and far more digits than float64 has for the rest."""

from collections.abc import Callable
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

from torch import Tensor, nn

from agnncert.models import gnn

DIGITS = 120
Rows = list[list[Fraction]]


def fractions(values: Tensor) -> Rows:
    return [[Fraction(entry) for entry in row] for row in values.double().tolist()]


def root(value: Fraction) -> Fraction:
    """The square root, to about 120 digits."""
    with localcontext() as context:
        context.prec = DIGITS
        decimal = Decimal(value.numerator) / Decimal(value.denominator)
        return Fraction(decimal.sqrt())


def linear(rows: Rows, layer: Any, bias: bool = True) -> Rows:
    weight = fractions(layer.weight.detach())
    shift = [Fraction(0)] * len(weight)
    if bias and layer.bias is not None:
        shift = [Fraction(entry) for entry in layer.bias.detach().double().tolist()]
    return [
        [
            sum((a * b for a, b in zip(row, line, strict=True)), offset)
            for line, offset in zip(weight, shift, strict=True)
        ]
        for row in rows
    ]


def added(*parts: Rows) -> Rows:
    return [[sum(entries, Fraction(0)) for entries in zip(*rows, strict=True)] for rows in zip(*parts, strict=True)]


def scaled(row: list[Fraction], factor: Fraction) -> list[Fraction]:
    return [factor * entry for entry in row]


def summed(rows: Rows, edges: list[tuple[int, int]], weight: Callable[[int, int], Fraction]) -> Rows:
    total = [[Fraction(0)] * len(rows[0]) for _ in rows]
    for source, head in edges:
        moved = scaled(rows[source], weight(source, head))
        total[head] = [a + b for a, b in zip(total[head], moved, strict=True)]
    return total


def biased(rows: Rows, bias: Tensor) -> Rows:
    shift = [Fraction(entry) for entry in bias.detach().double().tolist()]
    return [[a + b for a, b in zip(row, shift, strict=True)] for row in rows]


def relu(rows: Rows) -> Rows:
    return [[max(entry, Fraction(0)) for entry in row] for row in rows]


def layer_norm(rows: Rows, layer: nn.LayerNorm) -> Rows:
    out = []
    for row in rows:
        mean = sum(row, Fraction(0)) / len(row)
        variance = sum(((entry - mean) ** 2 for entry in row), Fraction(0)) / len(row)
        spread = root(variance + Fraction(layer.eps))
        weights = [Fraction(entry) for entry in layer.weight.detach().double().tolist()]
        shifts = [Fraction(entry) for entry in layer.bias.detach().double().tolist()]
        out.append([(e - mean) / spread * w + b for e, w, b in zip(row, weights, shifts, strict=True)])
    return out


def exact_logits(model: Any, x: Tensor, edge_index: Tensor) -> Rows:
    """The logits of a built-in gcn, sage or gin of ReLU layers in the node task."""
    rows = fractions(x)
    num_nodes = len(rows)
    edges = [(s, h) for s, h in edge_index.t().tolist()]
    in_degree = [sum(h == node for _, h in edges) for node in range(num_nodes)]
    name = model.config["name"]
    for k, conv in enumerate(model.convs):
        if name == "gcn":
            plain = [(s, h) for s, h in edges if s != h] + [(v, v) for v in range(num_nodes)]
            degree = [sum(h == node for _, h in plain) for node in range(num_nodes)]
            rows = linear(rows, conv.lin, bias=False)
            rows = summed(rows, plain, lambda s, h, d=degree: 1 / root(Fraction(d[s] * d[h])))
            rows = biased(rows, conv.bias)
        elif name == "sage":
            own = linear(rows, conv.lin_r)
            sent = linear(rows, conv.lin_l, bias=False)
            mean = summed(sent, edges, lambda s, h: Fraction(1, in_degree[h]))
            rows = added(biased(mean, conv.lin_l.bias), own)
        elif name == "gin":
            total = summed(rows, edges, lambda s, h: Fraction(1))
            factor = 1 + Fraction(float(conv.eps))
            rows = added(total, [scaled(row, factor) for row in rows])
            first, norm, _, last = conv.nn
            rows = linear(relu(layer_norm(linear(rows, first), norm)), last)
        else:
            assert isinstance(model, gnn.GNN)
            rows = linear(rows, conv)
        if k < len(model.norms):
            rows = relu(rows)
    return rows
