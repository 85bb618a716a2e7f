"""``Shake``: numbers moved by some units of rounding, to see how far rounding moves what is computed from them."""

from dataclasses import dataclass

import torch
from torch import Tensor

IN_CACHE = 2**17  # numbers


def random_signs(count: int, seed: int) -> Tensor:
    """Random numbers 1 and -1."""
    return 2.0 * torch.randint(0, 2, (count,), generator=torch.Generator().manual_seed(seed)) - 1.0


@dataclass(frozen=True)
class RoundingNoise:
    """Moves numbers by the share ``by``, up or down at random."""

    by: float
    seed: int

    def perturb_all(self, value: Tensor, salt: int = 0) -> Tensor:
        """Every number moved in a direction of its own, whole or not."""
        sign = random_signs(value.numel(), 1000 * self.seed + salt).view_as(value)
        return value * (1 + self.by * sign.to(value))

    def perturb_table(self, value: Tensor, salt: int = 0) -> Tensor:
        """Numbers that a model may read as codes: rows move, columns move, small whole numbers stay as they are."""
        if not value.is_floating_point() or value.numel() == 0:
            return value
        flat = value.reshape(value.size(0), -1)
        row, column = (
            1 + self.by * random_signs(n, 1000 * self.seed + salt + k).to(flat) for k, n in enumerate(flat.shape)
        )
        moved, step = torch.empty_like(flat), max(1, IN_CACHE // flat.size(1))
        for at in range(0, flat.size(0), step):  # blocks that stay in the processor's cache
            part = flat[at : at + step]
            torch.where(is_code(part), part, part * row[at : at + step, None] * column, out=moved[at : at + step])
        return moved.view_as(value)


def is_code(value: Tensor) -> Tensor:
    """Which numbers may be codes, such as rows of an embedding: these are exact, and so is what is read by them."""
    return (value.frac() == 0) & (value.abs() < 2.0**20)
