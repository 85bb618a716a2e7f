"""What a certificate with a guaranteed threshold promises of targets to come, in one sentence.

The rate of others who are accused is the one that was requested (``guaranteed_rate``). The share of the class that
stays detected is an exact binomial bound from below: of the certified targets of this class so many keep their label
against the least attack. Which attack that is follows from the kind of evidence, not from what was found.
"""

from typing import TYPE_CHECKING

from agnncert.certificates.threshold_record import ThresholdRecord
from agnncert.proving.guaranteed_rate import largest_rate
from agnncert.proving.measures import Measures
from agnncert.proving.words import LOWER, Deed, Subject, percent, whole

if TYPE_CHECKING:
    from agnncert.proving.certificate import Certificate


def deed_of(certificate: "Certificate") -> Deed:
    """Returns the action of an attacker that the sizes of a certificate count."""
    return certificate.evidence.words(Subject(certificate.claim, certificate.class_names or None)).deed


def least_times(deed: Deed) -> int:
    """Returns how often the least attacker acts: no time if he does something all the same, else once."""
    return 0 if deed.none else 1


def promise(threshold: ThresholdRecord | None, deed: Deed, measures: Measures, name: str) -> str:
    """Returns the sentence; empty without a guarantee, or without a known target of the class.

    Args:
        threshold: How the threshold was chosen.
        deed: The action of an attacker.
        measures: What is certified against the least attack.
        name: What the class is called.
    """
    if threshold is None or threshold.confidence is None or not measures.support[threshold.positive]:
        return ""
    known = int(measures.support[threshold.positive])
    caught = round(float(measures.recall[threshold.positive]) * known)
    least = 1 - largest_rate(known - caught, known, threshold.confidence)
    if least <= 0:
        return ""
    confidence = f"{100 * threshold.confidence:.10g}\N{NO-BREAK SPACE}%"
    rate = f"{100 * (threshold.false_positive_rate or 0):.10g}\N{NO-BREAK SPACE}%"
    cut = " A split that was cut by time is none." if threshold.split_by == "time" else ""
    return (
        f"At least {percent(least, LOWER)} of {name} stays caught when an attacker {deed.times(least_times(deed))}, "
        f"and without an attack at most {rate} of the others are taken for {name}, each with {confidence} confidence: "
        f"{whole(caught)} of {whole(known)} known ones stay caught here, provided that these targets were used for "
        f"nothing else, and that targets to come are like them, as in a random draw.{cut}"
    )
