import json
import socket
import sys

import numpy as np
import pytest
import torch

from agnncert.errors import AgnncertError
from agnncert_code.encoder import StatementEncoder
from agnncert_code.reading import graph

TEXTS = ["x = 1 ;", "if ( a < b )", "return copy ( to , from , n ) ;"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A tiny model of GraphCodeBERT's architecture with random weights, saved as a user's would be."""
    transformers = pytest.importorskip("transformers", reason="transformers is not installed (extra codebert)")
    from tokenizers.pre_tokenizers import ByteLevel

    place = tmp_path_factory.mktemp("encoder")
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    words = {word: k for k, word in enumerate([*special, *sorted(ByteLevel.alphabet())])}
    (place / "vocab.json").write_text(json.dumps(words))
    (place / "merges.txt").write_text("#version: 0.2\n")
    tokenizer = transformers.RobertaTokenizer.from_pretrained(place)
    tokenizer.save_pretrained(place)
    torch.manual_seed(0)
    config = transformers.RobertaConfig(
        vocab_size=len(words),
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=40,
        type_vocab_size=1,
        pad_token_id=1,
        bos_token_id=0,
        eos_token_id=2,
    )
    transformers.RobertaModel(config).save_pretrained(place)
    return place


@pytest.fixture
def encoder(folder, monkeypatch):
    def refuse(*_):
        raise AssertionError("something was looked up on the network")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    return StatementEncoder(folder)


def test_statements_are_encoded_each_by_itself(encoder):
    rows = encoder(TEXTS)
    assert rows.shape == (3, 16)
    assert rows.dtype == np.float32
    assert not np.array_equal(rows[0], rows[1])
    for text, row in zip(TEXTS, rows, strict=True):
        assert np.array_equal(encoder([text])[0], row)
    assert np.array_equal(encoder([*TEXTS[::-1], "x ; " * 30])[:3], rows[::-1])


def test_rows_are_the_mean_of_the_last_layer(encoder):
    inputs = encoder.tokenizer(TEXTS[0], return_tensors="pt")
    with torch.no_grad():
        states = encoder.model(**inputs).last_hidden_state[0]
    assert states.shape[0] > 5
    assert np.array_equal(encoder(TEXTS[:1])[0], states.mean(dim=0).numpy())


def test_long_statements_are_cut_to_what_the_encoder_takes(encoder):
    assert np.isfinite(encoder(["f ( " + "a , " * 400 + ") ;"])).all()
    assert encoder([]).shape == (0, 16)


def test_graphs_take_their_features_from_the_encoder(encoder):
    found = graph("int f(int a) { return a; }")
    assert np.array_equal(found.to_data(encoder).x.numpy(), encoder(found.texts))


def test_a_folder_without_weights_or_with_pickled_ones_is_refused(folder, tmp_path):
    (tmp_path / "config.json").write_text((folder / "config.json").read_text())
    (tmp_path / "pytorch_model.bin").write_bytes(b"\x80\x04.")
    with pytest.raises(AgnncertError, match=r"model\.safetensors not found"):
        StatementEncoder(tmp_path)


def test_damaged_weights_are_an_error_of_ours(folder, tmp_path):
    for file in folder.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(AgnncertError, match="cannot be read"):
        StatementEncoder(tmp_path)


def test_without_transformers_the_error_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(AgnncertError, match="pip install transformers"):
        StatementEncoder(tmp_path)
