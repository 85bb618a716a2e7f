"""Tries forgeries and judges what ``verify`` accepts: is the file what ``certify`` itself would have written?

An altered file may be accepted only if it *changes no statement*. What a reader is told is everything in the file: for
each target its id, row, label, radius, new neighbours, true class, degree and evidence; the claim; the stated budgets and
their answers. So an accepted file is compared with the honest one for the same graph, model, defence, targets and
budgets. It may leave out what is optional (true classes, degrees), speak about fewer targets or other budgets, concede
more for the sake of rounding than was measured, have scores of stacked votes that differ by no more than the file says
that machines do, lack premises that reading adds to files from before claims stated them, state smaller radii of stacked
votes with a mean, as files did before these were exact, say that locality withstood tests where it is known by
construction, and differ in what the verdict lists as not checked: notes, and
the version of the library.
"""

import json
import math
import re
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from agnncert.certificates.claim import LOCALITY, Claim
from agnncert.certificates.file import OPTIONAL
from agnncert.certificates.voting_rule import VotingRule
from agnncert.divisions.named import parse_division
from agnncert.errors import AgnncertError
from agnncert.verdict import Verdict, verify
from agnncert_peers.deletions import BiRS
from agnncert_peers.flips import RS, SparseRS
from agnncert_peers.interception import Interception
from tests.soundness.forger.alterations import EARLY, LATE, Alteration
from tests.soundness.forger.forging import (
    WHOLE,
    Draft,
    at,
    budget_of,
    derive,
    drafted,
    ids_of,
    leaves,
    seal,
    select,
    state_exclusions,
)
from tests.soundness.forger.honest import Case
from tests.soundness.forger.world import Pointless, Random, World, pick, world_of

# Arrays of each kind that another machine may compute differently, and by how many steps.
_OF_LABELS = {"evidence.left": 2, "evidence.right": 2, "evidence.cap": 2}
COMPUTED = {
    "stacked": {"evidence.prior": 1, "evidence.gate": 1, "evidence.table": 1},
    "pairs": {"evidence.prior": 1},
    "labels": _OF_LABELS,
    "labels-and-edges": _OF_LABELS,
}
SITUATIONS = ("file", "graph", "model", "some votes", "all votes")
# Where an accepted file may differ from what certify writes, if the verdict says in such words that nobody looked.
UNCHECKED = {
    ("claim", "notes"): r"note|remark",
    ("claim", "library_version"): r"version",
    ("claim", "digests", "dataset"): r"digest",
}


def verdict_on(path: Path, world: World, situation: str = "all votes") -> Verdict:
    """What ``verify`` says to a reviewer who has the file alone, the graph too, or the model too."""
    case = world.case
    given: dict[str, Any] = {}
    if situation != "file":
        given["data"] = case.data
        if not _is_built_in(case.division):
            given["defence"] = case.division
    if situation not in ("file", "graph"):
        given["model"] = case.model
        given["recheck"] = {"model": 0, "some votes": 5, "all votes": math.inf}[situation]
    return verify(path, **given)


def _is_built_in(division: Any) -> bool:
    return type(division).__module__.startswith("agnncert")


def not_checked(verdict: Verdict) -> str:
    """What a verdict says that nobody looked at."""
    return "\n".join(getattr(verdict, "not_checked", ()))


def lies(world: World, draft: Draft, verdict: Verdict | None = None) -> list[str]:
    """Where a draft says something else than ``certify`` would have written; empty if it changes no statement."""
    expected = _expected(world, draft)
    if expected is None:
        return ["its targets, budgets or tolerance are none that certify could have been given"]
    silent = not_checked(verdict) if verdict is not None else ""
    allowed = [path for path, named in UNCHECKED.items() if re.search(named, silent, re.IGNORECASE)]
    headers = [_same_premises(_same_budgets(header)) for header in (draft.header, expected.header)]
    headers[1] = _as_weakly_local(headers[1], headers[0])
    found = [".".join(map(str, path)) for path in _differences(*headers, allowed)]
    found += ["target"] if not _stored_alike(draft, expected) and _names(draft) != _names(expected) else []
    for name in sorted({name for name in (*draft.arrays, *expected.arrays) if not name.startswith("target")}):
        ours, theirs = draft.arrays.get(name), expected.arrays.get(name)
        if ours is None and name in OPTIONAL:
            continue
        if (
            ours is None
            or theirs is None
            or ours.dtype.kind != theirs.dtype.kind
            or not _alike(draft, name, ours, theirs)
        ):
            found.append(name)
    return found


def _alike(draft: Draft, name: str, ours: Any, theirs: Any) -> bool:
    """Whether two arrays say the same, up to what another machine may compute differently or an older file concede."""
    if name == "radius" and draft.header["kind"] == "stacked" and draft.settings["pseudo"]:
        return ours.shape == theirs.shape and bool((ours <= theirs).all())  # of a mean; it was not exact at first
    slack = COMPUTED.get(draft.header["kind"], {}).get(name)
    if slack is None or ours.shape != theirs.shape:
        return np.array_equal(ours, theirs)
    return bool(np.abs(ours.astype(np.int64) - theirs).max(initial=0) <= slack)


def _stored_alike(draft: Draft, expected: Draft) -> bool:
    """Whether the targets' ids are the same to the last byte, so that they need not be read."""
    ours, theirs = ({k: v for k, v in one.arrays.items() if k.startswith("target")} for one in (draft, expected))
    return ours.keys() == theirs.keys() and all(
        value.dtype == theirs[name].dtype and np.array_equal(value, theirs[name]) for name, value in ours.items()
    )


def _names(draft: Draft) -> Any:
    """The targets' ids as they are read: there may be more than one way to store them."""
    try:
        return [(type(name), name) for name in ids_of(draft)]
    except AgnncertError:
        return None


def _same_budgets(header: dict[str, Any]) -> dict[str, Any]:
    """The header with budgets as they are printed, because there is more than one way to store one."""
    statements = [statement | {"budget": str(budget_of(statement["budget"]))} for statement in header["statements"]]
    return header | {"statements": statements}


def _same_premises(header: dict[str, Any]) -> dict[str, Any]:
    """The header with what its claim assumes as it is read: claims did not state all premises at first."""
    try:
        assumes = Claim.from_json(header["claim"]).assumes
    except AgnncertError:
        return header
    return header | {"claim": header["claim"] | {"assumes": list(assumes)}}


def _as_weakly_local(header: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """The header as if locality were known by tests only, if the other one claims no more: a file may concede that."""
    claim, stated = header["claim"], other.get("claim")
    if not isinstance(stated, dict) or (claim["locality"], stated.get("locality")) != ("construction", "test"):
        return header
    assumes = [text.replace(LOCALITY["construction"], LOCALITY["test"]) for text in claim["assumes"]]
    return header | {"claim": claim | {"locality": "test", "assumes": assumes}}


def _differences(ours: dict[str, Any], theirs: dict[str, Any], allowed: list[tuple[str, ...]]) -> list[tuple[Any, ...]]:
    places = {path for header in (ours, theirs) for path in leaves(header)}
    found = []
    for path in sorted(places, key=repr):
        if any(path[: len(skipped)] == skipped for skipped in allowed):
            continue
        values = [_stored(header, path) for header in (ours, theirs)]
        whole = any(isinstance(value, (dict, list)) and value for value in values)  # its parts are compared
        if not whole and values[0] != values[1]:
            found.append(path)
    return found


def _stored(header: dict[str, Any], path: tuple[Any, ...]) -> Any:
    try:
        value = at(header, path)
    except (KeyError, IndexError, TypeError):
        return None
    return value if isinstance(value, (dict, list)) else json.dumps(value)  # tells 1, 1.0 and true apart


def _expected(world: World, draft: Draft) -> Draft | None:
    """The file that ``certify`` writes if it is given the targets, the defence and the budgets that a draft names."""
    try:
        rows = tuple(int(row) for row in draft.arrays["row"].tolist())
        return _honest(world.case.name, rows, json.dumps(_stated(draft), sort_keys=True))
    except (AgnncertError, KeyError, TypeError, ValueError, IndexError):
        return None


def _stated(draft: Draft) -> dict[str, Any]:
    stated = {"budgets": [statement["budget"] for statement in draft.header["statements"]]}
    stated |= {"excluded": ["excluded" in statement for statement in draft.header["statements"]]}
    kind = draft.header["kind"]
    if kind == "samples":
        counts = {
            name: int(draft[place][:1].sum()) or 1
            for name, place in (("selection", "selection"), ("samples", "estimation"))
        }
        return stated | {"settings": draft.settings, **counts}
    stated |= {"division": draft.claim["division"], "tolerance": draft.claim["tolerance"]}
    told = draft.settings
    if kind == "votes" and "voting_rule" in told:
        # Nothing else is told to certify: rules and classes follow from the division.
        voting_rule = VotingRule.from_json(told["voting_rule"], told["theorem"], told["num_classes"])
        stated |= {"voting_rule": voting_rule.to_json()}
    return stated


@lru_cache(maxsize=4096)
def _honest(name: str, rows: tuple[int, ...], stated: str) -> Draft | None:
    world, asked = world_of(name), json.loads(stated)
    case, given = world.case, {}
    if "settings" in asked:
        settings = asked["settings"]
        given = {name: settings[name] for name in ("alpha", "scope", "seed")} | {
            name: asked[name] for name in ("selection", "samples")
        }
        noise = {
            name: math.inf if value == "inf" else value for name, value in settings["noise"].items() if name != "kind"
        }
        case = replace(case, division=_smoothing(settings["method"], noise), settings={})
    else:
        case = _case(world, asked["division"])
        if asked["tolerance"] < world.least_tolerance:
            return None
        if asked["tolerance"] != world.least_tolerance:
            given = {"tolerance": asked["tolerance"]}
        if "voting_rule" in asked:
            given["voting_rule"] = VotingRule(**asked["voting_rule"])
        case = replace(case, settings={})
    certificate = case.certify(rows or world.honest.arrays["row"][:1], **given)
    draft = drafted(certificate, tuple(budget_of(stored) for stored in asked["budgets"]))
    if any(asked["excluded"]):
        state_exclusions(draft)
        for statement in [
            one for one, said in zip(draft.header["statements"], asked["excluded"], strict=True) if not said
        ]:
            statement.pop("excluded", None)
    if not rows:  # a file about no target says what it assumes and covers, and nothing else
        select(draft, [])
        for name in filter(draft.has, WHOLE):
            draft[name] = draft[name][:0]
        derive(draft)
    return draft


def _case(world: World, division: str) -> Case:
    """What a certificate is made from that names this division."""
    case = world.case
    honest = world.honest.claim["division"]  # of isolated models, the one that is nested in them
    return case if division in ("", str(case.division), honest) else replace(case, division=parse_division(division))


def _smoothing(method: str, noise: dict[str, Any]) -> Any:
    if method == "rs":
        return RS(1 - noise["p_add"], noise["where"])
    if method == "sparse-rs":
        return SparseRS(*(noise[name] for name in ("p_add", "p_delete", "p_add_feature", "p_delete_feature")))
    if method == "interception":
        return Interception(**noise)
    return BiRS(**noise)


@dataclass(frozen=True)
class Outcome:
    """One forgery, and what became of it.

    Attributes:
        alterations: What was altered, in order.
        fate: ``"refused"``, ``"true"`` (accepted, and changes no statement), ``"unchanged"`` (the alterations undid each
            other), ``"unwritable"``, or one of the two that must not be: ``"LIE"`` and ``"CRASH"``.
        why: Where it lies, how ``verify`` crashed, or the first reason of the refusal.
    """

    alterations: tuple[str, ...]
    fate: str
    why: str = ""


def forge(world: World, rng: Random, alterations: list[tuple[str, Alteration]], whole: bool = True) -> Draft:
    """Alters an honest draft; statements are derived again (if ``whole``) between early and late alterations.

    Raises:
        Pointless: An alteration makes no sense in this certificate, or met the ruins that the one before it left.
    """
    draft = world.honest.copy()
    try:
        for name, function in alterations:
            if name in EARLY:
                function(draft, rng, world)
        if whole:
            derive(draft)
        for name, function in alterations:
            if name in LATE:
                function(draft, rng, world)
    except (KeyError, IndexError, TypeError, ValueError, AttributeError, OverflowError, AgnncertError) as error:
        raise Pointless(repr(error)) from error
    return draft


def some_alterations(rng: Random) -> list[tuple[str, Alteration]]:
    """One alteration, or a few."""
    table = EARLY | LATE
    return [(name, table[name]) for name in (pick(rng, table) for _ in range(int(rng.choice([1, 1, 1, 2, 2, 3]))))]


def attempt(world: World, rng: Random, path: Path, alterations: list[tuple[str, Alteration]] | None = None) -> Outcome:
    """Makes one forgery and tries it on a reviewer who has everything.

    Raises:
        Pointless: The alterations cannot be made in this certificate.
    """
    chosen = alterations or some_alterations(rng)
    names = tuple(name for name, _ in chosen)
    draft = forge(world, rng, chosen, whole=rng.random() < 0.95)
    if same(draft, world.honest):
        return Outcome(names, "unchanged")
    if not seal(draft, path):
        return Outcome(names, "unwritable")
    return tried(world, draft, path, names)


def numbered(seed: int, number: int, path: Path, names: list[str]) -> tuple[str, Outcome]:
    """Forgery ``number`` of a run: about which of the named cases, and what became of it; always the same."""
    rng = np.random.default_rng([seed, number])
    while True:
        name = pick(rng, names)
        try:
            return name, attempt(world_of(name), rng, path)
        except Pointless:
            continue


def tried(world: World, draft: Draft, path: Path, names: tuple[str, ...] = ()) -> Outcome:
    """What becomes of a sealed draft."""
    try:
        verdict = verdict_on(path, world)
    except Exception as error:  # whatever it is: a refusal must be a verdict, never a traceback
        return Outcome(names, "CRASH", f"{type(error).__name__}: {error}")
    if not verdict.holds:
        return Outcome(names, "refused", verdict.reasons[0])
    wrong = lies(world, draft, verdict)
    return Outcome(names, "LIE", ", ".join(wrong)) if wrong else Outcome(names, "true")


def same(one: Draft, other: Draft) -> bool:
    """Whether two drafts make the same file."""
    return (
        json.dumps(one.header, sort_keys=True) == json.dumps(other.header, sort_keys=True)
        and set(one.arrays) == set(other.arrays)
        and all(a.dtype == other.arrays[n].dtype and np.array_equal(a, other.arrays[n]) for n, a in one.arrays.items())
    )
