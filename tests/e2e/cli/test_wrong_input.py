"""Whatever is wrong with a call or an input, the answer says what, and never with a traceback."""

import importlib
import pickle
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

OWN = ("certify", "tables", "--groups", "5")
TRAIN = ("train", "tables", "--groups", "5", "--epochs", "1")

# What is typed, and what the answer must say.
CALLS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "a command with a typo": (("trian",), ("trian", "train")),
    "an option with a typo": (("train", "tables", "--epoch", "3"), ("--epoch", "--epochs", "agnncert train --help")),
    "an option without its value": (("train", "tables", "--epochs"), ("--epochs", "requires an argument")),
    "text where a number belongs": (("train", "tables", "--epochs", "many"), ("--epochs", "integer")),
    "an argument too many": (("train", "tables", "more"), ("unexpected", "more")),
    "no data": (("train",), ("no data was named", "dataset", "folder")),
    "a dataset with a typo": (("train", "digits-kn"), ("digits-kn", 'did you mean "digits-knn"')),
    "a folder that is not there": (("train", "no/such/folder"), ("no/such/folder", "nodes.csv")),
    "a model with a typo": ((*TRAIN, "--model", "gccn"), ("gccn", 'did you mean "gcn"', "package.module:factory")),
    "a setting of the model with a typo": ((*TRAIN, "--set", "num_layer=2"), ('did you mean "num_layers"',)),
    "a setting without a value": ((*TRAIN, "--set", "num_layers"), ("--set num_layers", "NAME=VALUE")),
    "a senseless setting of the model": ((*TRAIN, "--set", "dropout=2"), ("dropout is 2", "below 1")),
    "a division with a typo": (("train", "tables", "--division", "nodes"), ("nodes", 'did you mean "node"')),
    "a hash with a typo": (("train", "tables", "--set", "hash=md6"), ("md6", 'did you mean "md5"')),
    "no groups": (("train", "tables", "--groups", "0"), ("groups=0", "from 1")),
    "groups that are no number": (("train", "tables", "--groups", "many"), ("--groups", "integer")),
    "groups of a division that has none": (
        ("train", "tables", "--division", "per-neighbour", "--groups", "9"), ("per-neighbour", "no number of groups"),
    ),
    "a prior that is no number": ((*TRAIN, "--prior", "some"), ("prior=some", "such as 0,12")),
    "half a prior": ((*TRAIN, "--prior", "0.5"), ("prior=0.5", "whole number")),
    "a prior for more classes than there are": ((*TRAIN, "--prior", "1,2,3"), ("3 numbers", "2 classes")),
    "empty groups with a typo": ((*TRAIN, "--empty", "abstein"), ("abstein", "abstain")),
    "empty groups for a class that is not there": ((*TRAIN, "--empty", "7"), ("empty=7", "0 to 1")),
    "a vote that gated features forbid": ((*TRAIN, "--division", "gated", "--prior", "3"), ("protects", "one number per class")),
    "endless groups that cast what they predict": (
        ("train", "tables", "--division", "per-neighbour", "--empty", "no_edge", "--epochs", "1"), ("abstain", "prior"),
    ),
    "a vote, and a size to choose it for": (
        (*OWN, "--model", "mine:build", "--size", "2", "--prior", "3"), ("--size", "leave out"),
    ),
    "a negative size to choose a vote for": (
        (*OWN, "--model", "mine:build", "--size", "-1"), ("size=-1", "from 0"),
    ),
    "a kind of change with a typo": (
        (*OWN, "--model", "mine:build", "--size", "1", "--set", "against=struct"), ('did you mean "structure"',),
    ),
    "a vote chosen for gated features": (
        (*OWN, "--model", "mine:build", "--division", "gated", "--size", "1"), ("without gated features",),
    ),
    "an objective with a typo": ((*TRAIN, "--set", "objective=papers"), ('did you mean "paper"',)),
    "a protocol with a typo": ((*TRAIN, "--set", "protocol=inductiv"), ('did you mean "inductive"',)),
    "no epochs": (("train", "tables", "--epochs", "0"), ("epochs=0", "from 1 on")),
    "a negative learning rate": ((*TRAIN, "--set", "lr=-1"), ("lr=-1", "positive")),
    "a negative seed": ((*TRAIN, "--seed", "-1"), ("seed=-1", "from 0 on")),
    "a kind of column with a typo": ((*TRAIN, "--set", "column.ids=name"), ('did you mean "id"',)),
    "a column that the table does not have": ((*TRAIN, "--set", "column.id=name"), ("name", "nodes.csv")),
    "a feature that the table does not have": ((*TRAIN, "--set", "feature=c"), ("c", "nodes.csv")),
    "a folder without edges": (("train", "halves"), ("halves", "edges.csv")),
    "an edge to nobody": (("train", "strangers"), ("edges.csv", "user99")),
    "a feature that is no number": (("train", "words"), ("nodes.csv", "tall")),
    "an id twice": (("train", "twins"), ("nodes.csv", "user1")),
    "a settings file that is not there": ((*TRAIN, "--settings", "none.toml"), ("none.toml", "No such file")),
    "a settings file that is not TOML": ((*TRAIN, "--settings", "mine.py"), ("mine.py", "not TOML")),
    "a setting with a typo in a file": (("train", "--settings", "typo.toml"), ("epohcs", 'did you mean "epochs"')),
    "a table with a typo in a file": (("train", "--settings", "table.toml"), ("[tarin]", 'did you mean "train"')),
    "a setting outside of a table": (("train", "--settings", "flat.toml"), ("epochs", "below [train]")),
    "a settings file for another command": (("verify", "x", "--settings", "typo.toml"), ("[verify]", "[train]")),
    "a wrong type in a settings file": (("train", "--settings", "type.toml"), ("epochs='many'", "whole number")),
    "a built-in model without weights": (OWN, ("gcn", "without weights", "agnncert train tables")),
    "a module that is not there": ((*OWN, "--model", "mien:build"), ("mien", 'did you mean "mine"')),
    "a factory that is not there": ((*OWN, "--model", "mine:biuld"), ("biuld", 'did you mean "build"')),
    "no factory": ((*OWN, "--model", "mine:"), ("mine:", "package.module:factory")),
    "a file that is not there": ((*OWN, "--model", "mien.py:build"), ("mien.py", "mine.py")),
    "a module that does not compile": ((*OWN, "--model", "broken:build"), ("broken", "SyntaxError")),
    "a module that needs another": ((*OWN, "--model", "lonely:build"), ("nowhere", "lonely.py, line 2")),
    "a factory that returns no module": ((*OWN, "--model", "mine:numbers"), ("list", "torch.nn.Module")),
    "a factory that is none": ((*OWN, "--model", "mine:ready"), ("int", "function or class")),
    "a factory that fails": ((*OWN, "--model", "mine:fails"), ("another planet", "mine.py, line")),
    "a factory that asks for more": ((*OWN, "--model", "mine:asks"), ("width, colour", "--set width=")),
    "a setting that the factory does not have": (
        (*OWN, "--model", "mine:Net", "--set", "widht=3"), ("widht", 'did you mean "width"'),
    ),
    "weights that are not there": ((*OWN, "--model", "mine:build", "--weights", "w"), ("no file w",)),
    "weights in a pickle": (
        (*OWN, "--model", "mine:build", "--weights", "w.pt"), ("w.pt", "not a safetensors file", "save_file"),
    ),
    "weights of another model": (
        (*OWN, "--model", "mine:build", "--weights", "other.safetensors"),
        ("do not fit Net", "Missing", "two.lin_l.bias", "three.bias", "size mismatch for one.lin_r.weight", "[8, 5]"),
    ),
    "a model that looks at all nodes": ((*OWN, "--model", "mine:Nosy"), ("cannot certify", "not connected")),
    "a model that draws lots": ((*OWN, "--model", "mine:Forgetful"), ("two different outputs", "model.eval()")),
    "a model without edges in its call": ((*OWN, "--model", "mine:Deaf"), ("forward(x)", "would be given x, edge_index")),
    "a model for other data": ((*OWN, "--model", "mine:Net", "--set", "in_channels=9"), ("[1, 2]", "failed")),
    "a part of the data with a typo": ((*OWN, "--model", "mine:build", "--set", "targets=tests"), ('"test"',)),
    "an engine with a typo": ((*OWN, "--model", "mine:build", "--set", "engine=fats"), ('did you mean "fast"',)),
    "edges only, with a typo": ((*OWN, "--model", "mine:build", "--set", "edges_only=yes"), ("edges_only=", "true or false")),
    "no memory": ((*OWN, "--model", "mine:build", "--set", "memory=0"), ("memory=0", "megabyte")),
    "a negative tolerance": ((*OWN, "--model", "mine:build", "--set", "tolerance=-1"), ("tolerance=-1",)),
    "a run folder that is a file": ((*TRAIN, "--out", "mine.py"), ("mine.py", "is a file", "--out")),
    "a run folder with something else": ((*TRAIN, "--out", "tables"), ("tables", "not empty", "--out")),
    "a certificate that is not there": (("verify", "none.cert"), ("none.cert",)),
    "a number of votes that is none": (("verify", "x.cert", "--recheck", "few"), ("few", "all")),
    "votes without a run": (("verify", "x.cert", "--recheck", "5"), ("x.cert", "--data")),
    "a report of nothing": (("report", "none.cert"), ("none.cert",)),
    "an attack on nothing": (("attack", "tables"), ("tables", "agnncert certify")),
    "an audit of nothing": (("audit", "gccn"), ('did you mean "gcn"',)),
    "an audit for another task": (("audit", "gcn", "--data", "tables", "--task", "graph"), ("graph", "node")),
    "a task with a typo": (("audit", "mine:build", "--task", "nodes"), ('did you mean "node"',)),
    "an attack with a typo": (("attack", "x", "--kind", "gready"), ('did you mean "greedy"',)),
    "a budget with a typo": (("attack", "x", "--vary", "add_edge"), ('did you mean "add_edges"',)),
    "the rest of a budget with a typo": (("attack", "x", "--also", "delete_edge=1"), ('did you mean "delete_edges"',)),
    "an attack on training data": (("attack", "x", "--also", "flip_labels=1"), ("flip_labels=1", "trained on")),
    "sizes that are none": (("attack", "x", "--sizes", "1,two"), ("1,two", "1,5,20")),
    "no sample": (("attack", "x", "--sample", "0"), ("sample=0",)),
    "runs to compare that are none": (("compare", "tables", "mine.py"), ("tables, mine.py", "neither")),
    "a defence with a typo": (("compare", "tables", "--defence", "birs"), ('did you mean "bi-rs"',)),
    "a setting of a defence with a typo": (
        ("compare", "tables", "--defence", "bi-rs:p_edges=0.7"), ('did you mean "p_edge"',),
    ),
    "a threat with a typo": (("compare", "tables", "--against", "edge"), ('did you mean "edges"',)),
}  # fmt: skip


@pytest.fixture
def traps(place: Path) -> Path:
    """Files with all kinds of mistakes."""
    nodes, edges = (Path("tables", f"{kind}.csv").read_text() for kind in ("nodes", "edges"))
    for name, (first, second) in {
        "halves": (nodes, None),
        "strangers": (nodes, edges + "user1,user99\n"),
        "words": (nodes + "user77,cat,tall,1\n", edges),
        "twins": (nodes + "user1,cat,1,1\n", edges),
    }.items():
        Path(name).mkdir()
        Path(name, "nodes.csv").write_text(first)
        if second is not None:
            Path(name, "edges.csv").write_text(second)
    for name, text in {
        "typo.toml": '[train]\ndata = "tables"\nepohcs = 3\n',
        "table.toml": "[tarin]\nepochs = 3\n",
        "flat.toml": "epochs = 3\n",
        "type.toml": '[train]\ndata = "tables"\nepochs = "many"\n',
        "broken.py": "def build(:\n",
        "lonely.py": "\nimport nowhere\n",
        "x.cert": "this is not a certificate",
    }.items():
        Path(name).write_text(text)
    Path("w.pt").write_bytes(pickle.dumps({"weight": 1}))
    tensors = {"one.lin_l.weight": torch.zeros(8, 2), "one.lin_r.weight": torch.zeros(8, 5)}
    save_file({**tensors, "three.bias": torch.zeros(1)}, "other.safetensors")
    return place


@pytest.mark.usefixtures("traps")
@pytest.mark.parametrize("mistake", CALLS)
def test_a_mistake_is_explained(mistake, agnncert) -> None:
    words, expected = CALLS[mistake]
    answer = agnncert(*words)
    assert answer.status == 2
    assert answer.err.splitlines()[-1 - answer.err.strip().count("\n")].startswith("error: ")
    assert "Traceback" not in answer.err + answer.out
    for fragment in expected:
        assert fragment in answer.err, f"{fragment!r} is not in: {answer.err}"


@pytest.mark.usefixtures("traps")
def test_a_mistake_leaves_no_folder_behind(agnncert) -> None:
    for mistake in ("a model with a typo", "no epochs", "a model that looks at all nodes", "weights of another model"):
        agnncert(*CALLS[mistake][0])
    assert not Path("runs").exists() or not list(Path("runs").iterdir())


@pytest.mark.usefixtures("traps")
def test_a_file_that_is_no_certificate_is_refused(agnncert) -> None:
    answer = agnncert("verify", "x.cert")
    assert answer.status == 1
    assert "not a certificate" in answer.out


def test_an_altered_certificate_is_refused(agnncert, certified) -> None:
    file = certified / "certificate.cert"
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    answer = agnncert("verify", certified)
    assert answer.status == 1
    assert "altered" in answer.out


def test_a_certificate_of_another_model_is_refused(agnncert, certified) -> None:
    agnncert("train", "tables", "--groups", 12, "--epochs", 3, "--no-references", "--out", "runs/second")
    answer = agnncert("verify", certified / "certificate.cert", "--data", "runs/second", "--recheck", 10)
    assert answer.status == 1
    assert "the model is not the one that was certified" in answer.out


def test_a_run_with_other_settings_is_not_overwritten(agnncert, trained) -> None:
    before = (trained / "weights.safetensors").read_bytes()
    answer = agnncert("train", "tables", "--groups", 12, "--epochs", 5, "--no-references", "--out", trained)
    assert answer.status == 2
    assert "epochs was 4, now 5" in answer.err
    assert "--fresh" in answer.err
    assert (trained / "weights.safetensors").read_bytes() == before


def test_a_run_has_its_own_model(agnncert, trained) -> None:
    answer = agnncert("certify", trained, "--model", "mine:build")
    assert answer.status == 2
    assert "leave out --model" in answer.err


def test_data_that_changed_is_noticed(agnncert, trained) -> None:
    nodes = trained / "data" / "nodes.csv"
    nodes.write_text(nodes.read_text().replace("user0,dog,", "user0,cat,"))
    answer = agnncert("certify", trained)
    assert answer.status == 2
    assert "has changed" in answer.err


def test_an_error_that_nobody_expected_is_no_traceback_either(agnncert, monkeypatch) -> None:
    Path("late.py").write_text(
        "import torch\n\nclass Late(torch.nn.Module):\n    def forward(self, x, edge_index):\n        return x\n\n"
        "def compute_votes(*args, **kwargs):\n    raise ZeroDivisionError('by accident')\n"
    )
    monkeypatch.syspath_prepend(Path.cwd())
    monkeypatch.setattr("agnncert.divided.certify.compute_votes", importlib.import_module("late").compute_votes)
    answer = agnncert("certify", "tables", "--model", "late:Late", "--groups", 5)
    assert answer.status == 2
    assert "ZeroDivisionError: by accident (late.py, line 8)" in answer.err
