"""Models written to files and read back."""

import json

import pytest
import torch
import torch_geometric.nn as pyg

from agnncert.errors import ModelContractError
from agnncert.models.io import load_model, save_model
from tests.unit.models.test_build import small


def test_a_saved_model_comes_back_the_same(data, tmp_path) -> None:
    model = small("sage", data, norm="batch_norm")
    file = save_model(model, tmp_path / "runs" / "sage", provenance={"dataset": "toy", "epochs": 3})
    assert file.name == "sage.safetensors"
    text = json.loads((tmp_path / "runs" / "sage.json").read_text())
    assert text["provenance"] == {"dataset": "toy", "epochs": 3}
    for path in (file, file.with_suffix(".json"), file.with_suffix("")):
        again = load_model(path)
        assert not again.training
        assert torch.equal(again(data.x, data.edge_index), model(data.x, data.edge_index))


def test_a_module_of_the_user_needs_its_code_to_come_back(data, tmp_path) -> None:
    model = pyg.GCN(5, 8, 2, 3).eval()
    save_model(model, tmp_path / "own.safetensors")
    with pytest.raises(ModelContractError, match="pass it as model="):
        load_model(tmp_path / "own.safetensors")
    again = load_model(tmp_path / "own.safetensors", model=pyg.GCN(5, 8, 2, 3))
    assert torch.equal(again(data.x, data.edge_index), model(data.x, data.edge_index))
    with pytest.raises(ModelContractError, match=r"size mismatch for convs\.0\.bias"):
        load_model(tmp_path / "own.safetensors", model=pyg.GCN(5, 9, 2, 3))


def test_tied_and_lazy_weights_are_dealt_with(tmp_path) -> None:
    tied = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 2))
    tied[1].weight = tied[0].weight
    save_model(tied, tmp_path / "tied")
    with pytest.raises(ModelContractError, match="Run the model once"):
        save_model(torch.nn.LazyLinear(3), tmp_path / "lazy")


def test_an_altered_or_missing_file_is_noticed(data, tmp_path) -> None:
    file = save_model(small("gcn", data), tmp_path / "gcn")
    with pytest.raises(ModelContractError, match=r"cannot read .*nothing\.json"):
        load_model(tmp_path / "nothing")
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    with pytest.raises(ModelContractError, match="sha256 differs"):
        load_model(file)
    file.with_suffix(".json").write_text("{}")
    with pytest.raises(ModelContractError, match="does not describe a model"):
        load_model(file)
    file.with_suffix(".json").write_text("{")
    with pytest.raises(ModelContractError, match="is not JSON"):
        load_model(file)


def test_an_interrupted_save_leaves_the_old_file(data, tmp_path, monkeypatch) -> None:
    file = save_model(small("gcn", data), tmp_path / "gcn")
    before = file.read_bytes()

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("os.replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        save_model(small("gcn", data, seed=1), tmp_path / "gcn")
    assert file.read_bytes() == before
