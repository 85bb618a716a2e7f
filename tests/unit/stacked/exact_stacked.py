"""Stacked votes in 60 decimal digits."""

from decimal import Decimal, localcontext
from typing import Any, NamedTuple

from torch import Tensor, nn

from agnncert.stacked.model import LOWEST, StackedModel

DIGITS = 60
Row = list[Decimal]


class ExactNumbers(NamedTuple):
    """What is counted for each node, before it is rounded to steps."""

    prior: list[Row]
    gate: list[Row]
    vote: list[Row]


def exact_numbers(model: StackedModel, x: Tensor) -> ExactNumbers:
    """Scores, factors and votes of a model on features, without edge values, in decimal numbers."""
    with localcontext() as context:
        context.prec = DIGITS
        logits = [_own_logits(model, _row(features)) for features in x]
        prior = [_prior(model, row) for row in logits]
        gate = [_gate(model, row) for row in logits]
        vote = [_softmax(_scores(model, row))[:-1] for row in logits]
        return ExactNumbers(prior, gate, vote)


def _row(values: Tensor) -> Row:
    return [Decimal(value) for value in values.detach().double().tolist()]


def _linear(layer: Any, row: Row) -> Row:
    products = [sum((a * b for a, b in zip(_row(weight), row, strict=True)), Decimal(0)) for weight in layer.weight]
    return [product + bias for product, bias in zip(products, _row(layer.bias), strict=True)]


def _network(network: Any, row: Row) -> Row:
    for layer in network:
        row = _linear(layer, row) if isinstance(layer, nn.Linear) else [max(value, Decimal(0)) for value in row]
    return row


def _softmax(row: Row) -> Row:
    largest = max(row)
    shares = [(value - largest).exp() for value in row]
    return [share / sum(shares) for share in shares]


def _own_logits(model: StackedModel, features: Row) -> Row:
    parts = [[share.ln() for share in _softmax(_linear(own.model, features))] for own in model.own]
    means = [sum(values) / len(parts) for values in zip(*parts, strict=True)]
    return [max(mean, Decimal(LOWEST)) for mean in means]


def _prior(model: StackedModel, logits: Row) -> Row:
    scale = Decimal(model.own_scale.item()).exp()
    score = [constant + scale * value for constant, value in zip(_row(model.constant), logits, strict=True)]
    if model.own_net is None:
        return score
    return [a + b for a, b in zip(score, _network(model.own_net, logits), strict=True)]


def _gate(model: StackedModel, logits: Row) -> Row:
    if model.gate_net is not None:
        return [1 / (1 + (-value).exp()) for value in _network(model.gate_net, logits)]
    factor = (
        min(Decimal(model.mean_scale.item()).exp(), Decimal(256)) if model.defence.combine == "mean" else Decimal(1)
    )
    return [factor] * model.num_classes


def _scores(model: StackedModel, logits: Row) -> Row:
    given = [*(Decimal(model.vote_scale.item()) * value for value in logits), Decimal(model.abstain.item())]
    return [a + b for a, b in zip(_network(model.vote_net, logits), given, strict=True)]
