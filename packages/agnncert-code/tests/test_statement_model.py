import json

import numpy as np
import pytest
import torch

import agnncert as ac
import agnncert_code
from agnncert.errors import SettingsError
from agnncert_code.features import LONGEST, PIECES, pieces
from agnncert_code.statements import StatementVotes, load_function_model


@pytest.fixture
def model():
    """Knows two words: ``strcpy`` speaks for class 1, ``strlcpy`` for class 0."""
    model = StatementVotes(LONGEST)
    with torch.no_grad():
        for word, weight in (("strcpy", 2.0), ("strlcpy", -2.0)):
            piece = int(pieces([word])[0, 0])
            model.scale[piece], model.weight[piece] = 1.0, weight
        model.limits.copy_(torch.tensor([-0.5, 0.5]))
    return model.eval()


def vote(model, *texts):
    x = torch.from_numpy(pieces(texts))
    return int(model(x, torch.zeros(2, 0, dtype=torch.long), torch.zeros(len(x), dtype=torch.long)).argmax())


def test_words_decide_and_statements_without_known_ones_say_nothing(model):
    assert vote(model, "strcpy ( a , b ) ;") == 1
    assert vote(model, "strlcpy ( a , b , n ) ;") == 0
    assert vote(model, "return 0 ;") == 2
    assert vote(model, "strcpy ( a , b ) ;", "strlcpy ( a , b , n ) ;") == 2
    assert vote(model, "strcpy ( a , b ) ;", "strcpy ( a , b ) ;", "return 0 ;") == 1


def test_a_row_of_anything_is_scored(model):
    strange = torch.tensor([[float("nan"), float("inf"), -float("inf"), 1e30, -5.0, 0.4]])
    known = torch.zeros(1, 6)
    known[0, 3] = PIECES
    assert model.scores(strange) == model.scores(known)


def test_it_may_vote_and_can_be_saved(model, tmp_path):
    data = [agnncert_code.graph("int f() { strcpy(a, b); return 0; }").to_data(pieces)]
    report = ac.audit(model, task="graph", defence=ac.NodeCentric(5), data=data)
    assert report.ok
    assert report.locality == "test"  # not among the layers that were read
    loaded = load_function_model(ac.save_model(model, tmp_path / "words"))
    assert type(loaded) is StatementVotes
    assert all(
        torch.equal(a, b) for a, b in zip(model.state_dict().values(), loaded.state_dict().values(), strict=True)
    )


def test_another_description_is_refused(model, tmp_path):
    saved = ac.save_model(model, tmp_path / "words").with_suffix(".json")
    stated = json.loads(saved.read_text())
    for change in ({"pieces": 5}, {"out_channels": 2}, {"depth": 1}):
        saved.write_text(json.dumps({**stated, "model": {**model.config, **change}}))
        with pytest.raises(SettingsError, match="no model of statements"):
            load_function_model(saved)


def test_scores_do_not_depend_on_the_order_of_pieces(model):
    row = pieces(["strcpy ( a , b ) ;"])
    turned = np.ascontiguousarray(row[:, ::-1])
    assert model.scores(torch.from_numpy(row)) == model.scores(torch.from_numpy(turned))
