"""A pretend device: numbers that lie elsewhere, which fail as those of a GPU do when they meet others or become numpy.

Within ``far_away()`` tensors can be sent to ``FAR`` and brought back. A ``Far`` tensor knows its numbers, but whoever
mixes it with tensors in main memory, or asks for its memory, gets an error.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map

FAR = torch.device("meta")  # the one device besides main memory that torch has everywhere; here it has numbers
_INDEXED = (torch.ops.aten.index.Tensor, torch.ops.aten.index_put_.default, torch.ops.aten.index_put.default)


class Far(Tensor):
    """Numbers on the pretend device."""

    numbers: Tensor

    @staticmethod
    def __new__(cls, numbers: Tensor) -> "Far":
        far = Tensor._make_wrapper_subclass(
            cls, numbers.shape, strides=numbers.stride(), dtype=numbers.dtype, device=FAR
        )
        far.numbers = numbers
        return far

    @property
    def is_meta(self) -> bool:  # type: ignore[override]
        """What is asked before numbers are used."""
        return False

    def __repr__(self) -> str:
        return f"Far({self.numbers!r})"

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return on_device(func, args, kwargs or {})


def on_device(func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    tensors = list(_tensors((*args, *kwargs.values())))
    far = any(isinstance(value, Far) for value in tensors)
    wanted = kwargs.get("device")
    if wanted is not None:
        there = torch.device(wanted).type == FAR.type
        result = func(*_near(args), **_near({**kwargs, "device": torch.device("cpu")}))
        return Far(result) if there else result
    if not far:
        return func(*args, **kwargs)
    looked_up = tensors[:1] if func in _INDEXED else tensors  # an index may lie in main memory
    strangers = [v for v in looked_up if not isinstance(v, Far) and v.dim() > 0]
    if strangers and func is not torch.ops.aten.copy_.default:
        raise RuntimeError(f"{func}: expected all tensors to be on the same device, found {FAR} and cpu")
    if func is torch.ops.aten.copy_.default:
        _near(args[0]).copy_(_near(args[1]))
        return args[0]
    result = func(*_near(args), **_near(kwargs))
    if func is torch.ops.aten._local_scalar_dense.default:
        return result
    if func.__name__.split(".")[0].endswith("_"):
        return args[0]
    return (
        Far(result)
        if isinstance(result, Tensor)
        else tree_map(lambda v: Far(v) if isinstance(v, Tensor) else v, result)
    )


# Arguments are tensors, numbers, and lists of them; torch's own functions for trees take ten times as long.


def _tensors(values: Any) -> Iterator[Tensor]:
    for value in values:
        if isinstance(value, Tensor):
            yield value
        elif isinstance(value, list | tuple):
            yield from _tensors(value)


def _near(values: Any) -> Any:
    if isinstance(values, Far):
        return values.numbers
    if isinstance(values, dict):
        return {name: _near(value) for name, value in values.items()}
    return type(values)(map(_near, values)) if type(values) in (list, tuple) else values


class _Mode(TorchDispatchMode):
    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return on_device(func, args, kwargs or {})


@contextmanager
def far_away() -> Iterator[None]:
    """Within this block the pretend device exists."""
    with _Mode():
        yield


def sent_far(model: torch.nn.Module, trainable: bool = False) -> torch.nn.Module:
    """The model with all its weights and buffers on the pretend device."""
    for layer in model.modules():
        for name, value in layer.named_parameters(recurse=False):
            layer._parameters[name] = torch.nn.Parameter(Far(value.detach()), requires_grad=trainable)
        for name, value in layer.named_buffers(recurse=False):
            layer._buffers[name] = Far(value)
    return model
