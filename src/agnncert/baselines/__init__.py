"""Other certified defences, under the same certificate: GNNCert, RS, sparsity-aware RS and Bi-RS.

``ac.certify`` takes each of them. GNNCert-E, -N and -EN are divisions, and deterministic. The others *smooth*: they
vote over random changes of the graph, called noise, and their certificates hold with a stated probability.

- ``smoothing``: what the smoothing defences share: sampling, certificate, noisy training data
- ``rs``, ``birs``: the smoothing defences
- ``flip_sampler``, ``deletion_sampler``: draw their noise, and count the predictions on many noisy graphs at once
- ``bernoulli``: random draws whose cost is proportional to what they change
- ``batched_calls``: a model run on many noisy graphs side by side
- ``counts``: counts that can be interrupted, resumed and extended
- ``defences``: all defences by name, and drawing the samples of a certificate again
"""

from agnncert.baselines.birs import BiRS as BiRS
from agnncert.baselines.counts import SampleCounts as SampleCounts
from agnncert.baselines.defences import defence_named as defence_named
from agnncert.baselines.defences import redraw as redraw
from agnncert.baselines.rs import RS as RS
from agnncert.baselines.rs import SparseRS as SparseRS
from agnncert.divisions import GNNCertE as GNNCertE
from agnncert.divisions import GNNCertEN as GNNCertEN
from agnncert.divisions import GNNCertN as GNNCertN
