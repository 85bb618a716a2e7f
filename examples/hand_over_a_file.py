"""Hand a certificate to someone else, who verifies it: from the file alone, then with graph and model.

From the file alone the receiver learns that every label, radius and statement follows from the votes in the file. With
graph and model the receiver also learns that this model gives these votes on this graph.
"""

from pathlib import Path

import agnncert as ac

# The owner of the model.
data = ac.load_dataset("digits-knn")
division = ac.EdgeCentric(30)
model = ac.fit(ac.build_model("gcn", data, num_layers=2), data, division, epochs=10, lr=0.03)
ac.certify(model, data, division, targets=data.test_mask).save("digits.cert")

# The receiver, with the file alone: needs no torch. `agnncert verify digits.cert` prints the same.
verdict = ac.verify("digits.cert")
print(verdict, "\n")

# The receiver, with graph and model: the votes are computed again.
print(ac.verify("digits.cert", data=data, model=model), "\n")

# Another model did not cast these votes.
other = ac.build_model("gcn", data, num_layers=2).eval()
print(ac.verify("digits.cert", data=data, model=other), "\n")

# A file with a single altered byte is refused.
content = bytearray(Path("digits.cert").read_bytes())
content[-1] ^= 1
Path("altered.cert").write_bytes(bytes(content))
print(ac.verify("altered.cert"))
