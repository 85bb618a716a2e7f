"""Alterations that a forger tries, by name. Each changes one thing in a draft; several can follow one another.

Those in ``EARLY`` alter evidence, facts and names; afterwards all statements are derived again, so that the file looks
perfect. Those in ``LATE`` alter the statements and words themselves. An alteration that makes no sense for a draft raises
:class:`Pointless`.
"""

import copy
from collections.abc import Callable
from typing import Any

import numpy as np

from agnncert.certificates.budget import COUNTS
from tests.soundness.forger import vote_alterations as of_votes
from tests.soundness.forger.forging import (
    PREFIX,
    Draft,
    at,
    derive,
    ids_of,
    leaves,
    put,
    select,
    set_ids,
    state_exclusions,
)
from tests.soundness.forger.vote_alterations import take_rule
from tests.soundness.forger.world import Random, World, pick, require
from tests.support.theorems import THEOREMS

Alteration = Callable[[Draft, Random, World], None]


def _samples(draft: Draft) -> None:
    require(draft.header["kind"] == "samples" and draft.has("estimation"))


# Ids and targets


def id_kind(draft: Draft, rng: Random, world: World) -> None:
    """Row numbers are said to be ids, or the other way round."""
    other = "row" if draft.claim["ids"] == "node_id" else "node_id"
    draft.claim["ids"] = other
    if "ids" in draft.settings:
        draft.settings["ids"] = other


def swapped_ids(draft: Draft, rng: Random, world: World) -> None:
    """Two targets bear each other's names."""
    ids = ids_of(draft)
    require(len(ids) > 1)
    a, b = rng.choice(len(ids), 2, replace=False).tolist()
    ids[a], ids[b] = ids[b], ids[a]
    set_ids(draft, ids)


def renamed_ids(draft: Draft, rng: Random, world: World) -> None:
    """A target, or all of them, bear other names."""
    ids = ids_of(draft)
    for k in [int(rng.integers(len(ids)))] if rng.random() < 0.6 else range(len(ids)):
        old = ids[k]
        ids[k] = old + pick(rng, ("x", "\0", "\u0301")) if isinstance(old, str) else old + pick(rng, (1, 1000, -10_000))
    set_ids(draft, ids)


def retyped_ids(draft: Draft, rng: Random, world: World) -> None:
    """Names become numbers, or numbers names; a number in plain digits is the same id either way."""
    ids = ids_of(draft)
    written = pick(rng, (str, "{} ".format, "0{}".format, "+{}".format))
    set_ids(draft, list(range(len(ids))) if isinstance(ids[0], str) else [written(name) for name in ids])


def other_rows(draft: Draft, rng: Random, world: World) -> None:
    """The rows of targets are exchanged, or are others."""
    rows = draft.arrays["row"]
    if rng.random() < 0.5:
        require(len(rows) > 1)
        a, b = rng.choice(len(rows), 2, replace=False)
        rows[[a, b]] = rows[[b, a]]
    else:
        rows[int(rng.integers(len(rows)))] = pick(rng, set(range(world.case.total + 2)) - set(rows.tolist()))


def other_targets(draft: Draft, rng: Random, world: World) -> None:
    """A target's row and name are those of another node that was not certified."""
    rows, ids = draft.arrays["row"], ids_of(draft)
    free = set(range(world.case.total)) - set(rows.tolist())
    k, row = int(rng.integers(len(rows))), pick(rng, free)
    known = getattr(world.case.data, "node_id", None) if not isinstance(world.case.data, list) else None
    ids[k] = row if known is None else (int(known[row]) if not isinstance(known[row], str) else known[row])
    rows[k] = row
    set_ids(draft, ids)


def shuffled_evidence(draft: Draft, rng: Random, world: World) -> None:
    """Targets exchange all that is known about them except row, name, truth and degree."""
    require(draft.num_targets > 1)
    kept = {name: draft.arrays[name].copy() for name in ("row", "truth", "degree") if name in draft.arrays}
    ids, order = ids_of(draft), rng.permutation(draft.num_targets)
    require((order != np.arange(len(order))).any())
    select(draft, order)
    draft.arrays |= kept
    set_ids(draft, ids)


def truth_is_label(draft: Draft, rng: Random, world: World) -> None:
    """Every label is called correct."""
    derive(draft)
    draft.arrays["truth"] = draft.arrays["label"].copy()


def other_truth(draft: Draft, rng: Random, world: World) -> None:
    """True classes are drawn at random."""
    draft.arrays["truth"] = rng.integers(0, 4, draft.num_targets)


def no_truth(draft: Draft, rng: Random, world: World) -> None:
    """True classes are left out."""
    require("truth" in draft.arrays)
    del draft.arrays["truth"]


def other_degree(draft: Draft, rng: Random, world: World) -> None:
    """Degrees are invented."""
    degree = draft.arrays.get("degree", np.zeros(draft.num_targets, dtype=np.int64))
    draft.arrays["degree"] = degree + rng.integers(1, 50, draft.num_targets) * (rng.random(draft.num_targets) < 0.5)


def no_degree(draft: Draft, rng: Random, world: World) -> None:
    """Degrees are left out."""
    require("degree" in draft.arrays)
    del draft.arrays["degree"]


def fewer_targets(draft: Draft, rng: Random, world: World) -> None:
    """Some targets are left out."""
    kept = rng.random(draft.num_targets) < 0.6
    require(kept.any() and not kept.all())
    select(draft, np.flatnonzero(kept))


def no_targets(draft: Draft, rng: Random, world: World) -> None:
    """All targets are left out."""
    select(draft, [])


def other_order(draft: Draft, rng: Random, world: World) -> None:
    """All about the targets stands in another order."""
    select(draft, rng.permutation(draft.num_targets))


def doubled_targets(draft: Draft, rng: Random, world: World) -> None:
    """A target stands there twice, once under another name or row."""
    rows = draft.arrays["row"]
    k, ids = int(rng.integers(len(rows))), ids_of(draft)
    select(draft, [*range(len(rows)), k])
    if rng.random() < 0.8:
        draft.arrays["row"][-1] = pick(rng, set(range(world.case.total + 1)) - set(rows.tolist()))
    if rng.random() < 0.8:
        set_ids(draft, [*ids, "another" if isinstance(ids[0], str) else max(ids) + 1])


# Tolerance and digests


def tolerance(draft: Draft, rng: Random, world: World) -> None:
    """Scores are said to be more or less exact than they are."""
    old = draft.claim["tolerance"]
    new = pick(rng, (0.0, old * 10, old * 0.1, old * (1 + 1e-9), 1e-6, 0.1, 2.0))
    require(new != old)
    draft.claim["tolerance"] = new


def digests(draft: Draft, rng: Random, world: World) -> None:
    """Digests are exchanged, emptied, borrowed, left out or added."""
    stated = draft.claim["digests"]
    name, other = pick(rng, stated), world.stranger(pick(rng, world.strangers)).claim["digests"]
    choice = int(rng.integers(6))
    if choice == 0:
        names = list(stated)
        draft.claim["digests"] = dict(zip(names, [stated[n] for n in names[1:] + names[:1]], strict=True))
    elif choice == 1:
        stated[name] = ""
    elif choice == 2:
        require(name in other and other[name] != stated[name])
        stated[name] = other[name]
    elif choice == 3:
        del stated[name]
    elif choice == 4:
        stated["dataset"] = "00" * 32
    else:
        stated[name] = stated[name].upper()


# Samples


def counts(draft: Draft, rng: Random, world: World) -> None:
    """Samples are moved from one class to another."""
    _samples(draft)
    table = draft[pick(rng, ("selection", "estimation"))]
    k = int(rng.integers(len(table)))
    a, b = rng.choice(table.shape[1], 2, replace=False)
    moved = int(table[k, a]) if rng.random() < 0.5 else min(1, int(table[k, a]))
    require(moved)
    table[k, a] -= moved
    table[k, b] += moved


def paths(draft: Draft, rng: Random, world: World) -> None:
    """A node is said to reach its target over other paths, or not at all."""
    _samples(draft)
    require(draft.has("paths") and len(draft["paths"]))
    table, k = draft["paths"], int(rng.integers(len(draft["paths"])))
    if rng.random() < 0.5:
        table[k, int(rng.integers(table.shape[1]))] += 1
    else:
        draft["paths"] = np.delete(table, k, axis=0)
        draft["start"] = draft["start"] - (draft["start"] > k)


def more_samples(draft: Draft, rng: Random, world: World) -> None:
    """There are said to be ten times as many samples, or one more in each."""
    _samples(draft)
    for name in ("selection", "estimation") if rng.random() < 0.5 else ("estimation",):
        if rng.random() < 0.7:
            draft[name] = draft[name] * 10
        else:
            draft[name][:, 0] += 1


def noise(draft: Draft, rng: Random, world: World) -> None:
    """The noise is said to have been another one."""
    _samples(draft)
    stated = draft.settings["noise"]
    name = pick(rng, [name for name in stated if name != "kind"])
    old = stated[name]
    if isinstance(old, str):
        stated[name] = pick(rng, {"graph", "target row", "B1", "B2", "sharp", "legacy-unsound", "inf"} - {old})
    elif isinstance(old, int) or name in ("num_features", "edges_per_injected"):
        stated[name] = pick(rng, {0, 1, 2, 5, 9} - {old})
    else:
        stated[name] = pick(rng, {0.0, 0.01, 0.05, 0.2, 0.35, old / 2, min(old * 1.5, 0.9), old + 1e-12} - {old})


def noise_kind(draft: Draft, rng: Random, world: World) -> None:
    """The noise is said to be of another kind, under another method."""
    _samples(draft)
    flips = {"kind": "flips", "p_add": 0.1, "p_delete": 0.3, "p_add_feature": 0.0, "p_delete_feature": 0.0}
    flips |= {"num_features": 0, "where": "graph"}
    deletions = {"kind": "deletions", "p_edge": 0.5, "p_node": 0.6, "test": "B2", "edges_per_injected": 2}
    method, new = pick(rng, (("bi-rs", deletions), ("rs", flips), ("sparse-rs", flips), ("my-rs", flips)))
    draft.settings["method"] = method
    if rng.random() < 0.8:
        draft.settings["noise"] = new


def sampling(draft: Draft, rng: Random, world: World) -> None:
    """Error probability, its scope or the seed are said to be others."""
    _samples(draft)
    name = pick(rng, ("alpha", "scope", "seed"))
    options = {
        "alpha": (0.001, 0.05, 0.5, 0.1 + 1e-12),
        "scope": ("each target", "all targets together"),
        "seed": (0, 1, 4, 2**40),
    }[name]
    draft.settings[name] = pick(rng, set(options) - {draft.settings[name]})


# The claim, other files, versions


def other_task(draft: Draft, rng: Random, world: World) -> None:
    """The task is said to be the other one."""
    if draft.header["kind"] == "samples":
        draft.settings["task"] = "graph" if draft.settings["task"] == "node" else "node"
        return
    kind, task = draft.settings["theorem"].split("/")
    theorem = f"{kind}/{'graph' if task == 'node' else 'node'}"
    require(theorem in THEOREMS)
    parameters = draft.settings["parameters"]
    take_rule(draft, rng, theorem)
    draft.settings["parameters"] = parameters


def borrowed(draft: Draft, rng: Random, world: World) -> None:
    """Parts of the file are those of a certificate about something else; digests stay as they are, or not."""
    other = world.stranger(pick(rng, world.strangers)).copy()
    kept = draft.claim["digests"]
    choice = int(rng.integers(4))
    if choice == 0:  # the whole other file
        draft.header, draft.arrays = other.header, other.arrays
    elif choice == 1:  # all of its evidence
        draft.header |= {name: other.header[name] for name in ("kind", "settings") if rng.random() < 0.9}
        draft.arrays = {n: a for n, a in draft.arrays.items() if not n.startswith(PREFIX)}
        draft.arrays |= {n: a for n, a in other.arrays.items() if n.startswith(PREFIX)}
    elif choice == 2:  # some arrays
        for name in [name for name in other.arrays if rng.random() < 0.3]:
            draft.arrays[name] = other.arrays[name]
    else:  # some of its header
        for path in [path for path in leaves(other.header) if rng.random() < 0.1]:
            try:
                put(draft.header, path, copy.deepcopy(at(other.header, path)))
            except (KeyError, IndexError, TypeError):
                continue
    if rng.random() < 0.8 and "digests" in draft.claim:
        draft.claim["digests"] = kept


def merged(draft: Draft, rng: Random, world: World) -> None:
    """Targets of another certificate are added to those of this one."""
    other = world.stranger(pick(rng, world.strangers)).copy()
    require(other.header["kind"] == draft.header["kind"] and set(other.arrays) == set(draft.arrays))
    taken = set(draft.arrays["row"].tolist())
    if rng.random() < 0.5 and draft.num_targets > 1:  # make room: some targets of the one, the rest of the other
        select(draft, np.arange(draft.num_targets // 2))
        taken = set(draft.arrays["row"].tolist())
    free = [k for k, row in enumerate(other.arrays["row"].tolist()) if row not in taken]
    require(free)
    select(other, free)
    ids, others = ids_of(draft), ids_of(other)
    ends = {PREFIX + name for name in ("indptr", "reach_ptr", "start")}
    for name, array in draft.arrays.items():
        if name.startswith("target"):
            continue
        more, axis = other.arrays[name], 1 if name == "holds" else 0
        require(array.ndim == more.ndim and (array.ndim == 1 or array.shape[1 - axis] == more.shape[1 - axis]))
        joined = np.concatenate([array, more[1:] + array[-1]]) if name in ends else np.concatenate([array, more], axis)
        draft.arrays[name] = joined.astype(array.dtype)
    set_ids(draft, ids + others)


def other_version(draft: Draft, rng: Random, world: World) -> None:
    """The file is said to be of another version of the format."""
    draft.header["version"] = pick(rng, (2, 3, 0, "1", None))


def other_library(draft: Draft, rng: Random, world: World) -> None:
    """Another version of the library is said to have made it."""
    draft.claim["library_version"] = pick(rng, ("0.0.9", "", "9.9", draft.claim["library_version"] + " "))


def remarks(draft: Draft, rng: Random, world: World) -> None:
    """There are other notes."""
    draft.claim["notes"] = pick(rng, ([], ["Reviewed and approved."], [*draft.claim["notes"], "Covers everything."]))


def more_fields(draft: Draft, rng: Random, world: World) -> None:
    """There are fields or arrays that nobody knows."""
    choice = int(rng.integers(6))
    if choice < 4:
        (draft.header, draft.claim, draft.settings, draft.claim["digests"])[choice]["approved"] = "yes"
    else:
        draft.arrays[("approved", PREFIX + "approved")[choice - 4]] = np.ones(draft.num_targets, dtype=np.int64)


def any_header(draft: Draft, rng: Random, world: World) -> None:
    """Anything in the header becomes something else of its type."""
    path = pick(rng, leaves(draft.header))
    alter_leaf(draft.header, path, rng)


def alter_leaf(header: dict[str, Any], path: tuple[Any, ...], rng: Random) -> None:
    """Alters what stands at one place of the header."""
    old = at(header, path)
    if isinstance(old, bool):
        new: Any = not old
    elif isinstance(old, int):
        new = old + int(pick(rng, (-1, 1, 10)))
    elif isinstance(old, float):
        new = old * float(pick(rng, (0.5, 2.0))) if old and rng.random() < 0.7 else old + 0.01
    elif isinstance(old, str):
        new = pick(rng, (f"{old}.", "", old[:-1], old.swapcase(), "other"))
    elif isinstance(old, list):
        new = pick(rng, ([], old[1:], old[::-1], old + old[:1], [*old, "more"]))
    elif isinstance(old, dict):
        new = {k: v for k, v in old.items() if rng.random() < 0.7} if old else {"more": 1}
    else:
        new = "something"
    require(new != old)
    put(header, path, new)


def any_array(draft: Draft, rng: Random, world: World) -> None:
    """Anything in the arrays becomes something else."""
    alter_array(draft, pick(rng, draft.arrays), rng)


def alter_array(draft: Draft, name: str, rng: Random) -> None:
    """Alters one entry of an array, or its length or type."""
    array = draft.arrays[name]
    choice = rng.random()
    if array.size and choice < 0.8:
        k = int(rng.integers(array.size))
        flat = array.reshape(-1)
        flat[k] = (
            not flat[k]
            if array.dtype == bool
            else flat[k] + pick(rng, (1, 2) if array.dtype.kind == "u" else (-1, 1, 2))
        )
    elif choice < 0.9:
        draft.arrays[name] = array[:-1] if len(array) else np.zeros(1, dtype=array.dtype)
    else:
        draft.arrays[name] = array.astype(np.int32 if array.dtype != np.int32 else np.int64)


EARLY: dict[str, Alteration] = {
    function.__name__: function
    for function in (
        of_votes.one_vote, of_votes.many_votes, of_votes.unanimous, of_votes.default_vote, of_votes.more_stable, of_votes.less_stable, of_votes.default_more_stable,
        of_votes.default_less_stable, of_votes.reached_flags, of_votes.unlisted, of_votes.listed, of_votes.regrouped, of_votes.cover_table, of_votes.another_rule, of_votes.prices, of_votes.grid,
        of_votes.division_text, of_votes.another_kind, of_votes.number_of_groups, of_votes.number_of_classes,
        of_votes.another_vote, of_votes.no_edge_prediction, of_votes.one_way_flags, of_votes.hub_list, id_kind, swapped_ids, renamed_ids,
        retyped_ids, other_rows, other_targets, shuffled_evidence, truth_is_label, other_truth, no_truth, other_degree,
        no_degree, fewer_targets, no_targets, other_order, doubled_targets, tolerance, digests, counts, paths, more_samples,
        noise, noise_kind, sampling, other_task, borrowed, merged, other_version, other_library, remarks, more_fields,
        any_header, any_array,
    )
}  # fmt: skip


# After everything has been derived: the words and the statements themselves


def words(draft: Draft, rng: Random, world: World) -> None:
    """Sentences of the claim are left out, added, exchanged or changed."""
    alter_leaf(draft.claim, (pick(rng, ("covers", "assumes", "not_proved", "unit", "method", "guarantee")),), rng)


def words_of_another_version(draft: Draft, rng: Random, world: World) -> None:
    """Likewise, and another version of the library is said to have written them."""
    words(draft, rng, world)
    other_library(draft, rng, world)


def no_statements(draft: Draft, rng: Random, world: World) -> None:
    """The stated budgets are left out."""
    require(draft.header["statements"])
    draft.header["statements"], draft.arrays["holds"] = [], draft.arrays["holds"][:0]


def other_budgets(draft: Draft, rng: Random, world: World) -> None:
    """Other budgets are stated, with or without the answers that follow."""
    amounts = {name: pick(rng, (1, 2, 100, "inf")) for name in COUNTS if rng.random() < 0.4}
    draft.header["statements"].append({"budget": amounts, "broken_at_most": 0})
    draft.arrays["holds"] = np.concatenate([draft.arrays["holds"], np.ones((1, draft.num_targets), dtype=bool)])
    if rng.random() < 0.5:
        require(derive(draft))


def larger_budget(draft: Draft, rng: Random, world: World) -> None:
    """The answers to one budget are said to be those to another."""
    require(draft.header["statements"])
    stated = pick(rng, draft.header["statements"])["budget"]
    name = pick(rng, COUNTS)
    stated[name] = 10 if stated.get(name) in (None, "inf") else stated[name] + 1


def answers(draft: Draft, rng: Random, world: World) -> None:
    """An answer, a number of broken targets, a label, a radius or a number of new neighbours is another."""
    stated = ("holds", "label", "radius", "new_neighbours", "broken_at_most", "structure_radius")
    name = pick(rng, [one for one in stated if one != "structure_radius" or one in draft.arrays])
    if name == "broken_at_most":
        require(draft.header["statements"])
        pick(rng, draft.header["statements"])[name] += int(pick(rng, (-1, 1)))
        return
    require(draft.arrays[name].size)
    flat = draft.arrays[name].reshape(-1)
    k = int(rng.integers(len(flat)))
    flat[k] = not flat[k] if name == "holds" else flat[k] + pick(rng, (-1, 1, 5))


def exclusions(draft: Draft, rng: Random, world: World) -> None:
    """It is also stated how many targets cannot get which label; one of the numbers, or none, is another."""
    state_exclusions(draft)
    numbers = pick(rng, [statement["excluded"] for statement in draft.header["statements"] if "excluded" in statement])
    if rng.random() < 0.8:
        numbers[int(rng.integers(len(numbers)))] += int(pick(rng, (-1, 1, 5)))


def any_statement(draft: Draft, rng: Random, world: World) -> None:
    """Anything in the header or the arrays, after all has been derived."""
    (any_header if rng.random() < 0.6 else any_array)(draft, rng, world)


LATE: dict[str, Alteration] = {
    function.__name__: function
    for function in (
        words, words_of_another_version, no_statements, other_budgets, larger_budget, answers, exclusions,
        any_statement,
    )
}  # fmt: skip
