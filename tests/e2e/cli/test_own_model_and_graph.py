"""A module written outside of the project, and a graph in CSV with names for ids, each certified in one call."""

import json
import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save

import agnncert as ac
from tests.support import programs


@cache
def trained() -> bytes:
    """Weights of ``mine:build`` that tell the two kinds of users apart by their first feature."""
    import mine

    torch.manual_seed(0)
    model = mine.build()
    data = ac.load_tables("tables")
    ac.fit(model, data, ac.NodeCentric(5), epochs=30, lr=0.05)
    return save(model.state_dict())


@pytest.fixture
def weights(place: Path) -> Path:
    """A file of them, in a folder where the tables are still as they were in training."""
    file = Path("mine.safetensors")
    file.write_bytes(trained())
    return file


@pytest.fixture(autouse=True)
def _importable(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(place))


@pytest.mark.slow
def test_both_are_certified_in_one_call_from_a_shell(place, weights) -> None:
    words = ["certify", "tables", "--model", "mine:build", "--weights", str(weights), "--groups", "9", "--json"]
    # Python's path begins with the folder of the command: nothing but the current folder tells where mine.py is.
    done = programs.run(programs.AGNNCERT, *words)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    certificate = ac.load_certificate(told["certificate"])
    assert certificate.target[0].startswith("user")
    assert certificate.claim.ids == "node_id"
    assert told["targets"] == certificate.num_targets == 24
    assert (certificate.label == certificate.truth).mean() > 0.7


def test_the_command_proves_what_the_library_proves(agnncert, weights) -> None:
    import mine

    answer = agnncert(
        "certify", "tables", "--model", "mine:build", "--weights", weights, "--division", "edge", "--groups", 7
    )
    assert answer.status == 0, answer.err
    by_command = ac.load_certificate("runs/tables-mine-build-edge-7/certificate.cert")
    model = mine.build()
    model.load_state_dict(__import__("safetensors.torch").torch.load_file(weights))
    data = ac.load_tables("tables")
    by_library = ac.certify(model.eval(), data, ac.EdgeCentric(7), targets=data.test_mask)
    assert np.array_equal(by_command.counts, by_library.counts)
    assert np.array_equal(by_command.radius, by_library.radius)
    assert by_command.claim == by_library.claim


def test_all_votes_can_be_cast_again(agnncert, weights) -> None:
    agnncert("certify", "tables", "--model", "mine:build", "--weights", weights, "--groups", 5, "--out", "here")
    assert agnncert("verify", "here", "--model", "mine:build", "--recheck", "all").status == 0
    named = agnncert(
        "verify",
        "here/certificate.cert",
        "--data",
        "tables",
        "--model",
        "mine:build",
        "--weights",
        weights,
        "--recheck",
        20,
    )
    assert named.status == 0
    assert "20 of them once more" in named.out


def test_a_class_gets_the_widths_of_the_data(agnncert) -> None:
    answer = agnncert("audit", "mine.py:Net", "--data", "tables", "--set", "width=3")
    assert answer.status == 0, answer.err
    assert "fit for certification" in answer.out


def test_an_unfit_model_is_audited_with_status_1(agnncert) -> None:
    answer = agnncert("audit", "mine:Nosy", "--data", "tables", "--json")
    assert answer.status == 1
    told = json.loads(answer.out)
    assert not told["fit"]
    assert told["findings"][0]["remedy"]


LEAVES = {
    "a factory": "import sys\n\n\ndef build():\n    sys.exit(0)\n",
    "an import": "import sys\n\nsys.exit(0)\n",
    "a strange error": "class Odd(BaseException): ...\n\n\ndef build():\n    raise Odd('no')\n",
    "a forward": "import sys, torch\n\n\nclass Net(torch.nn.Linear):\n    def forward(self, x, e):\n        sys.exit(0)\n\n\n"
    "def build():\n    return Net(2, 2)\n",
}


@pytest.mark.parametrize("what", LEAVES)
@pytest.mark.parametrize("spec", ["leaves_{}:build", "leaves_{}.py:build"])
def test_code_that_ends_the_program_does_not_pass_for_fit(agnncert, what, spec) -> None:
    name = what.replace(" ", "_")
    Path(f"leaves_{name}.py").write_text(LEAVES[what])
    answer = agnncert("audit", spec.format(name), "--data", "tables")
    assert answer.status == 2
    assert "error: " in answer.err
    assert "Traceback" not in answer.err


def test_columns_may_have_other_names(agnncert, weights) -> None:
    nodes = Path("tables/nodes.csv")
    nodes.write_text(nodes.read_text().replace("id,label,a,b", "name,kind,a,b"))
    words = ["--set", "column.id=name", "--set", "column.label=kind", "--set", "feature=a,b"]
    answer = agnncert("certify", "tables", "--model", "mine:build", "--weights", weights, "--groups", 5, *words)
    assert answer.status == 0, answer.err


def test_without_labels_the_share_of_labels_that_stay_is_told(agnncert, weights) -> None:
    words = ["--set", "column.label=none", "--set", "feature=a,b"]
    answer = agnncert("certify", "tables", "--model", "mine:build", "--weights", weights, "--groups", 5, *words)
    assert answer.status == 0, answer.err
    assert "stay the same" in answer.out
    assert "no known labels" in answer.out


def test_one_target_without_a_label_hides_no_accuracy(agnncert, weights) -> None:
    nodes = Path("tables/nodes.csv")
    nodes.write_text(nodes.read_text().replace("user3,cat", "user3,"))
    words = ("--model", "mine:build", "--weights", weights, "--groups", 5, "--set", "targets=all", "--out", "here")
    answer = agnncert("certify", "tables", *words)
    assert answer.status == 0, answer.err
    assert "1 of 40 targets have no label: accuracies are shares of the other 39" in answer.out
    assert "of 39 decisions match the stated class, and still do, when an attacker" in answer.out
    certificate = ac.load_certificate("here/certificate.cert")
    rows = [json.loads(line) for line in Path("here/results.jsonl").read_text().splitlines()]
    known = {row["measure"]: row["value"] for row in rows if row["size"] is None}
    right = int((certificate.label == certificate.truth).sum())
    assert known["accuracy of the vote"] == right / 39
    assert "The class of 1 of 40 nodes is not known" in Path("here/report.html").read_text()
    assert agnncert("verify", "here", "--model", "mine:build", "--recheck", 5).status == 0
    attacked = agnncert("attack", "here", "--model", "mine:build", "--sizes", 1, "--sample", "all", "--json")
    assert attacked.status == 0
    assert json.loads(attacked.out)["rounds"][0]["certified"] == certificate.certified_accuracy(sizes=1)


def test_targets_without_any_label_have_no_accuracy(agnncert, weights) -> None:
    nodes = Path("tables/nodes.csv")
    header, *lines = nodes.read_text().splitlines()
    split = [
        f"{line},{'test' if number < 5 else 'train' if number < 30 else 'val'}" for number, line in enumerate(lines)
    ]
    bare = [",".join([cells[0], "", *cells[2:]]) for cells in (line.split(",") for line in split[:5])]
    nodes.write_text("\n".join([f"{header},split", *bare, *split[5:]]) + "\n")
    answer = agnncert("certify", "tables", "--model", "mine:build", "--weights", weights, "--groups", 5)
    assert answer.status == 0, answer.err
    assert "none of the 5 targets has a label, so accuracies are left out" in answer.out
    assert "stay the same" in answer.out


def test_large_numbers_stay_ids_to_the_last_digit_in_all_that_a_command_writes(agnncert, place, weights) -> None:
    for table in (place / "tables").glob("*.csv"):
        text = table.read_text()
        table.write_text(re.sub(r"user(\d+)", lambda found: str(2**63 + int(found[1])), text))
    answer = agnncert("certify", "tables", "--model", "mine:build", "--weights", weights, "--groups", 7)
    assert answer.status == 0, answer.err
    run = place / "runs" / "tables-mine-build-node-7"
    data = ac.load_tables("tables")
    expected = [name for name, chosen in zip(data.node_id, data.test_mask.tolist(), strict=True) if chosen]
    certificate = ac.load_certificate(run / "certificate.cert")
    assert certificate.target.tolist() == [int(name) for name in expected]
    assert min(certificate.target) >= 2**63
    assert ac.verify(run / "certificate.cert", data=data).holds
    (targets,) = (file for file in ac.save_tables(certificate, place / "paper") if file.name == "targets.csv")
    assert [line.split(",")[0] for line in targets.read_text().splitlines()[1:]] == expected


def test_tables_with_columns_of_very_different_size_are_scaled_within_the_model(agnncert, place) -> None:
    nodes = place / "tables" / "nodes.csv"
    head, *rows = nodes.read_text(encoding="utf-8").splitlines()
    uneven = [f"{row},{1000 * k}" for k, row in enumerate(rows)]
    nodes.write_text("\n".join([f"{head},income", *uneven]) + "\n", encoding="utf-8")
    words = ("tables", "--groups", 5, "--epochs", 2, "--out")
    answer = agnncert("train", *words, "runs/a", "--no-references", "--json")
    assert answer.status == 0, answer.err
    assert json.loads(answer.out)["settings"]["set"]["scale"] == "standard"
    assert "very different scales" not in answer.err
    again = agnncert("train", *words, "runs/b", "--set", "scale=none")
    assert again.out.count("very different scales") == 1
    assert agnncert("certify", "runs/a").status == 0
    assert agnncert("verify", "runs/a", "--recheck", 5).status == 0


def test_a_model_that_is_worse_than_one_without_edges_says_so_in_one_line(agnncert, place) -> None:
    users = [f"user{k}" for k in range(40)]
    everybody = [f"{u},{v}" for k, u in enumerate(users) for v in users[k + 1 :]]  # so that all look the same
    (place / "tables" / "edges.csv").write_text("source,target\n" + "\n".join(everybody) + "\n", encoding="utf-8")
    answer = agnncert("train", "tables", "--groups", 1, "--epochs", 40, "--set", "norm=none")
    (said,) = [line for line in answer.out.splitlines() if "a model without edges for" in line]
    assert "the edges do not help. Try --set norm=batch_norm" in said
    quiet = agnncert("train", "tables", "--groups", 1, "--epochs", 2, "--model", "mlp")
    assert "a model without edges for" not in quiet.out


def test_a_graph_on_disk_is_trained_certified_and_checked_like_tables(agnncert, place) -> None:
    data = ac.load_tables("tables")
    ac.write_graph(data, "disk")
    for name in ("tables", "disk"):
        answer = agnncert("train", name, "--groups", 7, "--epochs", 2, "--no-references", "--out", f"runs/{name}")
        assert answer.status == 0, answer.err
        assert agnncert("certify", f"runs/{name}", "--root", ".").status == 0
    mine, theirs = (ac.load_certificate(f"runs/{name}/certificate.cert") for name in ("disk", "tables"))
    assert mine.claim == theirs.claim
    assert np.array_equal(mine.counts, theirs.counts)
    assert agnncert("verify", "runs/disk", "--root", ".", "--recheck", 20).status == 0
    file = place / "disk" / "x.npy"
    file.write_bytes(file.read_bytes()[:-1] + b"\0")
    answer = agnncert("verify", "runs/disk", "--root", ".", "--recheck", 20)
    assert answer.status != 0
    assert "x.npy was altered or damaged" in answer.err


def test_tables_as_they_come_are_encoded_and_the_run_keeps_how(agnncert, place) -> None:
    nodes = place / "tables" / "nodes.csv"
    rows = nodes.read_text().splitlines()
    words = [f"{row},{('shop', 'bank')[k % 2]},2025-{1 + k % 12:02}-01" for k, row in enumerate(rows[1:])]
    nodes.write_text("\n".join([f"{rows[0]},kind,opened", *words]) + "\n")
    edges = place / "tables" / "edges.csv"
    head, *joined = edges.read_text().splitlines()
    edges.write_text("\n".join([f"{head},note", *(f"{row}," for row in joined), f"{joined[0]},x"]) + "\n")
    refused = agnncert("train", "tables", "--groups", 4, "--epochs", 1)
    assert refused.status == 2
    assert "2 problems" in refused.err
    how = ("--set", "encode=auto", "--set", "edge_feature=none", "--set", "column.time=opened")
    trained = agnncert("train", "tables", *how, "--groups", 4, "--epochs", 1, "--no-references", "--out", "runs/own")
    assert trained.status == 0, trained.err
    assert "1 of " in trained.out + trained.err
    assert agnncert("certify", "runs/own", "--no-report").status == 0
    assert agnncert("verify", "runs/own", "--require", "data,model").status == 0
    encoding = json.loads(Path("runs/own/encoding.json").read_text())
    assert [column["name"] for column in encoding["nodes"]] == ["a", "b", "kind"]
    assert "split by time" in Path("runs/own/MODEL_CARD.md").read_text()
    Path("runs/own/encoding.json").write_text(json.dumps(encoding | {"format": "other"}))
    assert "no encoding" in agnncert("verify", "runs/own").out
    Path("runs/own/encoding.json").unlink()
    settings = Path("runs/own/settings.toml")
    settings.write_text(settings.read_text().replace('encode = "auto"', 'encode = "/etc/elsewhere.json"'))
    assert "names files outside of it: /etc/elsewhere.json" in agnncert("verify", "runs/own").err
