"""``RoundingNoise`` perturbs numbers in their last bits, to show how far rounding moves what is computed from them."""

from dataclasses import dataclass

import torch
from torch import Tensor

NUMBERS_IN_CACHE = 2**17  # numbers of a block that stays in the processor's cache
CODES_BELOW = 2.0**20  # whole numbers from here on are no codes


@dataclass(frozen=True)
class RoundingNoise:
    """Perturbs numbers by a small share of themselves, up or down at random.

    Attributes:
        size: The share by which a number moves.
        seed: Seed of the random signs.
    """

    size: float
    seed: int

    def perturb_all(self, value: Tensor, salt: int = 0) -> Tensor:
        """Moves every number in a direction of its own, whole numbers too.

        Args:
            value: The numbers.
            salt: Tensors with different salts get independent signs.
        """
        return value * self._factors(value.numel(), salt, like=value).view_as(value)

    def perturb_table(self, value: Tensor, salt: int = 0) -> Tensor:
        """Moves whole rows and whole columns of a table; numbers that may be codes stay exactly as they are.

        Args:
            value: The table, one row per node or edge. Tensors that are not floating-point are returned as they are.
            salt: As in :meth:`perturb_all`.
        """
        if not value.is_floating_point() or value.numel() == 0:
            return value
        flat = value.reshape(value.size(0), -1)
        num_rows, num_columns = flat.shape
        row_factor = self._factors(num_rows, salt, like=flat)[:, None]
        column_factor = self._factors(num_columns, salt + 1, like=flat)
        perturbed = torch.empty_like(flat)
        step = max(1, NUMBERS_IN_CACHE // num_columns)
        for first in range(0, num_rows, step):
            rows = slice(first, first + step)
            block = flat[rows]
            torch.where(is_code(block), block, block * row_factor[rows] * column_factor, out=perturbed[rows])
        return perturbed.view_as(value)

    def _factors(self, count: int, salt: int, like: Tensor) -> Tensor:
        """Returns factors a little above or below 1, in the type and on the device of another tensor."""
        signs = random_signs(count, 1000 * self.seed + salt)
        return 1 + self.size * signs.to(like)


def random_signs(count: int, seed: int) -> Tensor:
    """Draws numbers that are 1 or -1."""
    generator = torch.Generator().manual_seed(seed)
    return 2.0 * torch.randint(0, 2, (count,), generator=generator) - 1.0


def is_code(value: Tensor) -> Tensor:
    """Tells which numbers may be codes, such as rows of an embedding: small whole numbers.

    Codes are exact, and so is what a model reads by them.
    """
    return (value.frac() == 0) & (value.abs() < CODES_BELOW)
