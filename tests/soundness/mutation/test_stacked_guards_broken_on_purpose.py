"""Guards around the theorem of stacked votes that are broken on purpose, each of which a test must notice.

The theorem holds for whole numbers. These guards stand where floats become whole numbers, and where a model comes in.
"""

import numpy as np
import pytest

from agnncert import as_built
from agnncert.certificates import record as form
from agnncert.errors import CertificateError
from agnncert.models import digest
from agnncert.stacked import model, own_probes, record, rounding
from agnncert.verifier import check_stacked
from tests.support.mutations import RED, text_turns_red
from tests.unit.stacked import test_as_built as altered
from tests.unit.stacked import test_claim as claims
from tests.unit.stacked import test_numbers as numbers
from tests.unit.stacked import test_record_ranges as records


def abstains(kind):
    return lambda path: numbers.test_a_vote_that_is_not_finite_abstains_in_forward_and_in_the_count(kind)


def beyond(value):
    return lambda path: numbers.test_a_score_beyond_the_range_is_refused_before_it_is_rounded(value)


def refused(alter):
    return lambda path: altered.test_an_altered_model_is_refused(alter)


def found(what):
    return lambda path: numbers.test_a_row_that_changes_what_is_said_about_others_is_found(what)


def predicts(path):
    numbers.test_the_model_that_is_certified_is_the_one_that_predicts(1e-7)


def makes_no_sense(name):
    return lambda path: records.test_what_makes_no_sense_is_refused(name)


BROKEN = [
    ("votes that are not finite are kept", model, "return torch.where(known & _are_finite(votes), votes, 0.0)",
     "return votes", abstains("sum")),
    ("a second level hears nodes that have no logits", model, "dim=1) * known\n", "dim=1)\n", abstains("two levels")),
    ("votes of edges that are not finite are kept", model, "return _mean_by_pair(_bounded(score, known), pairs)",
     "return _mean_by_pair(torch.softmax(score, dim=1)[:, :-1], pairs)", abstains("edge values")),
    ("forward does not round", model, "scores = self.counted_scores(x, edge_index, values)",
     "scores = self.smooth_scores(x, edge_index, values).detach()", predicts),
    ("numbers are not looked at before they are rounded", rounding, "if max(-low, high) * STEPS > largest:",
     "if False:", lambda path: far_beyond()),
    ("NaN is rounded", rounding, "if bad.any():", "if False:", beyond(float("nan"))),
    ("a pseudo-count is not looked at", model, "if not share.isfinite().all():", "if False:",
     lambda path: numbers.test_a_pseudo_count_that_cannot_be_counted_is_refused("pseudo_votes", float("nan"))),
    ("a file may hold the smallest whole number", form, "if expected.low is not None and found.min() < expected.low:",
     "if expected.low is not None and -abs(found).max() < expected.low:", makes_no_sense("the smallest whole number")),
    ("a vote above one is accepted", record, "self.table.sum(axis=1, dtype=np.int64).max() > STEPS",
     "self.table.sum(axis=1, dtype=np.int64).min() > STEPS", makes_no_sense("a row of votes above one")),
    ("hooks are not looked for", as_built, 'if value and attribute.endswith("hooks") and "ward" in attribute:',
     "if False:", refused(altered.a_hook_in_a_network)),
    ("attributes may hide methods", as_built, "elif attribute not in expected:", "elif False:",
     refused(altered.a_hidden_method)),
    ("subclasses are taken for the class", as_built, "if type(found) is not type(new):",
     "if not isinstance(found, type(new)):", refused(altered.a_layer_of_a_subclass)),
    ("wrappers may be of a subclass", model, "if type(own) is not GraphFree:", "if not isinstance(own, GraphFree):",
     refused(altered.a_wrapper_of_somebodys_own)),
    ("settings may be of a subclass", as_built, "if type(model.defence) is not of_kind:", "if False:",
     refused(altered.settings_of_a_subclass)),
    ("hooks of all modules are not looked for", as_built, 'if name.startswith("_global_") and "hook" in name',
     "if False", lambda path: altered.test_a_hook_of_all_modules_is_refused()),
    ("votes may count twice", model, "if float(self.use_votes) not in (0.0, 1.0):", "if False:",
     refused(altered.a_vote_that_counts_twice)),
    ("strange rows are not compared", own_probes, "return torch.allclose(", "return True or torch.allclose(", found("zero")),
    ("precision is not looked at", own_probes, "_probe_precision(f\"own.{number}\", own, rows)", "pass",
     lambda path: numbers.test_a_model_that_computes_in_float32_is_not_exact_enough(True)),
    ("rounding is not looked at", own_probes, "if apart > MOST_STEPS:", "if False:",
     lambda path: numbers.test_scores_that_come_out_otherwise_in_another_order_are_refused()),
    ("any locality will do", check_stacked, 'if claim.locality not in ("construction", "test"):', "if False:",
     claims.test_a_claim_that_does_not_say_how_locality_is_known_is_refused),
    ("the digest forgets settings", digest, "if is_dataclass(value) and not isinstance(value, type):", "if False:",
     lambda path: altered.test_the_digest_says_how_votes_are_combined({"combine": "mean"})),
]  # fmt: skip


def far_beyond():
    """2^200 steps, say, as a whole number: any number at all, also one within the range."""
    with np.errstate(all="ignore"):
        for value in (1e15, 2.0**47, 2.0**200, -1e15):
            beyond(value)(None)


@pytest.mark.parametrize(("mistake", "module", "old", "new", "check"), BROKEN, ids=[one[0] for one in BROKEN])
def test_a_broken_guard_is_noticed(monkeypatch, tmp_path, mistake, module, old, new, check):
    errors = (*RED, CertificateError, RuntimeError, ValueError, TypeError)
    text_turns_red(monkeypatch, module, old, new, lambda: check(tmp_path), errors)
