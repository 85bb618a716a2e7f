"""``verify``: is a certificate what it says it is?

From the file alone, every statement is derived again by separate code (``recount``) and compared; no torch is
needed. Given the graph and the model, ballots are cast again with the plain engine as well.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from agnncert import __version__
from agnncert.errors import CertificateError, SettingsError
from agnncert.proof.budget import Budget
from agnncert.proof.claim import Claim, make_claim
from agnncert.proof.evidence import BallotEvidence
from agnncert.proof.file import Contents, certificate_of, read_contents
from agnncert.proof.recount import Limits, Piles, limits, sort_ballots


@dataclass(frozen=True)
class Verdict:
    """The outcome of a check.

    Attributes:
        holds: Whether nothing was found wrong.
        reasons: What was found wrong; empty if it holds.
        checked: What was checked.
    """

    holds: bool
    reasons: tuple[str, ...]
    checked: tuple[str, ...]

    def __bool__(self) -> bool:
        return self.holds

    def __str__(self) -> str:
        head = "The certificate holds." if self.holds else "The certificate is refused."
        wrong = [f"  wrong: {reason}" for reason in self.reasons]
        return "\n".join([head, *wrong, *(f"  checked: {what}" for what in self.checked)])


def verify(path: str | Path, data: Any = None, model: Any = None, ballots: float = 0, seed: int = 0) -> Verdict:
    """Checks a certificate file, and with graph and model also the ballots in it.

    Args:
        path: The file.
        data: The graph (or list of graphs) that it speaks about: is it the same, with the same subgraphs?
        model: The model: is it the same?
        ballots: How many ballots to cast again, chosen at random; ``math.inf`` for all. Needs data and model.
            A certificate from random samples is drawn again as a whole, at the cost of certifying.
        seed: Seed of that choice.

    Returns:
        A verdict. A file that is damaged, altered, cut short, of a future version, or about something else
        does not hold; that is not an error.

    Raises:
        CertificateError: There is no such file.
        SettingsError: ``model`` or ``ballots`` was given without what they need.
    """
    file = Path(path)
    if not file.is_file():
        raise CertificateError(f"there is no file {file}.")
    if (model is not None and data is None) or (ballots and model is None):
        raise SettingsError("casting ballots again needs both the graph and the model: pass data= and model=.")
    try:
        contents = read_contents(file)
        wrong, checked = _check_contents(contents)
        if not wrong and data is not None:
            from agnncert.replay import check_against_graph

            wrong += check_against_graph(certificate_of(contents, file), data, model, ballots, seed)
            checked += ["the graph", *(["the model"] if model is not None else [])]
            again = (
                f"{ballots:,.0f} ballots cast again"
                if contents.kind == BallotEvidence.kind
                else "all samples drawn again"
            )
            checked += [again] if ballots else []
    except CertificateError as error:
        return Verdict(False, (str(error),), ())
    except MemoryError:
        return Verdict(False, (f"{file} describes more ballots than there is memory to count them in.",), ())
    return Verdict(not wrong, tuple(wrong), tuple(checked))


def _check_contents(contents: Contents) -> tuple[list[str], list[str]]:
    """What is wrong with a file's statements, and what was looked at."""
    wrong = _check_ballots(contents) if contents.kind == BallotEvidence.kind else _check_samples(contents)
    n, stated = len(contents.arrays["target"]), len(contents.budgets)
    checked = [
        "the claim, word for word" if _same_version(contents.claim) else "the facts of the claim",
        f"label, radius and new neighbours of {n:,} targets",
    ]
    return wrong, checked + ([f"{stated} stated budgets"] if stated else [])


def _check_ballots(contents: Contents) -> list[str]:
    """Ballots are counted again by code of its own."""
    evidence = BallotEvidence.load(contents.evidence, contents.settings)
    claim = contents.claim
    expected = make_claim(
        rule=evidence.rule,
        division=claim.division,
        num_groups=evidence.votes.num_groups,
        ids=evidence.ids,
        tolerance=claim.tolerance,
        digests=claim.digests,
        parameters=evidence.parameters,
        notes=claim.notes,
        library_version=claim.library_version,
    )
    wrong = [*_check_targets(contents, evidence.num_targets), *_check_claim(claim, expected)]
    return wrong or _check_votes(contents, evidence)


def _check_samples(contents: Contents) -> list[str]:
    """Statements from random samples are derived again from the counts."""
    from agnncert.proof.samples.evidence import SampleEvidence, sample_claim

    certificate, claim = certificate_of(contents, "the file"), contents.claim
    assert isinstance(certificate.evidence, SampleEvidence)  # there is no third kind
    expected = sample_claim(certificate.evidence, claim.ids, claim.digests, claim.notes, claim.library_version)
    wrong = [*_check_targets(contents, certificate.num_targets), *_check_claim(claim, expected)]
    if not np.array_equal(certificate.new_neighbours, contents.arrays["new_neighbours"]):
        wrong.append("the numbers of new neighbours do not follow from the samples")
    for i, budget in enumerate(contents.budgets):
        held, broken = certificate.holds_against(budget), certificate.broken_at_most(budget)
        if not np.array_equal(held, contents.arrays["holds"][i]) or broken != contents.broken_at_most[i]:
            wrong.append(f"the answer for {budget} does not follow from the samples")
    return wrong


def _check_targets(contents: Contents, num_targets: int) -> Iterator[str]:
    if len(contents.arrays["target"]) != num_targets:
        yield f"there are {len(contents.arrays['target'])} targets, but ballots of {num_targets}"
    for name in ("target", "row"):
        if len(np.unique(contents.arrays[name])) < len(contents.arrays[name]):
            yield f'"{name}" names a target twice'
    if (contents.arrays["row"] < 0).any():
        yield "a target is in a negative row"


def _same_version(claim: Claim) -> bool:
    """Another version may say the same in other words."""
    return claim.library_version == __version__


def _check_claim(claim: Claim, expected: Claim) -> Iterator[str]:
    facts = ("task", "method", "division", "num_groups", "guarantee", "alpha", "alpha_scope", "ids", "tolerance")
    words = ("unit", "covers", "assumes", "not_proved") if _same_version(claim) else ()
    for name in (*facts, *words):
        if getattr(claim, name) != getattr(expected, name):
            yield f'the claim\'s "{name}" is not what its evidence allows it to say'


def _check_votes(contents: Contents, evidence: BallotEvidence) -> list[str]:
    """Derives every statement again, some targets at a time."""
    wrong: dict[str, int] = {}
    prices = np.zeros((len(contents.budgets), evidence.num_targets))
    fails = np.zeros(prices.shape, dtype=bool)
    for piles in sort_ballots(evidence):
        here = piles.targets
        stored = {name: contents.arrays[name][here] for name in ("label", "radius", "new_neighbours")}
        bad = {
            "label": stored["label"] != piles.label,
            "radius": stored["radius"] != piles.radius(),
            "number of new neighbours": ~_right_neighbours(piles, stored["new_neighbours"]),
        }
        for i, budget in enumerate(contents.budgets):
            full = limits(piles, budget)
            fails[i, here] = ~piles.holds(full)
            prices[i, here] = _prices(piles, budget, full, fails[i, here])
            bad[f"answer for {budget}"] = contents.arrays["holds"][i, here] == fails[i, here]
        for name, where in bad.items():
            wrong[name] = wrong.get(name, 0) + int(where.sum())
    found = [
        f"the {name} of {count:,} targets does not follow from the ballots" for name, count in wrong.items() if count
    ]
    for i, (budget, stated) in enumerate(zip(contents.budgets, contents.broken_at_most, strict=True)):
        if stated != _broken(evidence.task, budget, prices[i], fails[i]):
            found.append(f"the stated number of targets that {budget} can break does not follow from the ballots")
    return found


def _right_neighbours(piles: Piles, stated: Any) -> Any:
    """Whether exactly the stated number of new neighbours is withstood, with unlimited changes elsewhere."""
    if piles.evidence.task == "graph":
        return stated == -1
    deleted = math.inf if piles.evidence.ids == "node_id" else 0
    rest = Budget(delete_edges=math.inf, change_edges=math.inf, delete_nodes=deleted, change_features=math.inf)
    whole = (stated >= -1) & ((stated == np.floor(stated)) | np.isinf(stated))
    amount = np.where(whole, stated, 0)
    withstands = (amount < 0) | piles.holds(limits(piles, rest, add_edges=np.maximum(amount, 0)))
    withstands_more = piles.holds(limits(piles, rest, add_edges=np.where(np.isinf(amount), 0, amount + 1)))
    return whole & withstands & (np.isinf(amount) | ~withstands_more)


def _prices(piles: Piles, budget: Budget, full: Limits, fails: Any) -> Any:
    """The fewest new neighbours with which each target breaks; infinite if the whole budget does not."""
    if budget.target_features:  # the targets that are not touched themselves; see _broken
        full = limits(piles, budget.but(target_features=False, change_features=budget.change_features + 1))
        fails = ~piles.holds(full)
    if piles.evidence.rule not in ("edge-centric/node", "node-centric/node", "gated/node") or not fails.any():
        return np.where(fails, 0.0, math.inf)
    low, high = np.zeros(len(fails)), np.minimum(full.beyond, piles.evidence.votes.num_groups)
    while (low < high).any():
        middle = np.floor((low + high) / 2)
        some = Limits(full.all, np.minimum(full.beyond, middle), np.minimum(full.unlisted, middle), full.covered)
        enough = ~piles.holds(some)
        low, high = np.where(enough, low, np.minimum(middle + 1, high)), np.where(enough, middle, high)
    return np.where(fails, low, math.inf)


def _broken(task: str, budget: Budget, prices: Any, fails: Any) -> int:
    """How many targets one attacked graph can break: the cheapest ones first, while new neighbours last."""
    if task == "graph":
        return int(fails.any())
    touched = 0.0
    if budget.target_features:
        touched = budget.delete_nodes + min(budget.change_features + 1, fails.sum())
    brought = (
        budget.inject_nodes * budget.edges_per_injected if budget.inject_nodes and budget.edges_per_injected else 0
    )
    left, broken = 2 * budget.add_edges + brought, 0
    for price in sorted(prices[np.isfinite(prices)].tolist()):
        if price > left:
            break
        left, broken = left - price, broken + 1
    return int(min(len(prices), broken + touched))
