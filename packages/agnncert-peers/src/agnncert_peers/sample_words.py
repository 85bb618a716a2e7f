"""What reports say about random samples."""

from agnncert.proving.words import CountWords, Deed, StepWords, Subject, Words, sized_deed

# By how the unit of a claim begins. {rest} stands for what follows.
_DEEDS = {
    "edge added or deleted": Deed("adds or deletes any one edge{rest}", "adds or deletes any {size} edges{rest}"),
    "feature entry flipped": Deed("flips any one entry of the features", "flips any {size} entries of the features"),
    "node injected": Deed("injects any one node{rest}", "injects any {size} nodes{rest} each"),
}


def sample_words(subject: Subject, num_samples: int) -> Words:
    """Returns what a report says about predictions that were counted under random noise.

    Args:
        subject: The claim, and how the report names things.
        num_samples: Number of samples that bound the probability of a label, for each target.
    """
    unit = subject.claim.unit
    return Words(
        deed=_deed(subject),
        decided="Each label is the most frequent prediction under random noise. What is stated here was estimated from "
        "samples.",
        decides="most frequent prediction",
        step=StepWords("step", "steps", deletes_edge=unit.startswith("edge added or deleted")),
        counts=CountWords(
            title="Samples",
            one="sample",
            many="samples",
            compared="those for the label against those for the runner-up",
            of_target="{top} of {total} samples are for {label}{truth}. The runner-up has {next}.",
            total=num_samples,
        ),
        target_title="One target and its samples",
        target_text="How often each class was predicted under random noise.",
        nothing_proved="Nothing is certified for it: the samples do not decide which class is the most probable one.",
        stored="counts of samples",
        anew="draws all samples anew, which takes as long as it took to certify",
        recheck=1,
    )


def _deed(subject: Subject) -> Deed:
    unit = subject.claim.unit
    for start, deed in _DEEDS.items():
        if unit.startswith(start):
            rest = unit.removeprefix(start)
            return Deed(deed.one.replace("{rest}", rest), deed.many.replace("{rest}", rest))
    return sized_deed(subject.claim)
