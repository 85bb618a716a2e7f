"""Models whose layer stands where ``model.eval()`` does not reach it."""

import collections
import functools
import sys
import types
import weakref
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import GCNConv

FEATURES, CLASSES = 5, 2


class Turned(nn.Module):
    """Answers the opposite in training mode, without anything random."""

    def __init__(self) -> None:
        super().__init__()
        with torch.random.fork_rng():
            torch.manual_seed(1)
            self.conv = GCNConv(FEATURES, CLASSES)

    def forward(self, x, edge_index):
        logits = self.conv(x, edge_index)
        return -logits if self.training else logits


class TurnedUnnamed(Turned):
    """Reads its mode without naming it."""

    def forward(self, x, edge_index):
        logits = self.conv(x, edge_index)
        return -logits if getattr(self, "".join(["train", "ing"])) else logits


class Slotted:
    __slots__ = ("layer",)


class Disguised:
    """Says that it stands in torch."""


Disguised.__module__ = "torch.nn"
LAYER = Turned()
NEIGHBOUR = types.ModuleType("agnncert_test_neighbour")
NEIGHBOUR.__dict__["LAYER"] = LAYER
sys.modules[NEIGHBOUR.__name__] = NEIGHBOUR


def disguised(x: Tensor, edge_index: Tensor) -> Tensor:
    return LAYER(x, edge_index)


disguised.__module__ = "torch.nn.functional"


@functools.singledispatch
def dispatched(x: Tensor, edge_index: Tensor) -> Tensor:
    return LAYER(x, edge_index)


class Settings:
    layer = LAYER


class Hiding(nn.Module):
    """Keeps its layer in something that the first function makes, and takes it out with the second."""

    def __init__(self, hide: Callable[[nn.Module], Any], find: Callable[[Any], nn.Module]) -> None:
        super().__init__()
        self.kept, self.find = hide(LAYER), find

    def forward(self, x, edge_index):
        return self.find(self.kept)(x, edge_index)


class OfClass(nn.Module):
    kept = (LAYER,)

    def forward(self, x, edge_index):
        return self.kept[0](x, edge_index)


class OfClassItself(nn.Module):
    kept = LAYER

    def forward(self, x, edge_index):
        return vars(type(self))["kept"](x, edge_index)


class OfProperty(nn.Module):
    @property
    def layer(self) -> nn.Module:
        return LAYER

    def forward(self, x, edge_index):
        return self.layer(x, edge_index)


class OfCachedProperty(OfProperty):
    layer = functools.cached_property(lambda self: LAYER)  # type: ignore[assignment]

    def __init__(self) -> None:
        super().__init__()
        OfCachedProperty.layer.__set_name__(OfCachedProperty, "layer")


class OfStaticMethod(nn.Module):
    @staticmethod
    def layer(x: Tensor, edge_index: Tensor) -> Tensor:
        return LAYER(x, edge_index)

    def forward(self, x, edge_index):
        return self.layer(x, edge_index)


class OfMethodByText(nn.Module):
    def layer(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return LAYER(x, edge_index)

    def forward(self, x, edge_index):
        return getattr(self, "layer")(x, edge_index)  # noqa: B009 - a name that is a text


class OfModule(nn.Module):
    def forward(self, x, edge_index):
        return NEIGHBOUR.LAYER(x, edge_index)


class OfImport(nn.Module):
    def forward(self, x, edge_index):
        import agnncert_test_neighbour

        return agnncert_test_neighbour.LAYER(x, edge_index)


class OfSettings(nn.Module):
    def forward(self, x, edge_index):
        return Settings.layer(x, edge_index)


class OfDisguise(nn.Module):
    def forward(self, x, edge_index):
        return disguised(x, edge_index)


class OfDispatch(nn.Module):
    def forward(self, x, edge_index):
        return dispatched(x, edge_index)


class OfHook(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = GCNConv(FEATURES, CLASSES)
        self.register_forward_hook(lambda module, given, logits: LAYER(*given))

    def forward(self, x, edge_index):
        return self.conv(x, edge_index)


def with_attribute(holder: Any, layer: nn.Module) -> Any:
    holder.layer = layer
    return holder


def layer_of(holder: Any) -> nn.Module:
    layer: nn.Module = holder.layer
    return layer


HIDING: dict[str, Callable[[], nn.Module]] = {
    "a queue": lambda: Hiding(lambda layer: collections.deque([layer]), lambda kept: kept[0]),
    "a dictionary of collections": lambda: Hiding(
        lambda layer: collections.UserDict(layer=layer), lambda kept: kept["layer"]
    ),
    "an attribute of a tensor": lambda: Hiding(lambda layer: with_attribute(torch.zeros(1), layer), layer_of),
    "data of PyG": lambda: Hiding(lambda layer: Data(layer=layer), layer_of),
    "a slot": lambda: Hiding(lambda layer: with_attribute(Slotted(), layer), layer_of),
    "an object in disguise": lambda: Hiding(lambda layer: with_attribute(Disguised(), layer), layer_of),
    "a namespace": lambda: Hiding(lambda layer: types.SimpleNamespace(layer=layer), layer_of),
    "a reference": lambda: Hiding(weakref.ref, lambda kept: kept()),
    "a class": OfClass,
    "a class itself": OfClassItself,
    "a property": OfProperty,
    "a property that is computed once": OfCachedProperty,
    "a static method": OfStaticMethod,
    "a method that a text names": OfMethodByText,
    "a module of one's own": OfModule,
    "a module that forward imports": OfImport,
    "another class": OfSettings,
    "a function in disguise": OfDisguise,
    "a function for each type": OfDispatch,
    "a hook": OfHook,
}
