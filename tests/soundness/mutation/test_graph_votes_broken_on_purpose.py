"""Mistakes in graph votes, each of which a law or a test must notice."""

from agnncert.graph_votes import defence, evidence, model, seen, worst
from agnncert.verifier import recount_graph_votes
from tests.soundness.laws import test_graph_votes as laws
from tests.support.mutations import each_mistake
from tests.unit.graph_votes import test_defence as unit
from tests.unit.graph_votes import test_seen as looks


def law(trusted):
    return lambda: laws.test_statements_are_true_and_none_is_too_weak(trusted)


def both(trusted):
    return lambda: laws.test_prover_and_verifier_say_the_same_of_every_class(trusted)


def uncovered(trusted):
    return lambda: laws.test_nothing_is_proved_about_changes_of_what_is_trusted(trusted)


PROVER = [
    ("ties go to the label", "- int(rival < leader)  # a smaller class", "- 0  # a smaller class", law("structure")),
    ("the largest loss is left out", "before = upto - number - (upto - number)[first[self.owner]]",
     "before = upto - number - (upto - number)[first[self.owner]] + 1", law("structure")),
    ("the smallest losses first", "np.lexsort((-loss, owner[entries]))", "np.lexsort((loss, owner[entries]))", law("nodes")),
    ("an item loses no more than its vote", "loss = vote[context, state] - vote.min(axis=1, initial=LARGEST_LOSS)[context]",
     "loss = np.maximum(vote[context, state], 0)", law("structure")),
    ("pairs that are apart cannot be joined", "items.largest_fall(attack.add_edges, ~items.is_joined)", "0", law("nodes")),
    ("joined pairs cannot be separated", "items.largest_fall(attack.delete_edges, items.is_joined)",
     "items.largest_fall(0, items.is_joined)", law("nodes")),
    ("each item counts once", "np.add.at(fall, self.owner, number * self.loss)",
     "np.add.at(fall, self.owner, np.minimum(number, 1) * self.loss)", law("count")),
    ("edges of what is trusted are free", "return all(name in _COVERED[self.trusted] or not getattr(budget, name) for name in _CHANGES)",
     "return True", uncovered("structure")),
    ("features are free where nodes are trusted", "return all(name in _COVERED[self.trusted] or not getattr(budget, name) for name in _CHANGES)",
     "return not budget.inject_nodes", uncovered("nodes")),
    ("deleted nodes leave their votes", "for k in range(1, most + 1):", "for k in range(1, 1):", law("none")),
    ("new nodes bring nothing", "self.brought = -int(vote.min())", "self.brought = 0", law("none")),
    ("no node is altered", "return np.asarray(np.minimum(left, most), dtype=np.int64)",
     "return np.asarray(0 * left, dtype=np.int64)", law("none")),
    ("the number of nodes has no score", "return np.asarray(self.score[np.clip(sizes, 0, len(self.score) - 1)])",
     "return np.asarray(0 * np.clip(sizes, 0, 1))", law("none")),
    ("more nodes are deleted than there are", "best = np.where(deleted <= self.size, np.maximum(best, fall), best)\n        return best\n\n    def _altered",
     "best = np.maximum(best, fall)\n        return best\n\n    def _altered", laws.test_what_is_said_of_a_graph_does_not_depend_on_others),
]  # fmt: skip
VERIFIER = [
    ("ties go to the label", "- (1 if rival < leader else 0)", "- 0", both("structure")),
    ("losses are not sorted", "return sorted(losses, reverse=True)", "return losses", both("structure")),
    ("items of one kind change together", "total += loss * int(min(times, most))", "total += loss * times", both("count")),
    ("every state is the least", "losses.append((votes[state] - min(votes), times))", "losses.append((0, times))", both("nodes")),
    ("altered nodes keep their votes", "lead -= vote if place < deleted else max(vote - least, 0)",
     "lead -= vote if place < deleted else 0", both("none")),
    ("new nodes bring nothing", "- before + injected * least", "- before", both("none")),
    ("nodes are trusted where nothing is", '"none": True,', '"none": not nodes,', both("none")),
    ("nodes come and go where their number is trusted", '"count": not nodes,', '"count": True,', uncovered("count")),
]  # fmt: skip


LEAKS = [
    ("features enter the structure", looks.test_structure_is_read_without_features, model, "prior = self.advance(shape, graph.x if self.trusted == \"nodes\" else None)", "prior = self.advance(shape, None) + int(abs(float(graph.x.sum())))"),
    ("edges enter the bag", looks.test_a_bag_of_nodes_reads_no_edge, model, "return of_nodes(self.types, x.numpy(), without_edges(shape))", "return of_structure(shape)"),
    ("numbers of nodes enter their colours", looks.test_numbering_of_nodes_does_not_matter, seen, "colour = _mixed(np.zeros(self.num_nodes, dtype=np.uint64))", "colour = _mixed(np.arange(self.num_nodes, dtype=np.uint64))"),
    ("a row that nobody knows has the first type", looks.test_every_row_of_features_has_a_type, seen, "kind[number] = known.get(row.tobytes(), len(self.rows))", "kind[number] = known.get(row.tobytes(), 0)"),
    ("degrees are features of a bag", unit.test_features_that_are_degrees_are_refused_where_edges_change, defence, "found += inspect_features(joined)", "found += []"),
    ("edges may be computed where features change", unit.test_edges_that_follow_features_are_refused_where_features_change, defence, "return [finding for findings in found for finding in findings]", "return []"),
    ("numbers of a file are not compared", unit.test_a_file_about_other_items_is_refused, defence, "if not np.array_equal(stated, value):", "if False:"),
    ("the smallest losses are attacked", unit.test_the_worst_attack_is_the_bound, worst, "key=lambda each: (-each.loss, each.item)", "key=lambda each: (each.loss, each.item)"),
]  # fmt: skip
ALL = [
    *((what, notices, evidence, old, new) for what, old, new, notices in PROVER),
    *((f"verifier: {what}", notices, recount_graph_votes, old, new) for what, old, new, notices in VERIFIER),
    *LEAKS,
]


@each_mistake(ALL)
def test_a_mistake_is_noticed(monkeypatch, mistake):
    mistake.turns_red(monkeypatch)
