"""Other certified defences under the same certificate, and the comparison of all of them.

``agnncert.certify`` takes each defence. GNNCert-E, -N and -EN are divisions, and deterministic. The others *smooth*:
they vote over random changes of the graph, called noise, and their certificates hold with a stated probability.

- ``smoothing``: what the smoothing defences share: sampling, certificate, noisy training data
- ``gnncert``: GNNCert-E, -N and -EN
- ``flips``: RS and sparsity-aware RS, with ``flippable`` and ``flip_sampler``; ``deletions``: Bi-RS, with
  ``deletion_sampler``; ``interception``: message-interception smoothing, with ``paths``
- ``draws``: random draws; ``pairs``: the pairs of nodes that they act on; ``noisy_union``: a model run on many noisy
  graphs at once; ``sample_counts``: counts that can be interrupted and resumed
- ``bounds``, ``noise``, ``flip_noise``, ``deletion_noise``, ``interception_noise``, ``cheapest``, ``samples``: from
  counts of noisy predictions to what is certified; no torch
- ``recheck``: draws the samples of a certificate again; ``recount_samples``: derives its statements a second time;
  ``sample_claim``: its words
- ``compared``: ``compare``; ``entries``: what it runs; ``comparison``: the rows as tables and figures; ``bar``: how far
  it is; ``threat``: kinds of attack; ``runner``: one defence from training to its row;
  ``control_rows``: the rows of the controls; ``exact``: what an undefended model withstands
- ``testing``: ``check_division``, for authors of divisions, with ``random_attacks``; ``size_control``: a control by the
  size of graphs alone
- ``similarity``: trusted edges between similar nodes, as a division
- ``cards``: result cards; ``card_evidence``: what they rest on; ``card_check``: their numbers derived again;
  ``card_making``: from a run to its cards; ``card_page``: the page of all cards
- ``command``, ``steps``: the command ``agnncert compare``; ``card_command``: ``agnncert card`` and ``agnncert cards``
"""

import lazy_loader

__version__ = "0.1.0"

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
