"""Other certified defences, under the same certificate: GNNCert, RS, sparsity-aware RS and Bi-RS.

``ac.certify`` takes each of them. GNNCert-E, -N and -EN are divisions, and deterministic. The others *smooth*: they
vote over random changes of the graph, called noise, and their certificates hold with a stated probability.

- ``smoothing``: what the smoothing defences share: sampling, certificate, noisy training data
- ``flips``: RS and sparsity-aware RS
- ``deletions``: Bi-RS
- ``sampling``: random draws, a model run on many noisy graphs at once, counts that can be interrupted and resumed
- ``named``: all defences by name, and drawing the samples of a certificate again
"""

from agnncert.baselines.deletions import BiRS as BiRS
from agnncert.baselines.flips import RS as RS
from agnncert.baselines.flips import SparseRS as SparseRS
from agnncert.baselines.named import defence_named as defence_named
from agnncert.baselines.named import redraw as redraw
from agnncert.baselines.sampling import SampleCounts as SampleCounts
from agnncert.divisions.gnncert import GNNCertE as GNNCertE
from agnncert.divisions.gnncert import GNNCertEN as GNNCertEN
from agnncert.divisions.gnncert import GNNCertN as GNNCertN
