import random

import pytest

from agnncert_code import rewrites
from agnncert_code.budgets import difference
from agnncert_code.reading import graph
from agnncert_code.syntax import parse
from tests.support.functions import FUNCTIONS


@pytest.mark.parametrize("name", rewrites.REWRITES)
def test_every_rewrite_gives_text_that_still_parses(name):
    done = 0
    for seed in range(10):
        for text in FUNCTIONS:
            new = rewrites.REWRITES[name](text, random.Random(seed), "cpp")
            if new is not None:
                done += 1
                assert new != text
                assert not parse(new).partial
    assert done


def one(rewrite, body, seed=0):
    return rewrite(f"void f() {{ {body} }}", random.Random(seed), "cpp")


def test_dead_code_costs_insertions_only():
    for seed in range(20):
        cost = difference(FUNCTIONS[0], rewrites.insert_dead_code(FUNCTIONS[0], random.Random(seed)))
        assert cost.deleted == ()
        assert 1 <= len(cost.inserted) <= 2


def test_only_statements_that_can_be_repeated_are():
    assert one(rewrites.duplicate_statement, "x = y;") == "void f() { x = y; x = y; }"
    for body in ("x++;", "x = x + 1;", "f();", "int x = 1;", "a[i] = i;", "return;"):
        assert one(rewrites.duplicate_statement, body) is None


def test_a_renamed_variable_costs_every_statement_that_mentions_it():
    new = one(rewrites.rename_variable, 'int x = 0; y->x = x; g(x, "x"); h(); // x')
    assert new == 'void f() { int x_0 = 0; y->x = x_0; g(x_0, "x"); h(); // x }'[:-1] + "}"
    taken = one(rewrites.rename_variable, "int x = 0; x_0(x);")
    assert "x_1" in taken


def test_a_new_name_is_not_taken():
    assert one(rewrites.rename_variable, "h();") is None


def test_swapping_is_free_and_keeps_statements_that_depend_on_each_other():
    assert one(rewrites.swap_statements, "x = 1; y = 2;") == "void f() { y = 2; x = 1; }"
    for body in ("x = 1; y = x;", "y = x; x = 1;", "x = 1; x = 2;", "x = 1; f();", "*p = 1; y = *q;", "x = 1; return;"):
        assert one(rewrites.swap_statements, body) is None
    before = "void f() { x = 1; y = 2; }"
    assert difference(before, rewrites.swap_statements(before, random.Random(0))).count == 0


def test_declarations_are_split_and_merged():
    assert one(rewrites.split_declaration, "static int a = 1, *b;") == "void f() { static int a = 1; static int *b; }"
    assert one(rewrites.merge_declarations, "int a = 1; int *b, c;") == "void f() { int a = 1, *b, c; }"
    assert one(rewrites.merge_declarations, "int a; char b;") is None
    assert one(rewrites.split_declaration, "int a;") is None


def test_texts_with_nothing_to_rewrite_are_left_alone():
    for text in ("", "g();", "{{{"):
        assert list(rewrites.rewritten(text)) == []


def test_the_search_stays_within_its_edits_and_lowers_the_margin():
    def margin(text):
        return 3 - sum("0" in id for id in graph(text).ids)

    start = FUNCTIONS[0]
    best, spent = rewrites.greedy_rewrite(start, margin, inserted=6, rounds=8)
    assert margin(best) < margin(start)
    assert spent == difference(start, best)
    assert spent.within(inserted=6)
    assert rewrites.greedy_rewrite(start, margin)[1].count == 0


def test_the_worst_edits_take_from_the_label_and_give_to_its_rival():
    text = "void f() { check(a); if (b) { check(b); } h(a); }"

    def vote(text):
        return 0 if "check" in text else 1

    for amounts, spent in (
        ({"inserted": 2}, (2, 0)),
        ({"deleted": 1}, (0, 1)),
        ({"deleted": 5}, (0, 2)),
        ({"replaced": 2}, (2, 2)),
        ({"inserted": 1, "deleted": 1, "replaced": 1}, (2, 2)),
    ):
        new, cost = rewrites.worst_edits(text, vote, 0, "bad();", **amounts)
        assert not parse(new).partial
        assert (len(cost.inserted), len(cost.deleted)) == spent
        assert cost == difference(text, new)
        assert cost.within(**amounts)
        assert set(cost.inserted) <= {"bad ( ) ;"}
        assert all("check" in one for one in cost.deleted)
    assert rewrites.worst_edits("int x;", vote, 0, "bad();", inserted=1) is None
