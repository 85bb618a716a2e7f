"""Do the types of feature programs hold, and the bounds under deletions, whatever a random attacker appends?"""

import numpy as np
import pytest

from agnncert.append import evaluate, polarity
from agnncert.append.evaluate import Lowered, Values
from agnncert.append.ledger import Ledger
from agnncert.append.polarity import NotMonotone, account_type
from agnncert.append.program import THREATS
from agnncert.append.trees import NO_TREES
from agnncert.verifier import recount_append, recount_rows
from agnncert.verifier.recount_rows import RowByRow
from tests.support.append_ledgers import Attack, Draw, judged_of, program_of, value_of_target

TARGET = np.array([0])
ATTACKS = 4


def with_and_without_judge(draw, threat):
    """A random program, with a judge every second time."""
    return judged_of(draw, threat) if draw.random.random() < 0.5 else (draw.program(), None)


def wrong_types(seed, programs, threats=THREATS):
    """How many random attacks contradict the type of a random program, and how many were tried."""
    draw = Draw(seed)
    wrong = tried = 0
    for _ in range(programs):
        for threat in threats:
            (program, judge), ledger = with_and_without_judge(draw, threat), draw.ledger()
            before = value_of_target(ledger, program, judge)
            try:
                kind = account_type(program.features[0], program, threat)
            except NotMonotone:
                continue
            for _ in range(ATTACKS):
                after = value_of_target(Attack(threat).on(ledger, draw), program, judge)
                tried += 1
                wrong += {"+": after < before, "-": after > before, "=": after != before}[kind]
    return wrong, tried


def is_bounded(program, threat):
    """Whether the feature of a program is one that can only rise or stay."""
    try:
        return account_type(program.features[0], program, threat) != "-"
    except NotMonotone:
        return False


def other_counts(seed, programs):
    """How often the second program, row by row, counts or bounds or types a feature otherwise; and of how many."""
    draw = Draw(seed)
    wrong = tried = 0
    for _ in range(programs):
        for threat in THREATS:
            (program, judge), ledger = with_and_without_judge(draw, threat), draw.ledger()
            if not is_bounded(program, threat):
                continue
            counter = row_by_row(ledger, program, judge, threat)
            kind = account_type(program.features[0], program, threat)
            moves = recount_append._Mover(program, threat).of_account(program.features[0], is_target=True)
            wrong += moves != {"=": frozenset(), "+": frozenset({"up"})}[kind]
            values = Values(ledger, program, judge)
            wrong += counter.table(0) != values.table(TARGET)[0].tolist()
            for deletions in (0, 1, 2, 3):
                bound = Lowered(values, threat, deletions).table(TARGET)[0].tolist()
                wrong += counter.lowered(0, deletions) != bound
            tried += 1
    return wrong, tried


def row_by_row(ledger, program, judge, threat):
    """The second program for a ledger."""
    names = [column.name for column in program.columns]
    ends = zip(ledger.source.tolist(), ledger.target.tolist(), strict=True)
    edges = [
        (source, target, [float(ledger.columns[name][row]) for name in names])
        for row, (source, target) in enumerate(ends)
    ]
    features = [[float(age)] for age in ledger.attributes["age"]]
    known = np.flatnonzero(ledger.known).tolist()
    return RowByRow(program, NO_TREES if judge is None else judge, threat, edges, features, known)


def below_the_bound(seed, programs):
    """How many random deletions with appends bring a value below its bound, and how many were tried."""
    draw = Draw(seed)
    wrong = tried = 0
    for _ in range(programs):
        for threat in THREATS:
            (program, judge), ledger = with_and_without_judge(draw, threat), draw.ledger()
            if not is_bounded(program, threat):
                continue
            for deletions in (1, 2):
                bound = int(Lowered(Values(ledger, program, judge), threat, deletions).table(TARGET)[0, 0])
                for _ in range(ATTACKS):
                    after = value_of_target(Attack(threat, deletions).on(ledger, draw), program, judge)
                    tried += 1
                    wrong += after < bound
    return wrong, tried


def test_no_random_attack_contradicts_the_type_of_a_random_program():
    wrong, tried = wrong_types(seed=101, programs=400)
    assert wrong == 0
    assert tried > 2000


def test_no_random_deletion_brings_a_value_below_its_bound():
    wrong, tried = below_the_bound(seed=102, programs=300)
    assert wrong == 0
    assert tried > 3000


def test_the_second_program_counts_bounds_and_types_as_the_first_one():
    wrong, tried = other_counts(seed=107, programs=150)
    assert wrong == 0
    assert tried > 200


def a_leaf_is_lost(monkeypatch):
    as_it_is = recount_rows._least_leaf
    monkeypatch.setattr(recount_rows, "_least_leaf", lambda trees, node, read: as_it_is(trees, node, read) + 1)


def empty_leaves_count(monkeypatch):
    whole = lambda trees, node, read, bounds, column: recount_rows._least_leaf(trees, node, read)  # noqa: E731
    monkeypatch.setattr(recount_rows, "_least_within", whole)


@pytest.mark.parametrize("fault", [a_leaf_is_lost, empty_leaves_count])
def test_a_fault_in_the_second_program_is_seen(fault, monkeypatch):
    fault(monkeypatch)
    assert other_counts(seed=107, programs=300)[0] > 0


def test_without_deletions_the_bound_is_the_value():
    draw = Draw(103)
    for _ in range(200):
        program, ledger = draw.program(), draw.ledger()
        for threat in THREATS:
            try:
                if account_type(program.features[0], program, threat) == "-":
                    continue
            except NotMonotone:
                continue
            bound = Lowered(Values(ledger, program), threat, 0).table(TARGET)[0, 0]
            assert bound == value_of_target(ledger, program)


# Faults that were planted on purpose: the random attacks find each of them.


def intervals_of_what_moves(monkeypatch):
    as_it_is = polarity._combined

    def combined(expression, types):
        if expression[0] == "between":
            return "="
        return as_it_is(expression, types)

    monkeypatch.setattr(polarity, "_combined", combined)


def columns_never_move(monkeypatch):
    monkeypatch.setattr(polarity, "column_type", lambda name, program, threat: "=")


def all_far_ends_are_frozen(monkeypatch):
    monkeypatch.setattr(polarity, "only_sent", lambda expression: True)


def what_falls_is_counted(monkeypatch):
    as_it_is = polarity._aggregate_type

    def aggregate_type(expression, program, threat, near):
        try:
            return as_it_is(expression, program, threat, near)
        except NotMonotone as error:
            if "of what can fall" in str(error):
                return "+"
            raise

    monkeypatch.setattr(polarity, "_aggregate_type", aggregate_type)


@pytest.mark.parametrize(
    "fault",
    [intervals_of_what_moves, columns_never_move, all_far_ends_are_frozen, what_falls_is_counted],
)
def test_random_attacks_find_a_wrong_type(fault, monkeypatch):
    fault(monkeypatch)
    wrong, _ = wrong_types(seed=104, programs=600)
    assert wrong > 0


def test_payers_who_break_their_promise_make_scores_fall(monkeypatch):
    on = Attack.on

    def breaking(self, ledger, draw):
        self.keeps_promise = False
        return on(self, ledger, draw)

    monkeypatch.setattr(Attack, "on", breaking)
    wrong, _ = wrong_types(seed=105, programs=600, threats=("ledger",))
    assert wrong > 0


def rows(*ends):
    """A ledger of three accounts with rows of amount 1."""
    source, target = np.array(ends, dtype=np.int64).T
    columns = {name: np.ones(len(ends), dtype=np.int64) for name in ("amount", "round", "mark", "time")}
    return Ledger(3, source, target, columns, {"age": np.zeros(3, dtype=np.int64)})


# 1 and 2 pay 0 and each other: each payer of 0 has one payer, and the pair {1, 2} goes.
TRIANGLE = rows((1, 0), (2, 0), (1, 2), (2, 1))
PAYERS_WITH_PAYERS = program_of(("sum", "in", ("at_least", ("far", ("sum", "in", ("number", 1))), 1)))


def test_a_pair_that_joins_two_partners_takes_both():
    assert value_of_target(TRIANGLE, PAYERS_WITH_PAYERS) == 2
    assert value_of_target(TRIANGLE.only(np.array([0, 1])), PAYERS_WITH_PAYERS) == 0
    assert Lowered(Values(TRIANGLE, PAYERS_WITH_PAYERS), "fresh", 1).table(TARGET)[0, 0] == 0


def test_the_triangle_finds_a_bound_that_forgets_what_partners_lose(monkeypatch):
    as_it_is = evaluate.sum_of_largest
    calls = []

    def only_the_first(values, owner, count, number):
        calls.append(number)
        found = as_it_is(values, owner, count, number)
        return found if len(calls) % 2 else np.zeros_like(found)

    monkeypatch.setattr(evaluate, "sum_of_largest", only_the_first)
    lowered = Lowered(Values(TRIANGLE, PAYERS_WITH_PAYERS), "fresh", 1)
    bound = lowered._aggregate(
        PAYERS_WITH_PAYERS.features[0],
        (seen := lowered.values.seen_by(TARGET, "in")),
        evaluate.partners_of(TRIANGLE, seen),
        np.array([1, 1]),
        np.array([0, 0]),
    )
    assert bound[0] == 1  # and the truth is 0


def test_a_far_end_that_counts_its_own_far_ends_is_bounded_for_all_partners():
    # 0 is paid by 1 and 2, whose value is how many of their payees have two payers or more: that is 0 itself.
    deep = ("sum", "out", ("at_least", ("far", ("sum", "in", ("number", 1))), 2))
    program = program_of(("sum", "in", ("at_least", ("far", deep), 1)))
    star = rows((1, 0), (2, 0))
    assert value_of_target(star, program) == 2
    assert value_of_target(star.only(np.array([0])), program) == 0  # the other payer lost it as well
    assert Lowered(Values(star, program), "fresh", 1).table(TARGET)[0, 0] == 0


# Sums.


def inserted_summands(number, seed):
    random = np.random.default_rng(seed)
    for _ in range(number):
        values = random.lognormal(0, 3, int(random.integers(20, 400)))
        new = random.lognormal(-38, 3) if random.random() < 0.5 else 0.0
        yield values, np.insert(values, int(random.integers(0, len(values) + 1)), new)


def test_a_sum_of_floats_may_fall_when_a_row_is_inserted():
    fell = sum(after.sum() < before.sum() for before, after in inserted_summands(2000, seed=106))
    assert fell > 100


def test_sums_of_whole_numbers_never_fall_when_a_row_is_inserted():
    for before, after in inserted_summands(2000, seed=106):
        owners = np.zeros(len(after), dtype=np.int64)
        whole = [np.rint(np.minimum(values * 2**10, 2**36)).astype(np.int64) for values in (before, after)]
        sums = [evaluate.total(values, owners[: len(values)], 1)[0] for values in whole]
        assert sums[1] >= sums[0]
