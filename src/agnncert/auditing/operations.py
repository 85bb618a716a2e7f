"""How the operations of a computation grow with its size, so that an audit can avoid what would take very long.

Operations are counted, not timed: the same model is audited in the same way on a busy machine. Only those of torch are
counted. A loop in Python, or in numpy, may take longer than its count says.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

STEEP = 1.5  # power from which on operations grow much faster than the graph
RATIO = 4  # between the two sizes that are counted
# Decompositions take about as many operations as a matrix has numbers, times its width.
_DECOMPOSITIONS = ("linalg", "svd", "cholesky", "inverse", "geqrf", "cdist")


@dataclass(frozen=True)
class Growth:
    """The number of operations as a power of the size.

    Attributes:
        size: A size.
        operations: Operations for that size.
        exponent: The power with which they grow.
    """

    size: int
    operations: int
    exponent: float

    def predicted(self, size: int) -> float:
        """Returns the operations that another size would take."""
        return self.operations * math.pow(size / self.size, self.exponent)

    def affordable(self, operations: float) -> int:
        """Returns the largest size that takes at most this many operations."""
        return int(self.size * math.pow(operations / self.operations, 1 / max(1.0, self.exponent)))


def growth_of_operations(run: Callable[[int], None], size: int) -> Growth:
    """Counts the operations of a computation at two sizes, each without those of the smallest size.

    Args:
        run: The computation. It takes its size.
        size: The larger of the two sizes. The other is a quarter of it.
    """
    fixed = _counted(run, 1)
    smaller = max(1, _counted(run, size // RATIO) - fixed)
    larger = max(1, _counted(run, size) - fixed)
    return Growth(size, larger, math.log(larger / smaller) / math.log(RATIO))


def _counted(run: Callable[[int], None], size: int) -> int:
    operations = _Operations()
    with operations:
        run(size)
    return operations.count


class _Operations(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Counts what torch does: numbers that are read and written, and the multiplications of matrices."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.count = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if not func.is_view:
            self.count += _operations_of(func, args, kwargs or {}, result)
        return result


def _operations_of(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> int:
    tensors = [*_tensors(args), *_tensors([result])]
    numbers = sum(tensor.numel() for tensor in tensors)
    count_flops = flop_registry.get(func.overloadpacket)
    if count_flops is not None:
        return numbers + int(count_flops(*args, **kwargs, out_val=result))
    if any(part in func.overloadpacket.__name__ for part in _DECOMPOSITIONS):
        return numbers * max((tensor.size(-1) for tensor in tensors if tensor.dim()), default=1)
    return numbers


def _tensors(values: Iterable[Any]) -> Iterable[Tensor]:
    for value in values:
        if isinstance(value, Tensor):
            yield value
        elif isinstance(value, list | tuple):
            yield from _tensors(value)
