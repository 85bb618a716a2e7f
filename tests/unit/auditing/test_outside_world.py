"""A model whose code asks anything but the graph and its weights is refused, and what it asks is named."""

import datetime
import logging
import os
import random
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import torch
import torch_geometric.nn as pyg
from numpy.random import default_rng, rand
from torch import nn

from agnncert.auditing.model_audit import audit
from agnncert.auditing.outside_world import inspect_outside_world
from agnncert.divisions.node import NodeCentric
from tests.zoo.local import CLASSES, WIDTH, zoo_data

clock = time.time


class Local(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = pyg.SAGEConv(WIDTH, CLASSES)

    def forward(self, x, edge_index):
        return self.conv(x, edge_index)


def by_global_name(model, x):
    return x if clock() else -x


def by_module(model, x):
    return x if os.environ.get("AGNNCERT") is None else -x


def by_import(model, x):
    import socket

    return x if socket else -x


def by_attribute(model, x):
    return x if model.now() else -x


def by_library(model, x):
    return x if torch.os.getpid() else -x  # type: ignore[attr-defined]


def by_arguments(model, x):
    return x if sys.argv else -x


def by_file(model, x):
    with open(os.devnull) as stream:
        return x if stream else -x


def by_another_function(model, x):
    return by_global_name(model, x)


def by_text(model, x):
    return getattr(model, "later")(x)  # noqa: B009 - a name that is a text


def by_chance(model, x):
    return x if random.random() < 2 else -x


def by_threads(model, x):
    return x if torch.get_num_threads() else -x


def by_gradients(model, x):
    return -x if torch.is_grad_enabled() else x


def by_state_of_chance(model, x):
    return x if torch.get_rng_state() is not None else -x


def by_chance_of_numpy(model, x):
    return x if np.random.rand() < 2 else -x


def by_generator_of_numpy(model, x):
    return x if np.random.default_rng().random() < 2 else -x


def by_imported_chance(model, x):
    return x if rand() < 2 else -x


def by_imported_generator(model, x):
    return x if default_rng().random() < 2 else -x


def by_chance_of_the_system(model, x):
    return x if model.chance.random() < 2 else -x


def by_present_of_numpy(model, x):
    return x if np.datetime64("now") else -x


def by_switch_of_torch(model, x):
    return -x if torch.backends.cudnn.benchmark else x


def by_device_of_torch(model, x):
    return -x if torch.cuda.is_available() else x


ASKING = {
    by_chance_of_numpy: ("np.random.rand", "chance"),
    by_generator_of_numpy: ("np.random.default_rng", "chance"),
    by_imported_chance: ("rand", "chance"),
    by_imported_generator: ("default_rng", "chance"),
    by_chance_of_the_system: ("chance", "chance"),
    by_present_of_numpy: ("np.datetime64", "the clock"),
    by_switch_of_torch: ("torch.backends.cudnn", "the system"),
    by_device_of_torch: ("torch.cuda.is_available", "the system"),
    by_threads: ("torch.get_num_threads", "the system"),
    by_gradients: ("torch.is_grad_enabled", "the system"),
    by_state_of_chance: ("torch.get_rng_state", "chance"),
    by_global_name: ("clock", "the clock"),
    by_module: ("os.environ", "the system"),
    by_import: ("socket", "the network"),
    by_attribute: ("now", "the clock"),
    by_library: ("torch.os.getpid", "the system"),
    by_arguments: ("sys.argv", "the system"),
    by_file: ("open", "files"),
    by_another_function: ("clock", "the clock"),
    by_text: ("time.monotonic", "the clock"),
    by_chance: ("random.random", "chance"),
}


@pytest.mark.parametrize("ask", ASKING, ids=lambda ask: ask.__name__)
def test_what_the_code_asks_is_named(ask):
    class Asking(Local):
        def __init__(self) -> None:
            super().__init__()
            self.now = time.time if ask is by_attribute else None
            self.chance = random.SystemRandom() if ask is by_chance_of_the_system else None

        def later(self, x):
            return x if time.monotonic() else -x

        def forward(self, x, edge_index):
            return self.conv(ask(self, x), edge_index)

    where, asked = ASKING[ask]
    findings = list(inspect_outside_world(Asking().eval()))
    assert (where, True) in [(finding.what, f"asks {asked}" in finding.why) for finding in findings]


class Honest(Local):
    """Asks everything, but not while it is called."""

    trained_on = datetime.date(2024, 2, 29)

    def __init__(self) -> None:
        super().__init__()
        self.started = time.time()
        self.folder, self.most = Path("."), datetime.timedelta(1)
        self.log = logging.getLogger("honest")
        self.chances = random.Random(0), np.random.default_rng(0), np.random.RandomState(0)

    def fit(self) -> float:
        with open(os.devnull) as stream:
            return time.time() + random.random() + os.getpid() + len(stream.read())

    def __repr__(self) -> str:
        return f"{os.getpid()}"

    def forward(self, x, edge_index):
        self.log.debug("in %s", os.path.join("a", str(sys.maxsize)))
        return super().forward(x, edge_index)


@dataclass(frozen=True)
class Settings:
    width: int = 8
    kind: str = "mean"


@dataclass(frozen=True)
class Salted(Settings):
    def __hash__(self) -> int:
        return hash((self.kind, time.time()))


def test_settings_in_a_frozen_dataclass_ask_nothing_unless_their_hash_is_their_own():
    class Configured(Local):
        def __init__(self, settings: Settings) -> None:
            super().__init__()
            self.settings = settings

    assert not list(inspect_outside_world(Configured(Settings())))
    assert {finding.what for finding in inspect_outside_world(Configured(Salted()))} >= {"hash", "time.time"}


def test_what_training_and_printing_ask_is_no_matter():
    assert not list(inspect_outside_world(Honest()))
    report = audit(Honest().eval(), zoo_data(), NodeCentric(5))
    assert report.ok, str(report)


def test_a_compiled_function_that_a_method_calls_is_found():
    compiled = torch.compile(lambda x: x + 1, backend="eager")

    class Compiled(Local):
        def forward(self, x, edge_index):
            return self.conv(compiled(x), edge_index)

    (finding,) = inspect_outside_world(Compiled())
    assert (finding.what, "torch.compile" in finding.why) == ("compiled", True)
