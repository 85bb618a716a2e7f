"""Other certified defences, under the same certificate: RS, sparsity-aware RS and Bi-RS.

defence.py           what they share: audit, sampling, certificate, noisy training data
rs.py sparse_rs.py birs.py   the defences
counts.py            counting by batches that can be resumed and extended
coins.py pairs.py flips.py   drawing noise at the cost of what it changes
deletion_sampler.py flip_sampler.py unions.py   predictions on noisy graphs, many at once
"""

from agnncert.baselines.birs import BiRS as BiRS
from agnncert.baselines.counts import SampleCounts as SampleCounts
from agnncert.baselines.recount import recount as recount
from agnncert.baselines.rs import RS as RS
from agnncert.baselines.sparse_rs import SparseRS as SparseRS
