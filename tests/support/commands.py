"""A small graph in tables with names for ids, a module of a user's own, and a way to call commands."""

import random
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from agnncert.cli import main

MODULE = """
import torch
from torch_geometric.nn import SAGEConv


class Net(torch.nn.Module):
    def __init__(self, in_channels, out_channels, width=8):
        super().__init__()
        self.one = SAGEConv(in_channels, width)
        self.two = SAGEConv(width, out_channels)

    def forward(self, x, edge_index):
        return self.two(self.one(x, edge_index).relu(), edge_index)


class Forgetful(Net):
    def forward(self, x, edge_index):
        return super().forward(x + 0.1 * torch.rand_like(x), edge_index)


class Nosy(Net):
    def forward(self, x, edge_index):
        return super().forward(x - x.mean(dim=0), edge_index)


class Deaf(Net):
    def forward(self, x):
        return x


def build():
    return Net(2, 2)


def numbers():
    return [1, 2, 3]


def fails():
    raise OSError("the weights are on another planet")


def asks(width, colour):
    return Net(2, 2)


ready = 7
"""


@dataclass(frozen=True)
class Answer:
    """What a command said and returned."""

    status: int
    out: str
    err: str


Command = Callable[..., Answer]


def write_tables(folder: Path, nodes: int = 40) -> Path:
    """Two kinds of users with two features each, mostly joined to their own kind."""
    rng = random.Random(0)
    folder.mkdir(parents=True, exist_ok=True)
    rows = ["id,label,a,b"]
    for k in range(nodes):
        kind = k % 2
        rows.append(f"user{k},{'cat' if kind else 'dog'},{rng.gauss(2 * kind, 0.5):.3f},{rng.gauss(-kind, 0.5):.3f}")
    pairs = {tuple(sorted(rng.sample(range(nodes), 2))) for _ in range(4 * nodes)}
    kept = sorted(p for p in pairs if (p[0] + p[1]) % 2 == 0)
    (folder / "nodes.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    edges = "\n".join(f"user{u},user{v}" for u, v in kept)
    (folder / "edges.csv").write_text(f"source,target\n{edges}\n", encoding="utf-8")
    return folder


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty folder to work in, with tables and a module; nothing of it is remembered afterwards."""
    monkeypatch.chdir(tmp_path)
    write_tables(tmp_path / "tables")
    (tmp_path / "mine.py").write_text(MODULE, encoding="utf-8")
    paths, modules = list(sys.path), set(sys.modules)
    yield tmp_path
    sys.path[:] = paths
    for name in set(sys.modules) - modules:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(tmp_path)):
            del sys.modules[name]


@pytest.fixture
def agnncert(place: Path, capsys: pytest.CaptureFixture[str]) -> Command:
    """Calls a command in that folder."""

    def call(*words: object) -> Answer:
        capsys.readouterr()
        status = main([str(word) for word in words])
        return Answer(status, *capsys.readouterr())

    return call


@pytest.fixture(scope="session")
def made_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs that tests get copies of: ``trained`` for a moment, and ``certified``, with the tables that they are about."""
    folder = tmp_path_factory.mktemp("made")
    write_tables(folder / "tables")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        train = "train tables --groups 12 --epochs 4 --no-references --out runs/first"
        assert main(train.split()) == 0
        shutil.copytree("runs/first", "trained")
        assert main(["certify", "runs/first"]) == 0
        shutil.copytree("runs/first", "certified")
    return folder


@pytest.fixture
def trained(place: Path, made_once: Path) -> Path:
    """The folder of a run that was trained for a moment."""
    shutil.copytree(made_once / "trained", "runs/first")
    return Path("runs/first")


@pytest.fixture
def certified(place: Path, made_once: Path) -> Path:
    """The same run, certified."""
    shutil.copytree(made_once / "certified", "runs/first")
    return Path("runs/first")
