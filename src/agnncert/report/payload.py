"""The numbers inside the page: typed arrays, packed and compressed, as text that HTML cannot misread."""

import base64
import gzip
import json
from typing import Any

import numpy as np
import numpy.typing as npt

from agnncert.proof.ballots import Votes
from agnncert.proof.theorems import LARGEST_AMOUNT, tally
from agnncert.report.summary import Summary

Array = npt.NDArray[Any]

ANY = 2**31 - 1  # stands for "any number" in whole-number arrays
ALIGNMENT = 8
COMPRESSION = 6  # the highest level takes five times as long for two per cent
DETAIL_BYTES = 2_600_000  # compressed; single ballots beyond this stay out of the page, so that it opens anywhere


def pack(arrays: dict[str, Array]) -> tuple[list[dict[str, Any]], bytes]:
    """Arrays as one compressed block, with the place of each one; values take as few bytes as they need."""
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
    return array.astype(np.int32)


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
    ids = json.dumps([str(one) for one in certificate.target.tolist()], ensure_ascii=False).encode()
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
    return arrays | ({"votes_unreached": unreached.ravel()} if unreached.any() else {})


def ballot_arrays(votes: Votes, num_targets: int) -> dict[str, Array]:
    """Every listed ballot of the first ``num_targets`` targets; groups as steps from one to the next."""
    last = votes.indptr[num_targets]
    group = votes.group[:last].astype(np.int64)
    starts = votes.indptr[:num_targets][np.diff(votes.indptr[: num_targets + 1]) > 0]
    step = np.diff(group, prepend=-1)
    step[starts] = group[starts] + 1
    return {
        "listed_len": np.diff(votes.indptr[: num_targets + 1]),
        "group_step": step,
        "ballot": votes.ballot[:last],
        "flags": votes.stable[:last].astype(np.int64) + 2 * votes.reached[:last],
    }


def num_detailed(votes: Votes, limit: int = DETAIL_BYTES) -> int:
    """How many targets' single ballots fit into ``limit`` compressed bytes, from the first target on."""
    count = votes.num_targets
    while count and (size := len(pack(ballot_arrays(votes, count))[1])) > limit:
        count = min(int(count * 0.97 * limit / size), count - 1)
    return count
