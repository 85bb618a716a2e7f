"""Whether the confidence that a claim states for its threshold follows from the numbers beside it.

If n targets were kept, and at most k of them are flagged, then the rate a is kept with confidence c
if P(Bin(n, a) <= k) <= 1 - c. The sum is computed term by term in decimal numbers of 50 digits; each
term follows from the one before it.
"""

from collections.abc import Iterator
from decimal import Context, Decimal, localcontext

from agnncert.certificates.threshold_record import ThresholdRecord

_DIGITS = 50  # a million steps lose eight of them at most


def wrong_threshold(record: ThresholdRecord | None, num_classes: int) -> Iterator[str]:
    """Yields what is wrong with how a claim says that its threshold was chosen.

    Args:
        record: What the claim says; ``None`` if it is not about a threshold.
        num_classes: How many classes the evidence has.
    """
    if record is None:
        return
    if record.positive >= num_classes:
        yield f"the threshold is about class {record.positive}, and there are {num_classes}"
    if record.flagged > record.allowed:
        yield f"{record.flagged} targets are flagged, and the threshold allows {record.allowed}"
    if record.confidence is not None:
        yield from _wrong_confidence(record, record.confidence)
    elif record.false_positive_rate is not None and record.allowed > record.counted * record.false_positive_rate:
        yield f"{record.allowed} of {record.counted} is more than the requested share"


def _wrong_confidence(record: ThresholdRecord, confidence: float) -> Iterator[str]:
    """Yields why the stated confidence does not follow."""
    rate = record.false_positive_rate
    if rate is None or rate == 0:
        yield "a confidence is stated for a threshold, and no rate above 0 that it is about"
    elif record.allowed >= record.counted:
        yield "a threshold that all kept targets may exceed guarantees nothing"
    elif confidence < 0.5 or not _follows(record.counted, record.allowed, rate, confidence):
        yield (
            f"that at most {rate:g} are flagged with confidence {confidence:g} does not follow from "
            f"{record.allowed} of {record.counted} kept targets"
        )


def _follows(kept: int, allowed: int, rate: float, confidence: float) -> bool:
    """Whether at most ``allowed`` successes in ``kept`` trials are as improbable as the confidence says."""
    with localcontext(Context(prec=_DIGITS, Emin=-(10**15), Emax=10**15)):
        chance = Decimal(repr(rate))  # as it was typed: .1 is a tenth
        term = (1 - chance) ** kept
        total = term
        limit = 1 - Decimal(repr(confidence))
        odds = chance / (1 - chance)
        for k in range(1, allowed + 1):
            term *= odds * (kept - k + 1) / k
            total += term
            if total > limit:
                return False
        return total <= limit
