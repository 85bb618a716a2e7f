"""Probes of the models without edges, beyond the audit: rows as only an attacker would inject them, and rounding.

An injected node may have any features. The models see it in one batch with all other nodes, so a row of zeros, of huge,
tiny or constant numbers must not change what they say about another row. What they say about such a row itself may even
be not finite: it abstains then. Certificates count in steps of a vote, so that numbers that are computed twice must lie
much closer than a step.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from agnncert.errors import ModelContractError
from agnncert.stacked.model import GraphFree, StackedModel
from agnncert.stacked.record import STEPS

FEW_ROWS = 48
CLOSE = 1e-9  # how far apart, relative to the largest, two computations of one logit in float64 may lie
MOST_STEPS = 1 / 16  # how far apart two computations of a score or vote may lie before it is rounded
SMALL_CHANGE, LARGE_CHANGE = 1e-10, 1e-3  # a float32 cannot see the first one

Logits = Callable[[Tensor], Tensor]


@torch.no_grad()
def probe_own(model: StackedModel, x: Tensor) -> None:
    """Probes the models without edges of a stacked model, in float64 as certificates evaluate them.

    Args:
        model: The model.
        x: Features of the nodes, shape ``[num_nodes, num_features]``.

    Raises:
        ModelContractError: A strange row changes what a model says about another row, a model fails on such a row, or
            its numbers are not exact enough to be counted in steps.
    """
    if not len(model.own) or not len(x):
        return
    exact = model._in_float64()
    rows = _spread_over(x.double(), FEW_ROWS)
    for number, own in enumerate(exact.own):
        assert isinstance(own, GraphFree)
        _probe_strange_rows(f"own.{number}", own, rows)
        _probe_precision(f"own.{number}", own, rows)
    _probe_rounding(exact, x.double())


def _spread_over(x: Tensor, number: int) -> Tensor:
    """Returns at most this many rows, spread evenly over all of them."""
    place = torch.linspace(0, len(x) - 1, min(number, len(x))).round().long()
    return x[place]


def strange_rows(rows: Tensor) -> dict[str, Tensor]:
    """Returns rows that an attacker might inject, by what they are, each of shape ``[1, num_features]``."""
    first = rows[:1]
    largest = rows.abs().max().clamp(min=1.0)
    alternating = torch.where(torch.arange(rows.size(1)) % 2 == 0, 1.0, -1.0).double()[None]
    return {
        "a row of zeros": torch.zeros_like(first),
        "a row of ones": torch.ones_like(first),
        "a constant row": torch.full_like(first, float(rows.mean())),
        "a negative constant row": torch.full_like(first, -float(largest)),
        "a row whose sum is zero": alternating,
        "a negated row": -first,
        "a huge row": first * 1e30 + 1e30,
        "a huge negative row": -first * 1e30 - 1e30,
        "the largest row": torch.full_like(first, torch.finfo(torch.float32).max),
        "a tiny row": first * 1e-30 + 1e-30,
        "a row of the smallest numbers": torch.full_like(first, torch.finfo(torch.float64).tiny),
        "a row with one large number": torch.cat([first[:, :1] + 1e3 * largest, first[:, 1:]], dim=1),
    }


def _probe_strange_rows(name: str, own: Logits, rows: Tensor) -> None:
    plain = _called(name, own, rows, "rows of the data")
    strange = strange_rows(rows)
    for what, row in strange.items():
        alone = _called(name, own, row, what)
        together = _called(name, own, torch.cat([rows, row]), what)
        if not _close(together[:-1], plain):
            raise ModelContractError(
                f"{name}: {what} among the nodes changes what the model says about other nodes. An injected node could "
                "do so, too: each row must be classified by its own features."
            )
        if not _close(together[-1:], alone):
            raise ModelContractError(f"{name}: {what} is classified in another way among other rows than alone.")
    everything = _called(name, own, torch.cat([*strange.values(), rows]), "all of these rows")
    if not _close(everything[len(strange) :], plain):
        raise ModelContractError(f"{name}: several strange rows change what the model says about other nodes.")


def _called(name: str, own: Logits, rows: Tensor, what: str) -> Tensor:
    try:
        logits = own(rows)
    except Exception as error:
        raise ModelContractError(
            f"{name} fails on {what} ({type(error).__name__}: {error}). A node with such features can be injected, and "
            "the model must answer: return any finite numbers, or NaN to abstain."
        ) from error
    if logits.dtype != torch.float64:
        raise ModelContractError(
            f"{name} answers in {logits.dtype} where features and weights are float64: scores are counted in steps of "
            f"1 / {STEPS:,} of a vote, for which that is not exact enough. Do not convert numbers in forward."
        )
    return logits


def _close(a: Tensor, b: Tensor) -> bool:
    """Whether two results are the same up to rounding; NaN is the same as NaN."""
    finite = b[b.isfinite()]
    largest = float(finite.abs().max()) if len(finite) else 0.0
    return torch.allclose(a, b, rtol=CLOSE, atol=CLOSE * largest, equal_nan=True)


def _probe_precision(name: str, own: Logits, rows: Tensor) -> None:
    """Refuses a model that computes with fewer digits than it is given, and so is not exact enough for steps."""
    before = own(rows)
    moved_little = own(rows * (1 + SMALL_CHANGE))
    moved_much = own(rows * (1 + LARGE_CHANGE))
    if torch.equal(moved_little, before) and not torch.allclose(moved_much, before, rtol=CLOSE, equal_nan=True):
        raise ModelContractError(
            f"{name} does not see a relative change of {SMALL_CHANGE:g} in any feature, though it sees one of "
            f"{LARGE_CHANGE:g}: it computes with fewer digits than float64, and its scores are not exact enough to be "
            f"counted in steps of 1 / {STEPS:,} of a vote. Do not convert numbers in forward."
        )


def _probe_rounding(exact: StackedModel, x: Tensor) -> None:
    """Computes scores and votes again, row by row and in another order, and compares them before they are rounded."""
    logits = exact.own_logits(x)
    again = exact.own_logits(x.flip(0)).flip(0)
    few = torch.linspace(0, len(x) - 1, min(FEW_ROWS, len(x))).round().long()
    again[few] = torch.cat([exact.own_logits(x[row : row + 1]) for row in few.tolist()])
    apart = _steps_apart(exact, logits, again)
    if apart > MOST_STEPS:
        raise ModelContractError(
            f"computing the same score twice, in another order of rows, gave numbers {apart:.3g} steps of 1 / "
            f"{STEPS:,} of a vote apart. Certificates allow for one step on any machine, so more than {MOST_STEPS:g} "
            "is refused: scale the features, or train again with more weight decay."
        )


def _steps_apart(exact: StackedModel, logits: Tensor, again: Tensor) -> float:
    """Returns how far scores, factors and votes lie apart that follow from two computations of the logits, in steps."""
    both = [exact.prior(logits), exact.gate(logits)], [exact.prior(again), exact.gate(again)]
    if not exact.edge_channels:
        no_edges = torch.zeros((2, 0), dtype=torch.int64)
        both[0].append(exact.node_votes(logits, no_edges))
        both[1].append(exact.node_votes(again, no_edges))
    apart = 0.0
    for first, second in zip(*both, strict=True):
        difference = (first - second).abs()
        apart = max(apart, float(difference[~difference.isnan()].max()) if (~difference.isnan()).any() else 0.0)
    return apart * STEPS
