"""Rounds what the networks of stacked votes compute to whole steps, and refuses what does not fit into them."""

from torch import Tensor

from agnncert.errors import ModelContractError
from agnncert.stacked.record import STEPS


def whole_steps(values: Tensor, what: str, largest: int) -> Tensor:
    """Returns numbers in whole steps of ``1 / STEPS`` of a vote, rounded to the nearest.

    Numbers are looked at before they are rounded: one that is not finite, or beyond the range of whole numbers, becomes
    any whole number. They are looked at again afterwards.

    Args:
        values: What the model computed, in votes.
        what: What these numbers are, for the error: "score", say.
        largest: The largest number of steps that certificates count with, in either direction.

    Raises:
        ModelContractError: A number is not finite, or beyond ``largest``.
    """
    values = values.detach().double()
    if not values.numel():
        return values.long()
    bad = ~values.isfinite()
    if bad.any():
        first = f", first for number {int(bad.nonzero()[0, 0])} of {len(values):,}" if values.dim() else ""
        raise ModelContractError(
            f"a {what} is not finite{first}: nothing can be counted with it. A model that divides by a sum or takes a "
            "logarithm of features may do so for rows of zeros: repair these rows, or leave these targets out."
        )
    low, high = float(values.min()), float(values.max())
    if max(-low, high) * STEPS > largest:
        raise ModelContractError(
            f"a {what} of {max(-low, high):g} votes is beyond {largest / STEPS:g}, up to which certificates count "
            "exactly: train the model again with more weight decay."
        )
    steps = (values * STEPS).round().long()
    if int(steps.min()) < -largest or int(steps.max()) > largest:
        raise ModelContractError(f"a {what} in whole steps is beyond {largest}: train again with more weight decay.")
    return steps
