"""What the page's script works on: the numbers of the two charts, and every target's votes as packed arrays.

Arrays are typed, packed and compressed, and written as text that HTML cannot misread.
"""

import base64
import gzip
import json
import math
from typing import Any

import numpy as np
import numpy.typing as npt

from agnncert.proof.evidence import BallotEvidence
from agnncert.proof.theorems import LARGEST_AMOUNT, tally
from agnncert.report.summary import Shares, Summary, changes_only
from agnncert.report.words import added_words, percent, share_word, step_words, structure_words

Array = npt.NDArray[Any]

ANY = 2**31 - 1  # stands for "any number" in whole-number arrays
ALIGNMENT = 8
COMPRESSION = 6  # the highest level takes five times as long for two per cent
DETAIL_BYTES = 2_600_000  # compressed; single ballots beyond this stay out of the page, so that it opens anywhere
MOST_HOVERED = 1000  # sizes at which the pointer finds a value
TABLE_ROWS = 12
SIZE_ONLY_WORD = "size alone (envelope: chosen anew for each size)"
CEILING = "To the right of 1, a certified label is the one that is given without any edges."


def points(curve: Shares) -> list[dict[str, float]]:
    """A curve as the charting library wants it."""
    return [{"x": round(float(x), 6), "y": round(float(y), 6)} for x, y in zip(curve.size, curve.share, strict=True)]


def accuracy_chart(summary: Summary) -> dict[str, Any]:
    """Certified accuracy over the size of the attack, with what it should be compared with."""
    curve, added, structure = summary.certified, summary.certified_additions, summary.certified_structure
    stride = math.ceil(len(curve.size) / MOST_HOVERED)
    hovered = Shares(curve.size[::stride], curve.share[::stride])
    word = share_word(summary)
    return {
        "certified": points(changes_only(curve)),
        "every_size": points(hovered),
        "neighbours": [] if added is None else points(changes_only(added)),
        "neighbours_word": f"the same, counting {added_words(summary)}",
        "structure": [] if structure is None else points(changes_only(structure)),
        "structure_word": f"the same, counting {structure_words(summary)}",
        "attacked": [{"x": float(x), "y": float(y)} for x, y in sorted(summary.context.attacked)],
        "size_only": [{"x": float(x), "y": float(y)} for x, y in _size_only(summary)],
        "size_only_word": SIZE_ONLY_WORD,
        "references": [{"key": _style(key), "name": name, "value": value} for key, name, value in summary.references],
        "max_size": summary.last_size,
        "x_label": f"size of the attack ({step_words(summary)[1]})",
        "size_word": "size",
        "y_word": word,
        "summary": _spoken(word, curve, [0, summary.last_size // 2, summary.last_size], "size"),
    }


def accuracy_table(summary: Summary) -> dict[str, Any]:
    """A dozen sizes of the first chart in numbers."""
    curve, added = summary.certified, summary.certified_additions
    attacked = {float(x): float(y) for x, y in summary.context.attacked}
    sizes = sorted({*_round_sizes(summary.last_size), *(int(x) for x in attacked if x == int(x))})
    others = [(structure_words(summary), summary.certified_structure), (added_words(summary), added)]
    columns = [(share_word(summary), curve), *((f"counting {word}", c) for word, c in others if c is not None)]
    rows = [[f"{size:,}", *(percent(c.at(size)) for _, c in columns)] for size in sizes]
    names = [name for name, _ in columns]
    if attacked:
        names.append("accuracy under attack")
        rows = [
            [*row, percent(attacked[size]) if size in attacked else "–"] for row, size in zip(rows, sizes, strict=True)
        ]
    by_size = dict(_size_only(summary))
    if by_size:
        names.append(SIZE_ONLY_WORD)
        rows = [[*row, percent(by_size[s]) if s in by_size else "–"] for row, s in zip(rows, sizes, strict=True)]
    for _, name, value in summary.references:
        names.append(name)
        rows = [[*row, percent(value)] for row in rows]
    return {"names": names, "rows": rows}


def _size_only(summary: Summary) -> list[tuple[float, float]]:
    """What the size alone certifies, as far as the curves reach."""
    return [(float(size), share) for size, share in sorted(summary.context.size_only) if size <= summary.last_size]


def degree_chart(summary: Summary) -> dict[str, Any] | None:
    """Certified accuracy over size divided by degree, on a logarithmic axis; None if degrees are unknown."""
    curve = summary.certified_over_degree
    if curve is None or len(curve.size) < 2:
        return None
    low = min(0.1, 10.0 ** math.floor(math.log10(curve.size[1])))
    high = _round_up(max(2.0, 1.05 * float(curve.size[-1])))
    inner = (curve.size > low) & (curve.size <= high)
    x = np.concatenate([[low], curve.size[inner], [high]])
    y = np.concatenate([[curve.at(low)], curve.share[inner], [curve.at(high)]])
    ticks = [10.0**e for e in range(round(math.log10(low)), math.floor(math.log10(high)) + 1)]
    edges = "degree" if summary.certificate.claim.task == "node" else "number of edges"
    return {
        "points": points(Shares(x, y)),
        "domain": [low, high],
        "ticks": ticks,
        "x_label": f"size of the attack ÷ {edges} of the target (logarithmic)",
        "ratio_word": f"size ÷ {edges}",
        "y_word": share_word(summary),
        "ceiling": CEILING if summary.certificate.claim.task == "node" else "",
        "summary": _spoken(share_word(summary), curve, [0.5, 1, 2], f"size ÷ {edges}"),
    }


def degree_table(summary: Summary) -> list[list[str]]:
    """The second chart in numbers."""
    curve = summary.certified_over_degree
    return [] if curve is None else [[f"{x:g}", percent(curve.at(x))] for x in (0.1, 0.25, 0.5, 1, 2, 5, 10, 50, 100)]


def _spoken(word: str, curve: Shares, sizes: list[float], unit: str) -> str:
    """The chart in words, for screen readers."""
    return f"{word}: " + ", ".join(f"{percent(curve.at(x))} at {unit} {x:g}" for x in sizes) + "."


def _round_up(value: float) -> float:
    scale = 10.0 ** math.floor(math.log10(value))
    return next(m * scale for m in (1, 2, 5, 10) if m * scale >= value)


def _style(key: str) -> str:
    return {"bag_of_nodes": "bag"}.get(key, key)


def _round_sizes(last: int) -> list[int]:
    """About a dozen round sizes from 0 to ``last``."""
    return list(range(0, last + 1, int(_round_up(max(1, last / TABLE_ROWS)))))


def pack(arrays: dict[str, Array]) -> tuple[list[dict[str, Any]], bytes]:
    """Arrays as one compressed block, and where each lies in it; each in the smallest type that holds its values."""
    places, block = [], bytearray()
    for name, array in arrays.items():
        small = _smallest(array)
        block.extend(bytes(-len(block) % ALIGNMENT))
        places.append({"name": name, "type": str(small.dtype), "offset": len(block), "length": small.size})
        block.extend(small.astype(small.dtype.newbyteorder("<")).tobytes())
    return places, gzip.compress(bytes(block), compresslevel=COMPRESSION, mtime=0)


def _smallest(array: Array) -> Array:
    if array.dtype == np.float64:
        return array
    low, high = (int(array.min()), int(array.max())) if array.size else (0, 0)
    for dtype in (np.uint8, np.int8, np.uint16, np.int16):
        if np.iinfo(dtype).min <= low and high <= np.iinfo(dtype).max:
            return array.astype(dtype)
    return array.astype(np.int32 if low >= -(2**31) and high < 2**31 else np.float64)


def as_text(packed: bytes) -> str:
    """Bytes as base64, whose letters mean nothing to HTML."""
    return base64.b64encode(packed).decode("ascii")


def json_for_html(value: Any) -> str:
    r"""JSON that stays inside its script element, whatever strings it holds.

    Example:
        >>> json_for_html("</script>")
        '"\\u003c/script\\u003e"'
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def target_arrays(summary: Summary) -> dict[str, Array]:
    """One entry for each target: id, label, truth, radius, votes."""
    certificate = summary.certificate
    ids = json.dumps([str(target) for target in certificate.target.tolist()], ensure_ascii=False).encode()
    arrays: dict[str, Array] = {
        "ids": np.frombuffer(ids, dtype=np.uint8),
        "label": certificate.label,
        "radius": np.minimum(certificate.radius, ANY),
        "counts": certificate.counts.ravel(),
    }
    if summary.truth is not None:
        arrays["truth"] = summary.truth
    if summary.degree is not None:
        arrays["degree"] = summary.degree
    if summary.structure is not None:
        arrays["structure"] = np.minimum(summary.structure, ANY)
    if summary.added is not None:
        arrays["neighbours"] = np.where(summary.added >= LARGEST_AMOUNT, ANY, summary.added).astype(np.int64)
    return arrays


def vote_arrays(summary: Summary) -> dict[str, Array]:
    """What the explorer counts: stable votes by tier, and how far nodes reach. Empty without ballots."""
    evidence = summary.ballots
    if evidence is None:
        return {}
    votes = evidence.votes
    counted = tally(votes)
    reached, unreached, _ = counted.votes
    arrays = {
        "default": votes.default,
        "default_stable": votes.default_stable,
        "num_reached": np.bincount(votes.owner[votes.reached], minlength=votes.num_targets),
        "size": counted.size.ravel(),
        "votes_reached": reached.ravel(),
        "cover_len": np.diff(evidence.cover_ptr),
        "cover": evidence.cover,
    }
    return arrays | ({"votes_unreached": unreached.ravel()} if unreached.any() else {}) | _special_arrays(evidence)


def _special_arrays(evidence: BallotEvidence) -> dict[str, Array]:
    """What the explorer counts beside the ballots: predictions that a prior follows, directions of pairs, and hubs."""
    votes = evidence.votes
    known = {name: getattr(evidence, name) for name in ("edgeless", "edgeless_stable", "hubs")}
    if evidence.one_way is not None:
        one_way = votes.stable & evidence.one_way
        known["one_way_votes"] = votes.tally(one_way, np.zeros(votes.num_targets, dtype=bool)).ravel()
        known["one_way_size"] = np.bincount(votes.owner[one_way], minlength=votes.num_targets)
    return {name: array for name, array in known.items() if array is not None}


def ballot_arrays(evidence: BallotEvidence, num_targets: int) -> dict[str, Array]:
    """Every listed ballot of the first ``num_targets`` targets; groups as steps from one to the next."""
    votes = evidence.votes
    one_way = np.zeros(len(votes.ballot), dtype=bool) if evidence.one_way is None else evidence.one_way
    last = votes.indptr[num_targets]
    group = votes.group[:last].astype(np.int64)
    starts = votes.indptr[:num_targets][np.diff(votes.indptr[: num_targets + 1]) > 0]
    step = np.diff(group, prepend=-1)
    step[starts] = group[starts] + 1
    return {
        "listed_len": np.diff(votes.indptr[: num_targets + 1]),
        "group_step": step,
        "ballot": votes.ballot[:last],
        "flags": votes.stable[:last].astype(np.int64) + 2 * votes.reached[:last] + 4 * one_way[:last],
    }


def num_detailed(evidence: BallotEvidence, limit: int = DETAIL_BYTES) -> int:
    """How many targets' single ballots fit into ``limit`` compressed bytes, from the first target on."""
    count = evidence.num_targets
    while count and (size := len(pack(ballot_arrays(evidence, count))[1])) > limit:
        count = min(int(count * 0.97 * limit / size), count - 1)
    return count
