"""Alterations of votes, of the rule that counts them, and of the division: see ``alterations``."""

import re
from typing import Any

import numpy as np

from tests.soundness.forger.forging import LISTED, PREFIX, Draft
from tests.soundness.forger.world import Random, World, pick, require
from tests.support.theorems import THEOREMS


def _votes(draft: Draft) -> None:
    require(draft.header["kind"] == "votes" and draft.has("vote"))


def _listed_of(draft: Draft, target: int) -> Any:
    return np.arange(draft["indptr"][target], draft["indptr"][target + 1])


# Votes


def one_vote(draft: Draft, rng: Random, world: World) -> None:
    """One listed vote is for another class."""
    _votes(draft)
    require(len(draft["vote"]))
    k = int(rng.integers(len(draft["vote"])))
    draft["vote"][k] = pick(rng, set(range(-1, draft.settings["num_classes"])) - {int(draft["vote"][k])})


def many_votes(draft: Draft, rng: Random, world: World) -> None:
    """Some listed votes are for classes drawn at random."""
    _votes(draft)
    chosen = rng.random(len(draft["vote"])) < rng.choice([0.1, 0.5, 1.0])
    require(chosen.any())
    draft["vote"][chosen] = rng.integers(-1, draft.settings["num_classes"], int(chosen.sum()))


def unanimous(draft: Draft, rng: Random, world: World) -> None:
    """All votes of a target are for one class."""
    _votes(draft)
    target, winner = int(rng.integers(draft.num_targets)), int(rng.integers(draft.settings["num_classes"]))
    draft["vote"][_listed_of(draft, target)] = winner
    if draft["default"][target] >= 0:
        draft["default"][target] = winner


def default_vote(draft: Draft, rng: Random, world: World) -> None:
    """One default vote is for another class."""
    _votes(draft)
    k = int(rng.integers(draft.num_targets))
    draft["default"][k] = pick(rng, set(range(-1, draft.settings["num_classes"])) - {int(draft["default"][k])})


def _flip_flags(draft: Draft, rng: Random, name: str, value: bool | None) -> None:
    _votes(draft)
    flags = draft[name]
    where = np.arange(len(flags)) if value is None else np.flatnonzero(flags != value)
    require(len(where))
    chosen = where if rng.random() < 0.3 else where[[int(rng.integers(len(where)))]]
    flags[chosen] = ~flags[chosen]


def more_stable(draft: Draft, rng: Random, world: World) -> None:
    """Votes near a tie are called stable."""
    _flip_flags(draft, rng, "stable", True)


def less_stable(draft: Draft, rng: Random, world: World) -> None:
    """Stable votes are called unstable."""
    _flip_flags(draft, rng, "stable", False)


def default_more_stable(draft: Draft, rng: Random, world: World) -> None:
    """Default votes near a tie are called stable."""
    _flip_flags(draft, rng, "default_stable", True)


def default_less_stable(draft: Draft, rng: Random, world: World) -> None:
    """Stable default votes are called unstable."""
    _flip_flags(draft, rng, "default_stable", False)


def reached_flags(draft: Draft, rng: Random, world: World) -> None:
    """Listed votes are called reached or not."""
    _flip_flags(draft, rng, "reached", None)
    mend_cover(draft)


def mend_cover(draft: Draft, per_node: int | None = None) -> None:
    """A reach table that a rule with one accepts: as it was, but ending with the number of reached votes."""
    reached = np.bincount(draft.owner[draft["reached"]], minlength=draft.num_targets)
    rows = []
    for k, number in enumerate(reached.tolist()):
        row = draft["reach"][draft["reach_ptr"][k] : draft["reach_ptr"][k + 1]].tolist()
        row = (
            [entry for entry in row if entry < number] if per_node is None else list(range(per_node, number, per_node))
        )
        rows.append([*row, number] if number else [])
    _set_cover(draft, rows if _uses_cover(draft) else [[] for _ in rows])


def _set_cover(draft: Draft, rows: list[list[int]]) -> None:
    draft["reach"] = [entry for row in rows for entry in row]
    draft["reach_ptr"] = np.cumsum([0, *map(len, rows)])


def _uses_cover(draft: Draft) -> bool:
    facts = THEOREMS.get(str(draft.settings["theorem"]))
    return facts is not None and facts.uses_reach


def unlisted(draft: Draft, rng: Random, world: World) -> None:
    """A listed vote is left out: the default is cast there."""
    _votes(draft)
    require(len(draft["group"]))
    k = int(rng.integers(len(draft["group"])))
    target = int(draft.owner[k])
    for name in filter(draft.has, LISTED):
        draft[name] = np.delete(draft[name], k)
    draft["indptr"][target + 1 :] -= 1
    mend_cover(draft)


def listed(draft: Draft, rng: Random, world: World) -> None:
    """A vote is listed that was not."""
    _votes(draft)
    target = int(rng.integers(draft.num_targets))
    here = _listed_of(draft, target)
    group = pick(rng, set(range(draft.settings["num_groups"])) - set(draft["group"][here].tolist()))
    k = int(draft["indptr"][target] + (draft["group"][here] < group).sum())
    vote = rng.integers(draft.settings["num_classes"]) if rng.random() < 0.5 else draft["default"][target]
    new = {"group": group, "vote": vote, "stable": True, "reached": rng.random() < 0.7, "one_way": False}
    for name in filter(draft.has, LISTED):
        draft[name] = np.insert(draft[name], k, new[name])
    draft["indptr"][target + 1 :] += 1
    mend_cover(draft)


def regrouped(draft: Draft, rng: Random, world: World) -> None:
    """A listed vote is said to be of another subgraph."""
    _votes(draft)
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
    """Nodes are said to reach fewer votes, or more."""
    _votes(draft)
    require(_uses_cover(draft) and len(draft["reach"]))
    mend_cover(draft, per_node=int(rng.integers(1, 4)))
    if rng.random() < 0.3:
        mend_cover(draft)


# Rule, parameters, division


def another_rule(draft: Draft, rng: Random, world: World) -> None:
    """Another theorem is said to apply, with whatever it needs."""
    _votes(draft)
    task = THEOREMS[draft.settings["theorem"]].task if draft.settings["theorem"] in THEOREMS else "node"
    same_task = [
        theorem for theorem in THEOREMS if theorem != draft.settings["theorem"] and theorem.endswith(f"/{task}")
    ]
    take_rule(draft, rng, pick(rng, same_task if rng.random() < 0.8 else set(THEOREMS) - {draft.settings["theorem"]}))


def take_rule(draft: Draft, rng: Random, theorem: str) -> None:
    draft.settings["theorem"] = theorem
    draft.settings["parameters"] = {}
    if THEOREMS[theorem].parameters:
        sides = [k for k in range(1, draft.settings["num_groups"] + 1) if draft.settings["num_groups"] % k == 0]
        height = pick(rng, sides)
        draft.settings["parameters"] = {"edge_groups": height, "feature_groups": draft.settings["num_groups"] // height}
    if THEOREMS[theorem].prices:
        draft.settings["parameters"] = {name: int(rng.integers(0, 2)) for name in THEOREMS[theorem].prices}
    for name, listed in (("one_way", True), ("targets_per_node", False)):
        if not getattr(THEOREMS[theorem], name):
            draft.arrays.pop(PREFIX + name, None)
        elif not draft.has(name):
            empty = np.zeros(len(draft["group"]), dtype=bool) if listed else np.zeros(0, dtype=np.int32)
            draft[name] = empty
    if "voting_rule" in draft.settings and rng.random() < 0.8:
        _mend_vote(draft, rng)
    if THEOREMS[theorem].most_unreached == 0:
        draft["reached"][:] = True
    if THEOREMS[theorem].uses_reach:
        mend_cover(draft, per_node=1)
    else:
        _set_cover(draft, [[] for _ in range(draft.num_targets)])


def _mend_vote(draft: Draft, rng: Random) -> None:
    """A vote that the rule accepts, and the arrays that go with it: what empty groups cast, what a prior follows."""
    facts, voting_rule = THEOREMS[draft.settings["theorem"]], dict(draft.settings["voting_rule"])
    if ("class" if isinstance(voting_rule["empty"], int) else voting_rule["empty"]) not in facts.empty:
        voting_rule["empty"] = facts.empty[0]
    if isinstance(voting_rule["prior"], int) and voting_rule["prior"] and not facts.no_edge_prior:
        voting_rule["prior"] = [voting_rule["prior"]] * draft.settings["num_classes"]
    _set_vote(draft, voting_rule, rng)


def _set_vote(draft: Draft, voting_rule: dict[str, Any], rng: Random) -> None:
    draft.settings["voting_rule"] = voting_rule
    follows = isinstance(voting_rule["prior"], int) and voting_rule["prior"] != 0
    classes = draft.settings["num_classes"]
    if follows and not draft.has("no_edge"):
        draft.arrays[PREFIX + "no_edge"] = rng.integers(0, classes, draft.num_targets).astype(np.int16)
        draft.arrays[PREFIX + "no_edge_stable"] = np.ones(draft.num_targets, dtype=bool)
    if not follows:
        for name in ("no_edge", "no_edge_stable"):
            draft.arrays.pop(PREFIX + name, None)
    if voting_rule["empty"] == "no_edge":
        draft["default"][draft["default"] < 0] = int(rng.integers(classes))
        if follows:
            draft["default"], draft["default_stable"] = draft["no_edge"], draft["no_edge_stable"]
    else:
        draft["default"][:] = -1 if voting_rule["empty"] == "abstain" else voting_rule["empty"]
        draft["default_stable"][:] = True


def another_vote(draft: Draft, rng: Random, world: World) -> None:
    """Empty groups are said to cast something else, or other votes to be given in advance."""
    _votes(draft)
    require("voting_rule" in draft.settings and draft.settings["theorem"] in THEOREMS)
    facts, voting_rule, classes = (
        THEOREMS[draft.settings["theorem"]],
        dict(draft.settings["voting_rule"]),
        draft.settings["num_classes"],
    )
    if rng.random() < 0.4:
        choices = {name for name in facts.empty if name != "class"} | (
            set(range(classes)) if "class" in facts.empty else set()
        )
        voting_rule["empty"] = pick(rng, choices - {voting_rule["empty"]})
    else:
        voting_rule["prior"] = pick(
            rng, ([5, *[0] * (classes - 1)], rng.integers(-2, 5, classes).tolist(), 0, 1, 4, -2)
        )
        require(voting_rule["prior"] != draft.settings["voting_rule"]["prior"])
    if rng.random() < 0.3:
        draft.settings["voting_rule"] = voting_rule  # arrays are left as they are
    else:
        _set_vote(draft, voting_rule, rng)


def no_edge_prediction(draft: Draft, rng: Random, world: World) -> None:
    """The prediction that a prior follows is said to be another one, or to be clear."""
    _votes(draft)
    require(draft.has("no_edge"))
    k = int(rng.integers(draft.num_targets))
    if rng.random() < 0.7:
        others = set(range(draft.settings["num_classes"])) - {int(draft["no_edge"][k])}
        draft["no_edge"][k] = pick(rng, others)
    else:
        draft["no_edge_stable"][k] = not draft["no_edge_stable"][k]
    if draft.settings.get("voting_rule", {}).get("empty") == "no_edge":
        draft["default"], draft["default_stable"] = draft["no_edge"].copy(), draft["no_edge_stable"].copy()


def one_way_flags(draft: Draft, rng: Random, world: World) -> None:
    """Pairs are said to have both directions, or one."""
    require(draft.has("one_way"))
    _flip_flags(draft, rng, "one_way", pick(rng, (None, True, False)))


def hub_list(draft: Draft, rng: Random, world: World) -> None:
    """Nodes are said to be neighbours of fewer targets, or of more, than they are."""
    require(draft.has("targets_per_node") and len(draft["targets_per_node"]))
    targets_per_node = draft["targets_per_node"]
    choice = int(rng.integers(4))
    if choice == 0:
        draft["targets_per_node"] = targets_per_node[: int(rng.integers(len(targets_per_node)))]
    elif choice == 1:
        draft["targets_per_node"] = np.maximum(targets_per_node - 1, 1)
    elif choice == 2:
        draft["targets_per_node"] = np.sort(np.append(targets_per_node, 1 + int(rng.integers(4))))[::-1]
    else:
        draft["targets_per_node"] = np.ones_like(targets_per_node)
    require(not np.array_equal(draft["targets_per_node"], targets_per_node))


def prices(draft: Draft, rng: Random, world: World) -> None:
    """Changes are said to move other numbers of votes."""
    _votes(draft)
    stated = draft.settings["parameters"]
    known = THEOREMS[draft.settings["theorem"]].prices if draft.settings["theorem"] in THEOREMS else ()
    name = pick(rng, {*stated, *known})
    if name in stated and rng.random() < 0.3:
        del stated[name]
    else:
        stated[name] = pick(rng, {0, 1, 2, 5} - {stated.get(name)})


def grid(draft: Draft, rng: Random, world: World) -> None:
    """The sides of a grid are exchanged."""
    _votes(draft)
    stated = draft.settings["parameters"]
    require("edge_groups" in stated and stated["edge_groups"] != stated["feature_groups"])
    stated["edge_groups"], stated["feature_groups"] = stated["feature_groups"], stated["edge_groups"]
    if rng.random() < 0.7:
        draft.claim["division"] = re.sub(r"T=(\d+)x(\d+)", r"T=\2x\1", draft.claim["division"])


_KINDS = ("edge-centric", "node-centric", "gnncert-e", "gnncert-n", "gnncert-en", "gated", "nothing")


def division_text(draft: Draft, rng: Random, world: World) -> None:
    """The division is said to be another one; the rule stays."""
    _votes(draft)
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
    _votes(draft)
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
    task = draft.settings["theorem"].split("/")[1]
    require(f"{kind}/{task}" in THEOREMS and f"{kind}/{task}" != draft.settings["theorem"])
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
    _votes(draft)
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
    if draft.header["kind"] == "votes":
        classes = draft.settings["num_classes"] + int(pick(rng, (-1, 1, 7)))
        require(classes > max(draft["vote"].max(initial=0), draft["default"].max(initial=0)))
        draft.settings["num_classes"] = classes
        return
    for name in ("selection", "estimation"):
        draft[name] = np.concatenate([draft[name], np.zeros_like(draft[name][:, :1])], axis=1)
