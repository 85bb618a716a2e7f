"""With what guards thresholds, compiled models and traced models broken on purpose, a test turns red."""

import pytest
import torch

from agnncert import recompute
from agnncert.divided import defence as divided
from agnncert.engine import arguments
from agnncert.models import digest
from tests.support.labelled import labelled_graph
from tests.support.mutations import text_turns_red
from tests.unit.divided import test_threshold as thresholds
from tests.unit.engine import test_compiled as compiled


def another_threshold(folder):
    data = labelled_graph(60, classes=2, noise=2.5, dtype=torch.float32)
    model = thresholds.ac.build_model("gcn", data, hidden_channels=8, num_layers=2).eval()
    points = [thresholds.ac.choose_threshold(model, data, thresholds.ac.NodeCentric(9), alerts=k) for k in (1, 12)]
    assert points[0].prior != points[1].prior
    few = points[0].as_defence()  # without what was requested of it, which verify would count again
    thresholds.ac.certify(model, data, few).save(folder / "a.cert")
    assert not thresholds.ac.verify(folder / "a.cert", data=data, model=model, defence=points[1]).holds


def refused(kind):
    return lambda folder: compiled.test_a_compiled_model_is_refused_in_our_words(compiled.COMPILED[kind], folder)


def traced(folder):
    compiled.test_traced_models_with_the_same_weights_and_other_code_have_other_digests()


MISTAKES = {
    "any threshold is verified": (another_threshold, divided, "not _is_rule_of(record, self.voting_rule)", "False"),
    "compiled layers pass": (refused("layer"), arguments, "for name, layer in layers.items() if name", "for name, layer in ()"),
    "compiled methods pass": (refused("class"), arguments, "any(map(_is_compiled_function, members))", "False"),
    "verify takes compiled models": (refused("module"), recompute, "        require_model(model)\n", ""),
    "traced code is no part of a digest": (traced, digest, "= layer.code", '= ""'),
}  # fmt: skip


@pytest.mark.parametrize(("law", "module", "old", "new"), MISTAKES.values(), ids=MISTAKES)
def test_the_law_holds_and_the_mistake_breaks_it(law, module, old, new, tmp_path, monkeypatch) -> None:
    law(tmp_path)
    text_turns_red(monkeypatch, module, old, new, lambda: law(tmp_path))
