"""Certificates from random samples: the pure part of the smoothing defences, without torch.

- ``bounds.py``: counts to bounds on class probabilities (Clopper and Pearson)
- ``regions.py``: the worst any classifier can do under noise (Neyman and Pearson), and tables for flips
- ``flips.py``: what flip noise proves (RS, sparsity-aware RS)
- ``deletions.py``: what deletion noise proves (Bi-RS)
- ``evidence.py``: ``SampleEvidence``, the counts, noise and error probability of a certificate
- ``claims.py``: what follows from it, in words
"""

from agnncert.proof.samples.deletions import DeletionNoise as DeletionNoise
from agnncert.proof.samples.evidence import SampleEvidence as SampleEvidence
from agnncert.proof.samples.flips import FlipNoise as FlipNoise
