"""CertifyGNN draws half of the noise that its certificate assumes.

Published rule: every entry is flipped with probability 1 - β = .2. Then a label withstands one flipped entry if its
probability exceeds .875. The released program keeps an entry with probability .8 and draws a *uniform* bit otherwise,
so that it flips one in ten.
"""

from experiments.unsound.common import Broken

KEEP = 0.8
THRESHOLD = 0.875  # of the published table, for one flip under a flip rate of .2


def flip_rate() -> float:
    """Returns how often the released program flips an entry: half of the redrawn bits are as they were."""
    return (1 - KEEP) / 2


def probability(entry: int) -> float:
    """Returns how often a classifier that reads one entry answers 0: when it reads a 0."""
    return 1 - flip_rate() if entry == 0 else flip_rate()


def demonstrate() -> Broken:
    """Flips the one entry that the classifier reads."""
    clean = probability(0)
    attacked = probability(1)
    assert clean > THRESHOLD
    return Broken(
        method="RS (CertifyGNN)",
        rule="a label with probability above .875 withstands one flip",
        certified=f"1 flip (probability {clean:.2f})",
        attack="one entry of the adjacency matrix is flipped",
        before=int(clean < 0.5),
        after=int(attacked < 0.5),
        why="entries are flipped with probability .1, and the certificate assumes .2",
    )
