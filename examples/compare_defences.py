"""Compare certified defences on one graph: certified accuracy over the number of added or deleted edges.

Each defence trains a model for itself from the same initial weights and split. The table also has controls that need no
certificate: the majority class, and a model that sees no edges. A certified accuracy is worth what it adds to them.
"""

import agnncert as ac

data = ac.load_dataset("digits-knn")
defences = [ac.NodeCentric(20), ac.NodeCentric(60), ac.baselines.GNNCertE(60)]
comparison = ac.compare(data, defences, sizes=[0, 2, 5, 10, 20], fit={"epochs": 5, "lr": 0.03})
print(comparison)
