"""Mistakes in what ``agnncert check`` trusts: reading, contradictions, the inequality, and statements."""

import json
import tempfile
from collections.abc import Callable
from pathlib import Path

from agnncert.contest import checker, file, form, leads, verdict
from agnncert.contest.file import write_contest
from tests.support.contests import seven_models, with_everything
from tests.support.mutations import each_mistake
from tests.unit.contest import test_contests as plays
from tests.unit.contest import test_forged_forms as forged
from tests.unit.contest import test_hostile_files as hostile


def every_play() -> None:
    for seed in range(2):
        plays.test_random_prices_never_show_what_is_false(seed)
        plays.test_a_label_is_shown_to_stay_only_where_no_play_takes_it(seed)
        plays.test_a_class_is_excluded_only_where_no_play_makes_it_win(seed)


def together() -> None:
    for seed in range(3):
        plays.test_one_attack_breaks_no_more_targets_than_is_shown(seed)


def largest() -> None:
    with tempfile.TemporaryDirectory() as folder:
        for name in forged.EXACT:
            forged.test_the_largest_budget_is_accepted_and_one_move_more_refused(name, Path(folder))


def refuses(name: str, why: str = "") -> Callable[[], None]:
    """Returns a check that a hostile file is refused, for this reason."""

    def check() -> None:
        with tempfile.TemporaryDirectory() as folder:
            write_contest(Path(folder) / "true.json", with_everything())
            value = json.loads((Path(folder) / "true.json").read_text(encoding="utf-8"))
            if name in hostile.CASES:
                value = seven_models()
            {**hostile.CASES, **hostile.EXTENDED}[name](value)
            assert why in hostile.refused(value, Path(folder))

    return check


def counted_once() -> None:
    with tempfile.TemporaryDirectory() as folder:
        plays.test_the_verdict_names_budgets_and_counts_a_target_once(Path(folder))


def accepted() -> None:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "contest.json").write_text(json.dumps(seven_models()), encoding="utf-8")
        assert verdict.check_contest(Path(folder) / "contest.json").holds


MISTAKES = [
    ("caps are free", every_play, leads, "(effect.cap[rival] + 2 * effect.doubt)", "(2 * effect.doubt)"),
    ("rounding of an effect counts once", every_play, leads, "(effect.cap[rival] + 2 * effect.doubt)", "(effect.cap[rival] + effect.doubt)"),
    ("rounding of a unit is free", every_play, leads, "lead -= unit.count * 2 * size * unit.doubt", "pass"),
    ("rounding of the target is free", every_play, leads, "lead -= (size if place == rival else weights[place]) * doubt", "pass"),
    ("ties belong to the label", every_play, leads, "smaller = sum(weights[:rival])", "smaller = sum(weights)"),
    ("a lead of 0 is enough", every_play, leads, "+ _tie(contest, weights, rival) - 1 + give", "+ _tie(contest, weights, rival) + give"),
    ("units past their phase stand", largest, leads, "lead -= unit.count * free", "pass"),
    ("what a unit lost for nothing is not sold again", largest, leads, "stands - worth - free for move", "stands - worth - 10**9 * bool(free) for move"),
    ("new effects are free", largest, leads, "any(fee > of_move[move] for move, fee in found.fees.items())", "False"),
    ("a unit takes nothing beyond its price", largest, leads, "taken += count * max(", "taken += 0 * max("),
    ("units that are alike count once", largest, leads, "taken += count * max(", "taken += max("),
    ("prices cost nothing", largest, leads, "taken += (allowed or 0) * price", "pass"),
    ("any number of moves may have a price", refuses("any number of moves at a price"), leads, "if allowed is None and price:", "if False:"),
    ("any number is none", largest, leads, "if number is None and factor:", "if False:"),
    ("a table is read one entry too early", refuses("a table whose last entry reaches more"), leads, "return values[last - 1]", "return values[max(0, last - 2)]"),
    ("every limit pays for a move", refuses("a limit whose price pays for another move"), leads, "if move in moves)", "if moves)"),
    ("a label need not lead by what it has to", refuses("a least lead that prices do not bear"), checker, "allowed.phase, give=-contest.least_lead)", "allowed.phase)"),
    ("one rival is enough", refuses("a cap that is larger for another class"), checker, "open_.append(rival)", "open_.append(rival) if rival < 2 else None"),
    ("a target needs one shared move more", refuses("a need that is one too large"), checker, "(attacker.shared.moves, need.moves - 1)", "(attacker.shared.moves, need.moves - 2)"),
    ("targets without a need do not fall", refuses("fewer targets fall"), checker, "cheapest = [0] * (len(contest.targets) - len(statement.needs)) + sorted(prices)", "cheapest = []"),
    ("a target may need something twice", refuses("a target that needs something twice"), checker, "if len({need.target for need in statement.needs}) < len(statement.needs):", "if False:"),
    ("a class is weighed against itself", refuses("a weight of the class itself", "the class itself has a weight"), checker, "if statement.weights[statement.rival] or not any(statement.weights):", "if False:"),
    ("prices are not counted", refuses("a row too few"), checker, "return [] if found == expected else", "return [] if True else"),
    ("a file without statements holds", refuses("no statements"), checker, "if not contest.statements:", "if False:"),
    ("scores need not add up", refuses("scores that are no sums"), form, "if sums != list(target.scores):", "if False:"),
    ("a label need not be ahead", refuses("a label that does not lead", "has the largest score"), form, "if target.label != leader(target.scores):", "if False:"),
    ("tables may decrease", refuses("a table that decreases"), form, "if any(after < before for", "if any(False for"),
    ("counts that nothing reads", refuses("a count that nothing reads"), form, "if count not in read:", "if False:"),
    ("two targets of one name", refuses("a target twice, once with another form"), form, "for name in _repeated(names))", "for name in [])"),
    ("unknown fields", refuses("an unknown field of the file"), file, "if name not in expected:", "if False:"),
    ("negative numbers", refuses("a negative cap"), file, "if not least <= value <= LARGEST:", "if not value <= LARGEST:"),
    ("numbers of any size", refuses("a cap of 2**62", "expected a number from"), file, "if not least <= value <= LARGEST:", "if not least <= value:"),
    ("true is a number", refuses("true for a number", "expected a whole number"), file, "if type(value) is not int:", "if not isinstance(value, int):"),
    ("budgets are not said", counted_once, verdict, 'f\'attacker "{attacker}", {budget}: {"; ".join(_said(said))}\'', 'f\'attacker "{attacker}": {"; ".join(_said(said))}\''),
    ("a target counts as often as it is named", counted_once, verdict, "kept = {each.target for each in statements if isinstance(each, Stays)}", "kept = [each.target for each in statements if isinstance(each, Stays)]"),
    ("nothing follows", accepted, verdict, "return ContestVerdict(not failures,", "return ContestVerdict(bool(failures),"),
]  # fmt: skip


@each_mistake(MISTAKES)
def test_a_mistake_is_noticed(monkeypatch, mistake):
    mistake.turns_red(monkeypatch)
