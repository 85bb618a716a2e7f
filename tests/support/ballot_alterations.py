"""Alterations of ballots, of the rule that counts them, and of the division: see ``alterations``."""

import re
from typing import Any

import numpy as np

from agnncert.certificates.rules import RULES
from tests.support.forgers_world import Random, World, pick, require
from tests.support.forging import LISTED, PREFIX, Draft


def _ballots(draft: Draft) -> None:
    require(draft.header["kind"] == "ballots" and draft.has("ballot"))


def _listed_of(draft: Draft, target: int) -> Any:
    return np.arange(draft["indptr"][target], draft["indptr"][target + 1])


# Ballots


def one_ballot(draft: Draft, rng: Random, world: World) -> None:
    """One listed ballot is for another class."""
    _ballots(draft)
    require(len(draft["ballot"]))
    k = int(rng.integers(len(draft["ballot"])))
    draft["ballot"][k] = pick(rng, set(range(-1, draft.settings["num_classes"])) - {int(draft["ballot"][k])})


def many_ballots(draft: Draft, rng: Random, world: World) -> None:
    """Some listed ballots are for classes drawn at random."""
    _ballots(draft)
    chosen = rng.random(len(draft["ballot"])) < rng.choice([0.1, 0.5, 1.0])
    require(chosen.any())
    draft["ballot"][chosen] = rng.integers(-1, draft.settings["num_classes"], int(chosen.sum()))


def unanimous(draft: Draft, rng: Random, world: World) -> None:
    """All ballots of a target are for one class."""
    _ballots(draft)
    target, winner = int(rng.integers(draft.num_targets)), int(rng.integers(draft.settings["num_classes"]))
    draft["ballot"][_listed_of(draft, target)] = winner
    if draft["default"][target] >= 0:
        draft["default"][target] = winner


def default_ballot(draft: Draft, rng: Random, world: World) -> None:
    """One default ballot is for another class."""
    _ballots(draft)
    k = int(rng.integers(draft.num_targets))
    draft["default"][k] = pick(rng, set(range(-1, draft.settings["num_classes"])) - {int(draft["default"][k])})


def _flip_flags(draft: Draft, rng: Random, name: str, value: bool | None) -> None:
    _ballots(draft)
    flags = draft[name]
    where = np.arange(len(flags)) if value is None else np.flatnonzero(flags != value)
    require(len(where))
    chosen = where if rng.random() < 0.3 else where[[int(rng.integers(len(where)))]]
    flags[chosen] = ~flags[chosen]


def more_stable(draft: Draft, rng: Random, world: World) -> None:
    """Ballots near a tie are called stable."""
    _flip_flags(draft, rng, "stable", True)


def less_stable(draft: Draft, rng: Random, world: World) -> None:
    """Stable ballots are called unstable."""
    _flip_flags(draft, rng, "stable", False)


def default_more_stable(draft: Draft, rng: Random, world: World) -> None:
    """Default ballots near a tie are called stable."""
    _flip_flags(draft, rng, "default_stable", True)


def default_less_stable(draft: Draft, rng: Random, world: World) -> None:
    """Stable default ballots are called unstable."""
    _flip_flags(draft, rng, "default_stable", False)


def reached_flags(draft: Draft, rng: Random, world: World) -> None:
    """Listed ballots are called reached or not."""
    _flip_flags(draft, rng, "reached", None)
    mend_cover(draft)


def mend_cover(draft: Draft, per_node: int | None = None) -> None:
    """A cover table that a rule with one accepts: as it was, but ending with the number of reached ballots."""
    reached = np.bincount(draft.owner[draft["reached"]], minlength=draft.num_targets)
    rows = []
    for k, number in enumerate(reached.tolist()):
        row = draft["cover"][draft["cover_ptr"][k] : draft["cover_ptr"][k + 1]].tolist()
        row = (
            [entry for entry in row if entry < number] if per_node is None else list(range(per_node, number, per_node))
        )
        rows.append([*row, number] if number else [])
    _set_cover(draft, rows if _uses_cover(draft) else [[] for _ in rows])


def _set_cover(draft: Draft, rows: list[list[int]]) -> None:
    draft["cover"] = [entry for row in rows for entry in row]
    draft["cover_ptr"] = np.cumsum([0, *map(len, rows)])


def _uses_cover(draft: Draft) -> bool:
    rule = RULES.get(str(draft.settings["rule"]))
    return rule is not None and rule.uses_cover


def unlisted(draft: Draft, rng: Random, world: World) -> None:
    """A listed ballot is left out: the default is cast there."""
    _ballots(draft)
    require(len(draft["group"]))
    k = int(rng.integers(len(draft["group"])))
    target = int(draft.owner[k])
    for name in filter(draft.has, LISTED):
        draft[name] = np.delete(draft[name], k)
    draft["indptr"][target + 1 :] -= 1
    mend_cover(draft)


def listed(draft: Draft, rng: Random, world: World) -> None:
    """A ballot is listed that was not."""
    _ballots(draft)
    target = int(rng.integers(draft.num_targets))
    here = _listed_of(draft, target)
    group = pick(rng, set(range(draft.settings["num_groups"])) - set(draft["group"][here].tolist()))
    k = int(draft["indptr"][target] + (draft["group"][here] < group).sum())
    ballot = rng.integers(draft.settings["num_classes"]) if rng.random() < 0.5 else draft["default"][target]
    new = {"group": group, "ballot": ballot, "stable": True, "reached": rng.random() < 0.7, "one_way": False}
    for name in filter(draft.has, LISTED):
        draft[name] = np.insert(draft[name], k, new[name])
    draft["indptr"][target + 1 :] += 1
    mend_cover(draft)


def regrouped(draft: Draft, rng: Random, world: World) -> None:
    """A listed ballot is said to be of another subgraph."""
    _ballots(draft)
    target = int(rng.integers(draft.num_targets))
    here = _listed_of(draft, target)
    require(len(here))
    old = pick(rng, here)
    new = pick(rng, set(range(draft.settings["num_groups"])) - set(draft["group"][here].tolist()))
    draft["group"][old] = new
    order = here[np.argsort(draft["group"][here])]
    for name in filter(draft.has, LISTED):
        draft[name][here] = draft[name][order].copy()


def cover_table(draft: Draft, rng: Random, world: World) -> None:
    """Nodes are said to reach fewer ballots, or more."""
    _ballots(draft)
    require(_uses_cover(draft) and len(draft["cover"]))
    mend_cover(draft, per_node=int(rng.integers(1, 4)))
    if rng.random() < 0.3:
        mend_cover(draft)


# Rule, parameters, division


def another_rule(draft: Draft, rng: Random, world: World) -> None:
    """Another theorem is said to apply, with whatever it needs."""
    _ballots(draft)
    task = RULES[draft.settings["rule"]].task if draft.settings["rule"] in RULES else "node"
    same_task = [rule for rule in RULES if rule != draft.settings["rule"] and rule.endswith(f"/{task}")]
    take_rule(draft, rng, pick(rng, same_task if rng.random() < 0.8 else set(RULES) - {draft.settings["rule"]}))


def take_rule(draft: Draft, rng: Random, rule: str) -> None:
    draft.settings["rule"] = rule
    draft.settings["parameters"] = {}
    if RULES[rule].parameters:
        sides = [k for k in range(1, draft.settings["num_groups"] + 1) if draft.settings["num_groups"] % k == 0]
        height = pick(rng, sides)
        draft.settings["parameters"] = {"edge_groups": height, "feature_groups": draft.settings["num_groups"] // height}
    if RULES[rule].prices:
        draft.settings["parameters"] = {name: int(rng.integers(0, 2)) for name in RULES[rule].prices}
    for name, listed in (("one_way", True), ("hubs", False)):
        if not getattr(RULES[rule], name):
            draft.arrays.pop(PREFIX + name, None)
        elif not draft.has(name):
            empty = np.zeros(len(draft["group"]), dtype=bool) if listed else np.zeros(0, dtype=np.int32)
            draft[name] = empty
    if "vote" in draft.settings and rng.random() < 0.8:
        _mend_vote(draft, rng)
    if RULES[rule].most_unreached == 0:
        draft["reached"][:] = True
    if RULES[rule].uses_cover:
        mend_cover(draft, per_node=1)
    else:
        _set_cover(draft, [[] for _ in range(draft.num_targets)])


def _mend_vote(draft: Draft, rng: Random) -> None:
    """A vote that the rule accepts, and the arrays that go with it: what empty groups cast, what a prior follows."""
    rule, vote = RULES[draft.settings["rule"]], dict(draft.settings["vote"])
    if ("class" if isinstance(vote["empty"], int) else vote["empty"]) not in rule.empty:
        vote["empty"] = rule.empty[0]
    if isinstance(vote["prior"], int) and vote["prior"] and not rule.edgeless_prior:
        vote["prior"] = [vote["prior"]] * draft.settings["num_classes"]
    _set_vote(draft, vote, rng)


def _set_vote(draft: Draft, vote: dict[str, Any], rng: Random) -> None:
    draft.settings["vote"] = vote
    follows = isinstance(vote["prior"], int) and vote["prior"] != 0
    classes = draft.settings["num_classes"]
    if follows and not draft.has("edgeless"):
        draft.arrays[PREFIX + "edgeless"] = rng.integers(0, classes, draft.num_targets).astype(np.int16)
        draft.arrays[PREFIX + "edgeless_stable"] = np.ones(draft.num_targets, dtype=bool)
    if not follows:
        for name in ("edgeless", "edgeless_stable"):
            draft.arrays.pop(PREFIX + name, None)
    if vote["empty"] == "edgeless":
        draft["default"][draft["default"] < 0] = int(rng.integers(classes))
        if follows:
            draft["default"], draft["default_stable"] = draft["edgeless"], draft["edgeless_stable"]
    else:
        draft["default"][:] = -1 if vote["empty"] == "abstain" else vote["empty"]
        draft["default_stable"][:] = True


def another_vote(draft: Draft, rng: Random, world: World) -> None:
    """Empty groups are said to cast something else, or other votes to be given in advance."""
    _ballots(draft)
    require("vote" in draft.settings and draft.settings["rule"] in RULES)
    rule, vote, classes = RULES[draft.settings["rule"]], dict(draft.settings["vote"]), draft.settings["num_classes"]
    if rng.random() < 0.4:
        choices = {name for name in rule.empty if name != "class"} | (
            set(range(classes)) if "class" in rule.empty else set()
        )
        vote["empty"] = pick(rng, choices - {vote["empty"]})
    else:
        vote["prior"] = pick(rng, ([5, *[0] * (classes - 1)], rng.integers(-2, 5, classes).tolist(), 0, 1, 4, -2))
        require(vote["prior"] != draft.settings["vote"]["prior"])
    if rng.random() < 0.3:
        draft.settings["vote"] = vote  # arrays are left as they are
    else:
        _set_vote(draft, vote, rng)


def edgeless_prediction(draft: Draft, rng: Random, world: World) -> None:
    """The prediction that a prior follows is said to be another one, or to be clear."""
    _ballots(draft)
    require(draft.has("edgeless"))
    k = int(rng.integers(draft.num_targets))
    if rng.random() < 0.7:
        others = set(range(draft.settings["num_classes"])) - {int(draft["edgeless"][k])}
        draft["edgeless"][k] = pick(rng, others)
    else:
        draft["edgeless_stable"][k] = not draft["edgeless_stable"][k]
    if draft.settings.get("vote", {}).get("empty") == "edgeless":
        draft["default"], draft["default_stable"] = draft["edgeless"].copy(), draft["edgeless_stable"].copy()


def one_way_flags(draft: Draft, rng: Random, world: World) -> None:
    """Pairs are said to have both directions, or one."""
    require(draft.has("one_way"))
    _flip_flags(draft, rng, "one_way", pick(rng, (None, True, False)))


def hub_list(draft: Draft, rng: Random, world: World) -> None:
    """Nodes are said to be neighbours of fewer targets, or of more, than they are."""
    require(draft.has("hubs") and len(draft["hubs"]))
    hubs = draft["hubs"]
    choice = int(rng.integers(4))
    if choice == 0:
        draft["hubs"] = hubs[: int(rng.integers(len(hubs)))]
    elif choice == 1:
        draft["hubs"] = np.maximum(hubs - 1, 1)
    elif choice == 2:
        draft["hubs"] = np.sort(np.append(hubs, 1 + int(rng.integers(4))))[::-1]
    else:
        draft["hubs"] = np.ones_like(hubs)
    require(not np.array_equal(draft["hubs"], hubs))


def prices(draft: Draft, rng: Random, world: World) -> None:
    """Changes are said to move other numbers of ballots."""
    _ballots(draft)
    stated = draft.settings["parameters"]
    known = RULES[draft.settings["rule"]].prices if draft.settings["rule"] in RULES else ()
    name = pick(rng, {*stated, *known})
    if name in stated and rng.random() < 0.3:
        del stated[name]
    else:
        stated[name] = pick(rng, {0, 1, 2, 5} - {stated.get(name)})


def grid(draft: Draft, rng: Random, world: World) -> None:
    """The sides of a grid are exchanged."""
    _ballots(draft)
    stated = draft.settings["parameters"]
    require("edge_groups" in stated and stated["edge_groups"] != stated["feature_groups"])
    stated["edge_groups"], stated["feature_groups"] = stated["feature_groups"], stated["edge_groups"]
    if rng.random() < 0.7:
        draft.claim["division"] = re.sub(r"T=(\d+)x(\d+)", r"T=\2x\1", draft.claim["division"])


_KINDS = ("edge-centric", "node-centric", "gnncert-e", "gnncert-n", "gnncert-en", "gated", "nothing")


def division_text(draft: Draft, rng: Random, world: World) -> None:
    """The division is said to be another one; the rule stays."""
    _ballots(draft)
    text = draft.claim["division"]
    changes = (
        lambda: re.sub(r"T=(\d+|inf)", f"T={rng.integers(1, 12)}", text),
        lambda: re.sub(r"T=\d+.*", "T=inf)", text),
        lambda: re.sub(r"T=inf.*", f"T={draft.settings['num_groups']}, hash=md5, key=u64le)", text),
        lambda: re.sub(r"hash=\w+", f"hash={pick(rng, ['md5', 'sha1', 'sha256', 'blake2b', 'crc'])}", text),
        lambda: re.sub(r"^[a-z-]+", pick(rng, _KINDS), text),
        lambda: text.replace(", self-loops kept", "") if "loops" in text else text.replace(")", ", self-loops kept)"),
        lambda: (
            text.replace(", gated features", "") if "gated" in text else text.replace("u64le", "u64le, gated features")
        ),
        lambda: text.replace(", edges only", "") if "only" in text else text.replace(")", ", edges only)"),
        lambda: f"{text} ",
        lambda: "",
        lambda: "MyDivision()",
    )
    new = pick(rng, changes)()
    require(new != text)
    draft.claim["division"] = new


def another_kind(draft: Draft, rng: Random, world: World) -> None:
    """Division and rule are both said to be of another kind."""
    _ballots(draft)
    kinds = (
        "edge-centric",
        "node-centric",
        "gated",
        "gnncert-e",
        "gnncert-n",
        "gnncert-en",
        "per-pair",
        "per-neighbour",
    )
    kind = pick(rng, kinds)
    task = draft.settings["rule"].split("/")[1]
    require(f"{kind}/{task}" in RULES and f"{kind}/{task}" != draft.settings["rule"])
    take_rule(draft, rng, f"{kind}/{task}")
    if kind.startswith("per-"):
        draft.claim["division"] = f"{'edge' if kind == 'per-pair' else 'node'}-centric(T=inf)"
        return
    sides = draft.settings["parameters"]
    size = f"{sides['edge_groups']}x{sides['feature_groups']}" if sides else str(draft.settings["num_groups"])
    hashed = re.search(r"hash=(\w+)", draft.claim["division"])
    gated = ", gated features" if kind == "gated" else ""
    name = "node-centric" if kind == "gated" else kind
    draft.claim["division"] = f"{name}(T={size}, hash={hashed[1] if hashed else 'md5'}, key=u64le{gated})"


def number_of_groups(draft: Draft, rng: Random, world: World) -> None:
    """There are said to be more or fewer subgraphs."""
    _ballots(draft)
    groups = draft.settings["num_groups"] + int(pick(rng, (-1, 1, 5, 1000)))
    require(groups > draft["group"].max(initial=0))
    if draft.settings["parameters"].get("edge_groups"):
        draft.settings["parameters"] |= {"edge_groups": groups, "feature_groups": 1}
    draft.settings["num_groups"] = groups
    draft.claim["num_groups"] = groups
    if rng.random() < 0.7:
        hashed = "" if "hash=" in draft.claim["division"] else ", hash=md5, key=u64le"
        draft.claim["division"] = re.sub(r"T=(inf|\d+(x\d+)?)", f"T={groups}{hashed}", draft.claim["division"])


def number_of_classes(draft: Draft, rng: Random, world: World) -> None:
    """There are said to be more classes, or fewer."""
    if draft.header["kind"] == "ballots":
        classes = draft.settings["num_classes"] + int(pick(rng, (-1, 1, 7)))
        require(classes > max(draft["ballot"].max(initial=0), draft["default"].max(initial=0)))
        draft.settings["num_classes"] = classes
        return
    for name in ("selection", "estimation"):
        draft[name] = np.concatenate([draft[name], np.zeros_like(draft[name][:, :1])], axis=1)
