"""Other certified defences, under the same certificate: GNNCert, RS, sparsity-aware RS and Bi-RS.

- ``gnncert.py``: GNNCert-E, -N and -EN, deterministic; they are divisions, for ``ac.certify``
- ``defence.py``: what the random ones share: audit, sampling, certificate, noisy training data
- ``birs.py``, ``rs.py``, ``sparse_rs.py`` (``flip_defence.py`` is common to the latter two): the defences
- ``redraw.py``: draws the samples of a certificate again
- ``counts.py``: counts by batches that can be resumed and extended
- ``coins.py``, ``pairs.py``, ``flips.py``: draw noise at the cost of what it changes
- ``deletion_sampler.py``, ``flip_sampler.py``, ``unions.py``: predictions on many noisy graphs at once
"""

from agnncert.baselines.birs import BiRS as BiRS
from agnncert.baselines.counts import SampleCounts as SampleCounts
from agnncert.baselines.redraw import redraw as redraw
from agnncert.baselines.rs import RS as RS
from agnncert.baselines.rs import SparseRS as SparseRS
from agnncert.divisions.gnncert import GNNCertE as GNNCertE
from agnncert.divisions.gnncert import GNNCertEN as GNNCertEN
from agnncert.divisions.gnncert import GNNCertN as GNNCertN
