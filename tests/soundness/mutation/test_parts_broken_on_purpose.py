"""Mistakes in where a part of the targets begins: for small graphs, which are one part, nothing is wrong."""

from functools import cache, partial

from agnncert.labels import evidence, joint_evidence, weights
from agnncert.pairs import model as pair_model
from agnncert.stacked import model as stacked_model
from agnncert.verifier import recount_joint, recount_labels, recount_possible
from tests.support.mutations import each_mistake
from tests.unit import test_parts_and_whole as parts
from tests.unit.labels import test_label_votes as units


@cache
def in_parts(counted):
    """The check of one count: one object for each, so that it is seen green once."""
    return partial(parts.compare_parts_with_whole, counted)


MISTAKES = [
    ("neighbours of an earlier part", in_parts(parts.evidence_of_both), joint_evidence, "listed_of(self.indptr, numbers)", "listed_of(self.indptr, np.arange(len(numbers)))"),
    ("labels of an earlier part", in_parts(parts.evidence_of_both), joint_evidence, "label = self.leaders(numbers, leader)", "label = self.leaders(np.arange(len(numbers)), leader)"),
    ("the first part is answered for all", in_parts(parts.label_evidence), evidence, "fewest[rows] = self._count(", "fewest[: len(self._numbers(rows))] = self._count("),
    ("weights of the first targets", in_parts(parts.label_evidence), evidence, "self.right.T.astype(np.float64)  # whole, below 2**42\n            steps = np.floor_divide(products.astype(np.int64) * STEPS, self.cap[part, None])", "self.right.T.astype(np.float64)\n            steps = np.floor_divide(products.astype(np.int64) * STEPS, self.cap[: len(products), None])"),
    ("others than oneself are silenced", in_parts(parts.label_weights), weights, "_silence(products, own[part])", "_silence(products, own[: len(products)])"),
    ("others than oneself are silenced in a box", in_parts(parts.label_weights), weights, "_silence(moved, own[part])", "_silence(moved, own[: len(moved)])"),
    ("the recount: scores of the first part", in_parts(parts.recounted_both), recount_joint, "score[rows, k] = advance", "score[: len(rows), k] = advance"),
    ("the recount: the first part is answered for all", in_parts(parts.recounted_labels), recount_labels, "yield targets[block]", "yield targets[: block.stop - block.start]"),
    ("the recount: classes of the first part", in_parts(parts.recounted_possible), recount_possible, "part = Part(record, targets)", "part = Part(record, slice(0, targets.stop - targets.start))"),
    ("values of the first pairs", in_parts(parts.pair_scores), pair_model, "values[rows].to(dtype))", "values[: len(rows)].to(dtype))"),
    ("nodes of the first pairs", in_parts(parts.pair_scores), pair_model, "torch.from_numpy(ends[rows.numpy()]).T", "torch.from_numpy(ends[: len(rows)]).T"),
    ("scores of the first nodes", in_parts(parts.stacked_scores), stacked_model, "F.log_softmax(model(rows), dim=1)", "F.log_softmax(model(x[: len(rows)]), dim=1)"),
    ("a price is rounded up", units.test_a_price_is_never_more_than_the_cheapest_attack_costs, evidence, "(1 - 1e-9)", "(1 + 1e-9)"),
]  # fmt: skip


@each_mistake(MISTAKES)
def test_a_mistake_is_noticed(monkeypatch, mistake):
    mistake.turns_red(monkeypatch)
