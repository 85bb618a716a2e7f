"""What follows from a contest is what no play changes: every play on small random contests is tried."""

import json
import subprocess
import sys
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

import agnncert as ac
from agnncert.contest import checker, leads, search, verdict
from agnncert.contest.file import read_contest, to_json, write_contest
from agnncert.contest.form import (
    EXTENSIONS,
    Attacker,
    BrokenAtMost,
    Claim,
    Contest,
    Excludes,
    Limit,
    Statement,
    Stays,
    Target,
)
from agnncert.contest.plays import Hit, Play, objections, scores_after
from tests.support.contests import (
    can_win,
    falls,
    random_budget,
    random_contest,
    seven_models,
    with_everything,
)

SEEDS = range(6)


def some_extensions(rng: np.random.Generator) -> tuple[str, ...]:
    return tuple(name for name in EXTENSIONS if rng.random() < 0.3)


def follows(contest: Contest, statement: Stays) -> bool:
    return not checker.check(replace(contest, statements=(statement,)))


@pytest.mark.parametrize("seed", SEEDS)
def test_a_label_is_shown_to_stay_only_where_no_play_takes_it(seed: int) -> None:
    rng, seen = np.random.default_rng(seed), Counter[str]()
    for _ in range(60):
        contest = random_contest(rng, some_extensions(rng))
        budget = random_budget(rng, contest)
        for place, target in enumerate(contest.targets):
            allowed = leads.allowance(contest.attackers["all"], budget, target)
            statement = search.stays(contest, place, "all", budget)
            if statement is None:
                rivals = [k for k in range(len(contest.classes)) if k != target.label]
                assert any(search.play_against(contest, target, allowed, k) for k in rivals)
                seen["falls"] += 1
            else:
                assert follows(contest, statement)
                assert not falls(contest, target, allowed)
                seen["stays"] += 1
    assert min(seen.values()) > 10


@pytest.mark.parametrize("seed", SEEDS)
def test_a_class_is_excluded_only_where_no_play_makes_it_win(seed: int) -> None:
    rng, seen = np.random.default_rng(100 + seed), Counter[str]()
    for _ in range(60):
        contest = random_contest(rng, some_extensions(rng))
        budget = random_budget(rng, contest)
        for place, target in enumerate(contest.targets):
            allowed = leads.allowance(contest.attackers["all"], budget, target)
            for rival in range(len(contest.classes)):
                if search.excludes(contest, place, "all", budget, rival) is None:
                    seen["open"] += 1
                    continue
                assert not can_win(contest, target, allowed, rival)
                seen["excluded"] += 1
    assert min(seen.values()) > 10


@pytest.mark.parametrize("seed", SEEDS)
def test_random_prices_never_show_what_is_false(seed: int) -> None:
    rng, seen = np.random.default_rng(200 + seed), 0
    for _ in range(80):
        contest = random_contest(rng, some_extensions(rng))
        budget = random_budget(rng, contest)
        limits = len(contest.attackers["all"].limits)
        for place, target in enumerate(contest.targets):
            allowed = leads.allowance(contest.attackers["all"], budget, target)
            prices = tuple(
                () if k == target.label else tuple(int(x) for x in rng.integers(0, 12, limits))
                for k in range(len(contest.classes))
            )
            if follows(contest, Stays(place, "all", budget, prices)):
                assert not falls(contest, target, allowed)
                seen += 1
    assert seen > 5


def broken_by_plays(contest: Contest, budget: dict[str, int | None]) -> int:
    """How many targets fall if the shared moves are bought one by one, by trying every play on each target."""
    attacker = contest.attackers["all"]
    total = checker.shared_moves(contest, "all", budget)
    assert attacker.shared is not None
    needs = []
    for target in contest.targets:
        allowed = leads.allowance(attacker, budget, target)
        most = 20 if total is None else total
        for spent in range(most + 1):
            own = (attacker.shared.moves, spent)
            if falls(contest, target, leads.Allowance((*allowed.limits, own), allowed.phase)):
                needs.append(spent)
                break
    return checker.affords(sorted(needs), total)


@pytest.mark.parametrize("seed", SEEDS)
def test_one_attack_breaks_no_more_targets_than_is_shown(seed: int) -> None:
    rng, seen = np.random.default_rng(300 + seed), Counter[bool]()
    for _ in range(25):
        contest = random_contest(rng, ("together",))
        budget = random_budget(rng, contest)
        budget |= {"any": int(rng.integers(0, 4)), "steps": 0}
        statement = search.broken_at_most(contest, "all", budget)
        assert statement is not None
        assert not checker.check(replace(contest, statements=(statement,)))
        truth = broken_by_plays(contest, budget)
        assert truth <= statement.number
        seen[truth == statement.number] += 1
        if statement.number:
            false = BrokenAtMost("all", budget, statement.number - 1, statement.needs)
            assert checker.check(replace(contest, statements=(false,)))
    assert seen[True] > 20


def test_moves_that_limits_share_are_counted_once_under_each_limit() -> None:
    contest = with_everything()
    target = contest.targets[0]
    allowed = leads.Allowance(((("alter",), 1), (("add",), None)), 0)
    hit = Play((Hit(0, 1, 2, "alter"),), (), 1)
    assert objections(contest, target, allowed, hit) == ["alter: more than 1"]
    assert objections(contest, target, allowed, Play((), (("add", 99),), 1)) == []
    assert objections(contest, target, allowed, Play((), (("alter", 1),), 1)) == ["alter brings nothing new"]
    assert objections(contest, target, allowed, Play((Hit(0, 0, 1, None),), (), 1)) == [
        "the phase of a unit is not over"
    ]
    assert objections(contest, target, allowed, Play((Hit(0, 0, 2, "alter"),), (), 1)) == [
        "a unit is hit twice",
        "alter: more than 1",
    ]
    assert scores_after(target, Play((Hit(0, 1, 1, "alter"),), (("add", 2),), 1))[0] == (22, 6, 0)


@pytest.mark.parametrize("seed", SEEDS)
def test_what_is_written_is_read_again(seed: int, tmp_path) -> None:
    rng = np.random.default_rng(400 + seed)
    for _ in range(20):
        extensions = some_extensions(rng)
        contest = random_contest(rng, extensions)
        budget = random_budget(rng, contest)
        said: list[Statement | None] = [search.stays(contest, k, "all", budget) for k in range(len(contest.targets))]
        said += [search.excludes(contest, 0, "all", budget, 0)]
        if "together" in extensions:
            said.append(search.broken_at_most(contest, "all", budget))
        contest = replace(contest, statements=tuple(each for each in said if each is not None))
        write_contest(tmp_path / "contest.json", contest)
        assert to_json(read_contest(tmp_path / "contest.json")) == to_json(contest)


def test_a_true_file_holds_and_says_whose_word_it_rests_on(tmp_path) -> None:
    write_contest(tmp_path / "contest.json", with_everything())
    found = ac.check_contest(tmp_path / "contest.json")
    assert found
    assert "The statements follow from the form." in str(found)
    assert "not checked: that the form describes votes of toys: a test says so" in str(found)
    assert "one attack breaks 1 target at most" in str(found)
    assert 'that attacker "all" does no more: "alter" the table "reach" of the target times' in str(found)


def test_the_verdict_names_budgets_and_counts_a_target_once(tmp_path) -> None:
    """Else a file that says the same of one target a thousand times, or nothing of any attack, would look strong."""
    value = seven_models()
    (said,) = value["statements"]
    none = said | {"budget": {"poisoned": 0}}
    value["statements"] = [said] * 1_000 + [none]
    (tmp_path / "contest.json").write_text(json.dumps(value), encoding="utf-8")
    checked = ac.check_contest(tmp_path / "contest.json").checked
    assert 'attacker "poisoner", poisoned 1: 1 target keeps its label' in checked
    assert 'attacker "poisoner", poisoned 0: 1 target keeps its label' in checked


def test_a_verdict_about_many_budgets_stays_short(tmp_path) -> None:
    contest = with_everything()
    said = [search.stays(contest, 0, "all", {"altered": 0, "new": 0}) for _ in range(40)]
    budgets = [{"altered": 0, "new": 0, "spare": number} for number in range(40)]
    attacker = contest.attackers["all"]
    wide = replace(attacker, counts={**attacker.counts, "spare": "more"}, phase={"new": 1, "spare": 0})
    limits = (*attacker.limits, Limit(("add",), {"spare": 1}))
    contest = replace(contest, attackers={"all": replace(wide, limits=limits)})
    rows = tuple((*row, 0) if row else () for row in said[0].prices)
    stays = [Stays(0, "all", budget, rows) for budget in budgets]
    write_contest(tmp_path / "contest.json", replace(contest, statements=tuple(stays)))
    found = ac.check_contest(tmp_path / "contest.json")
    assert found, found
    assert len(found.checked) == 22
    assert found.checked[-1] == "20 statements about 20 more budgets"


def test_a_false_statement_is_refuted_by_a_play(tmp_path) -> None:
    value = seven_models()
    value["statements"][0]["budget"]["poisoned"] = 2
    (tmp_path / "contest.json").write_text(json.dumps(value), encoding="utf-8")
    (play,) = ac.check_contest(tmp_path / "contest.json").plays
    assert "2 x poison on units that add [1, 0]" in play
    assert "[5, 2] become [3, 4]" in play


def test_checking_a_file_loads_no_torch(tmp_path) -> None:
    write_contest(tmp_path / "contest.json", with_everything())
    script = (
        "import sys, agnncert as ac; assert ac.check_contest(sys.argv[1]); "
        "heavy = {'torch', 'scipy', 'agnncert.proving', 'agnncert.verifier'} & set(sys.modules); assert not heavy, heavy"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "contest.json")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_a_file_that_is_refused_does_not_keep_the_checker_busy_with_plays(tmp_path, monkeypatch) -> None:
    value = seven_models()
    value["statements"][0]["budget"]["poisoned"] = 2
    (tmp_path / "contest.json").write_text(json.dumps(value), encoding="utf-8")
    monkeypatch.setattr(verdict, "MOST_TRIED", 1)
    (play,) = ac.check_contest(tmp_path / "contest.json").plays
    assert "none was looked for" in play


@pytest.mark.parametrize(("changes", "entry"), [(0, 0), (1, 2), (2, 5), (9, 5), (None, 5)])
def test_a_table_says_its_last_entry_for_more_changes_and_for_any_number(changes, entry):
    assert leads.read_table((2, 5), changes) == entry
    assert leads.read_table((), changes) == 0


def without_moves(scores: tuple[int, ...], least_lead: int) -> Contest:
    """A contest of one target that nobody attacks."""
    label = max(range(len(scores)), key=lambda k: (scores[k], -k))
    return Contest(
        claim=Claim("none", "nobody", "nowhere", ()),
        extensions=("abstention",),
        classes=tuple("abcde"[: len(scores)]),
        moves={"nothing": "nothing happens"},
        attackers={"idle": Attacker({"times": "of nothing"}, (Limit(("nothing",), {"times": 1}),))},
        targets=(Target("one", label, scores, scores, (), {}),),
        statements=(),
        least_lead=least_lead,
    )


@pytest.mark.parametrize(("scores", "is_out"), [((5, 4, 4), True), ((5, 3, 3), False), ((5, 3, 4), True)])
def test_a_class_that_leads_two_others_by_less_than_the_least_lead_is_not_given(scores, is_out):
    contest = without_moves(scores, least_lead=2)
    statement = Excludes(0, "idle", {"times": 0}, rival=0, weights=(0, 1, 1), prices=(0,))
    allowed = leads.allowance(contest.attackers["idle"], {"times": 0}, contest.targets[0])
    assert checker.excluded(contest, contest.targets[0], allowed, statement) == is_out


@pytest.mark.parametrize("weights", [(1, 1, 0), (1, 0, 0), (0, 0, 0)])
def test_a_class_does_not_lead_itself(weights):
    contest = without_moves((5, 1, 1), least_lead=2)
    statement = Excludes(0, "idle", {"times": 0}, rival=0, weights=weights, prices=(0,))
    wrong = checker.wrong_form(replace(contest, statements=(statement,)))
    assert any("the class itself has a weight, or no other class has one" in what for what in wrong)


def test_scores_are_the_fixed_part_and_the_units_class_by_class():
    contest = without_moves((5, 1, 1), least_lead=0)
    moved = replace(contest.targets[0], fixed=(1, 5, 1))
    wrong = checker.wrong_form(replace(contest, targets=(moved,)))
    assert any("fixed and units add up to [1, 5, 1], its scores are [5, 1, 1]" in what for what in wrong)


@pytest.mark.parametrize(("values", "decreases"), [((-1, 2), True), ((2, 1), True), ((0, 0, 3), False)])
def test_a_table_grows_from_nothing(values, decreases):
    contest = with_everything()
    one = replace(contest.targets[0], tables={"reach": values})
    wrong = checker.wrong_form(replace(contest, targets=(one, contest.targets[1])))
    assert any('its table "reach" decreases' in what for what in wrong) == decreases
