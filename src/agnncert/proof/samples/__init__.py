"""Certificates from random samples: the pure part of the smoothing defences, without torch.

- ``bounds.py``: counts to bounds on class probabilities (Clopper and Pearson), and the worst that any classifier with
  such probabilities can do under noise (Neyman and Pearson)
- ``noise.py``: what every noise must answer
- ``flips.py``: what flip noise proves (RS, sparsity-aware RS)
- ``deletions.py``: what deletion noise proves (Bi-RS)
- ``evidence.py``: ``SampleEvidence``, the counts, noise and error probability of a certificate

``recount_samples`` derives all of it again for the verifier, in code that imports nothing from here.
"""

from agnncert.proof.samples.deletions import DeletionNoise as DeletionNoise
from agnncert.proof.samples.evidence import SampleEvidence as SampleEvidence
from agnncert.proof.samples.flips import FlipNoise as FlipNoise
