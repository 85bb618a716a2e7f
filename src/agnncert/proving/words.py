"""What reports say about a certificate that depends on the kind of its evidence.

:meth:`Evidence.words <agnncert.proving.evidence.Evidence.words>` returns :class:`Words`. The phrases of each kind are
beside it: those of votes of subgraphs in ``divided.words``, those of other kinds in their own packages. A kind
that says nothing about itself gets :func:`plain_words`, which are true of every kind.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from agnncert.certificates.claim import Claim
from agnncert.certificates.class_names import class_word


@dataclass(frozen=True)
class Subject:
    """What a report is about, and how it names things.

    Attributes:
        claim: The claim of the certificate.
        class_names: Name of each class. By default classes have numbers.
        targets: What the targets are, in the plural.
    """

    claim: Claim
    class_names: Sequence[str] | None = None
    targets: str = "targets"

    def class_word(self, k: int) -> str:
        """Returns the name of a class, or "class" and its number."""
        return class_word(self.class_names, k)


@dataclass(frozen=True)
class Deed:
    """An action of an attacker.

    Attributes:
        one: The action, performed once.
        many: The action, performed ``{size}`` times.
        price: How many steps of the radius one such action costs.
        none: What he does all the same if he performs it no time at all; empty if that is nothing.
    """

    one: str
    many: str
    price: int = 1
    none: str = ""

    def times(self, count: int) -> str:
        """Returns the action, performed ``count`` times, in words."""
        if count == 0:
            return self.none
        return self.one if count == 1 else self.many.replace("{size}", whole(count))


@dataclass(frozen=True)
class StepWords:
    """The words for a unit of the radius.

    Attributes:
        one: One step.
        many: Several steps.
        deed: What an attacker does who makes such steps. It is None where a step is no action of an attacker.
        deletes_edge: Whether one step is enough to delete an edge.
    """

    one: str
    many: str
    deed: Deed | None = None
    deletes_edge: bool = False


@dataclass(frozen=True)
class CountWords:
    """The words for the numbers that :attr:`Evidence.counts` has for each class.

    Attributes:
        title: Title of the column that compares label and runner-up.
        one: One of what is counted.
        many: Several of them.
        compared: What the column compares.
        of_target: What one target's panel says first. ``{label}`` and ``{next}`` stand for the label and the number of
            the runner-up, ``{top}`` for that of the label, ``{unit}`` for one or several of what is counted,
            ``{total}`` for ``total``, and ``{truth}`` for a remark about the true class.
        scale: How many of the whole numbers make one.
        total: How many there are for each target, 0 if that differs or makes no sense.
    """

    title: str = "Counts"
    one: str = "count"
    many: str = "counts"
    compared: str = "that of the label against that of the runner-up"
    of_target: str = "The count of {label} is {top}{truth}. The runner-up has {next}."
    scale: int = 1
    total: int = 0


@dataclass(frozen=True)
class Words:
    """What a report says about one certificate, as far as that depends on the kind of its evidence.

    Attributes:
        deed: The action of an attacker that sizes count.
        decided: How a label is decided, and why something can be proved about it, in sentences.
        decides: What is right or wrong about a target, after "the".
        step: The words for a unit of the radius.
        counts: The words for the numbers of each class.
        first: Sentences that have to be read with the headline, before everything else.
        notes: Sentences about how votes, scores or samples are counted.
        conceded: A sentence about what is too close to call, empty if nothing is.
        from_graph: Sentences about how much the graph contributes.
        facts: Names and values for the list of facts.
        target_title: Heading of the part about one target.
        target_text: What that part shows, as a sentence.
        nothing_proved: What is said about a target without a radius.
        stored: What labels and radii are derived from.
        anew: What ``agnncert verify`` does with the data and the model, after "this".
        recheck: Value of its option ``--recheck``. The default 0 leaves the option out.
    """

    deed: Deed
    decided: str
    decides: str = "defence"
    step: StepWords = StepWords("step", "steps")
    counts: CountWords = CountWords()
    first: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    conceded: str = ""
    from_graph: tuple[str, ...] = ()
    facts: tuple[tuple[str, str], ...] = field(default=())
    target_title: str = "One target"
    target_text: str = "What was counted for each class, and how far the label leads."
    nothing_proved: str = "Nothing is certified for it, not even without an attack."
    stored: str = "counts"
    anew: str = "compares the certificate with them"
    recheck: int = 0


def plain_words(subject: Subject) -> Words:
    """Returns words that are true of every kind of evidence."""
    claim = subject.claim
    subgraphs = (("Subgraphs", whole(claim.num_groups)),) if claim.num_groups else ()
    return Words(
        deed=sized_deed(claim), decided=f"Each label is decided by the defence {claim.method}.", facts=subgraphs
    )


def sized_deed(claim: Claim) -> Deed:
    """Returns the action of an attacker about whom only the unit of the size is known."""
    return Deed(f"reaches size 1 ({claim.unit})", f"reaches size {{size}} ({claim.unit})")


def whole(number: float) -> str:
    """Returns a whole number with thousands separators."""
    return f"{int(number):,}"


# What is good to have (accuracy, recall, precision) is rounded down everywhere, what is bad (false alarms) up. So
# bounds stay true, and one number is never written in two ways, as a bound here and as a measurement there.
LOWER = -1
UPPER = 1


def percent(share: float, bound: int = 0) -> str:
    r"""Returns a share in percent, with one decimal.

    The scripts of a page do the same arithmetic, so that one number is never written in two ways.

    Args:
        share: The share. It becomes a dash if it is not a number.
        bound: ``LOWER`` rounds down and ``UPPER`` rounds up. The default 0 rounds to the nearest, halves up.

    Example:
        >>> percent(0.7136), percent(0.7136, LOWER), percent(0.7134, UPPER), percent(1 / 16)
        ('71.4\xa0%', '71.3\xa0%', '71.4\xa0%', '6.3\xa0%')
    """
    if math.isnan(share):
        return "–"
    if bound < 0:
        tenths = math.floor(1000 * share + 1e-9)
    elif bound > 0:
        tenths = math.ceil(1000 * share - 1e-9)
    else:
        tenths = math.floor(1000 * share + 0.5 + 1e-9)
    return f"{tenths / 10:.1f}\u00a0%"


def plain_percent(share: float, bound: int = 0) -> str:
    """Returns the same without a space before the sign, for text that is printed in Python."""
    return percent(share, bound).replace("\u00a0", "")


EDGES = StepWords(
    "changed edge", "changed edges", Deed("changes any one edge", "changes any {size} edges"), deletes_edge=True
)
EDGES_OR_NODES = StepWords(
    "changed edge or node",
    "changed edges or nodes",
    Deed("changes any one edge or node", "changes any {size} edges or nodes"),
    deletes_edge=True,
)
EDGES_OR_OTHER_NODES = StepWords(  # where changes of the target's own features are not covered
    "changed edge or node",
    "changed edges or nodes",
    Deed("changes any one edge or other node", "changes any {size} edges or other nodes"),
    deletes_edge=True,
)
