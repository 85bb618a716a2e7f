"""A run folder that someone else made: nothing in it is run and nothing outside of it is touched, unless the caller names it."""

import os
import shutil
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from agnncert.cli import main
from agnncert.cli.attack_step import AttackSettings, attack_run
from agnncert.cli.audit_step import audit_named
from agnncert.cli.certify_step import certify_run
from agnncert.cli.settings import CertifySettings
from agnncert.cli.verify_step import verify_named
from agnncert.errors import AgnncertError
from agnncert_live.run import ServedRun, service_of_run
from tests.support.commands import MODULE, write_tables

MARKER = Path("executed")
HOSTILE = '\nPath("executed").touch()\n'  # runs when the module is imported


FAST = ("--epochs", 2, "--groups", 5, "--no-references")


@pytest.fixture
def own(agnncert, place) -> Path:
    """A run with a model of one's own, certified here."""
    for words in (
        ("train", "tables", "--model", "mine:Net", *FAST, "--out", "own"),
        ("certify", "own", "--model", "mine:Net", "--no-report"),
    ):
        done = agnncert(*words)
        assert done.status == 0, done.err
    return Path("own")


@pytest.fixture(scope="module")
def senders(tmp_path_factory) -> Path:
    """What a sender has made, in a place of their own: one run with a module of theirs, one with a built-in model."""
    place, before, paths = tmp_path_factory.mktemp("sender"), Path.cwd(), list(sys.path)
    os.chdir(place)
    write_tables(place / "tables")
    (place / "mine.py").write_text(MODULE, encoding="utf-8")
    for model, out in (("mine:Net", "theirs"), ("gcn", "plain")):
        for words in (
            ("train", "tables", "--model", model, *FAST, "--out", out),
            ("certify", out, "--model", model, "--no-report"),
        ):
            assert main([str(word) for word in words]) == 0
    os.chdir(before)
    sys.path[:] = paths
    sys.modules.pop("mine", None)
    return place


@pytest.fixture
def received(senders, place) -> Path:
    """A folder as it arrives; importing its model leaves a mark."""
    shutil.copytree(senders / "theirs", "received")
    Path("mine.py").write_text("from pathlib import Path\n" + Path("mine.py").read_text() + HOSTILE, encoding="utf-8")
    forget_module()
    return Path("received")


def forget_module() -> None:
    sys.modules.pop("mine", None)
    MARKER.unlink(missing_ok=True)


COMMANDS = {
    "certify": ("certify", "received", "--no-report"),
    "verify": ("verify", "received", "--recheck", 3),
    "verify with data": ("verify", "received/certificate.cert", "--data", "received", "--recheck", 3),
    "audit": ("audit", "received"),
    "attack": ("attack", "received", "--sizes", 1, "--sample", 2),
    "explain": ("explain", "received", "user30"),
    "report with an explanation": ("report", "received", "--explain", "user30"),
    "train from settings": ("train", "--settings", "received/settings.toml", "--out", "other"),
}
FUNCTIONS = {
    "certify_run": lambda **how: certify_run(CertifySettings(data="received", **how), report=False),
    "verify_named": lambda **how: verify_named(Path("received/certificate.cert"), CertifySettings(**how), 3),
    "audit_named": lambda **how: audit_named(CertifySettings(model="received"), **how),
    "attack_run": lambda **how: attack_run("received", AttackSettings(sizes="1", sample="2"), **how),
    "service_of_run": lambda **how: service_of_run(ServedRun("received", **how)).live.close(),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_no_command_runs_the_code_that_a_received_folder_names(command, agnncert, received) -> None:
    refused = agnncert(*COMMANDS[command])
    assert not MARKER.exists()
    assert refused.status == 2
    assert "--model mine:Net" in refused.err


@pytest.mark.parametrize("function", FUNCTIONS)
def test_no_function_runs_the_code_that_a_received_folder_names(function, received) -> None:
    with pytest.raises(AgnncertError, match="--model mine:Net"):
        FUNCTIONS[function]()
    assert not MARKER.exists()
    FUNCTIONS[function](model="mine:Net")
    assert MARKER.exists()


@pytest.mark.parametrize("command", ["report", "verify", "compare"])
def test_commands_that_need_no_model_run_none(command, agnncert, received) -> None:
    assert agnncert(command, received).status == 0
    assert not MARKER.exists()


def test_a_folder_whose_model_is_code_is_compared_with_its_graph_alone(agnncert, received) -> None:
    answer = agnncert("verify", received)
    assert "checked: the graph" in answer.out
    assert "The model was not checked." in answer.out
    for required, status in (("data", 0), ("model", 3), ("data,model", 3)):
        assert agnncert("verify", received, "--require", required).status == status
    assert not MARKER.exists()
    assert agnncert("verify", received, "--require", "data,model", "--model", "mine:Net").status == 0


@pytest.mark.parametrize("command", COMMANDS)
def test_naming_the_model_permits_its_code(command, agnncert, received) -> None:
    done = agnncert(*COMMANDS[command], "--model", "mine:Net")
    assert done.status == 0, done.err
    assert MARKER.exists()


@pytest.mark.parametrize("command", [name for name in COMMANDS if name != "train from settings"])
def test_the_model_that_the_caller_names_is_used_and_not_that_of_the_folder(command, agnncert, received) -> None:
    Path("review").mkdir()
    Path("review/mine.py").write_text(MODULE, encoding="utf-8")
    done = agnncert(*COMMANDS[command], "--model", "review/mine.py:Net")
    assert done.status == 0, done.err
    assert not MARKER.exists()


def test_a_model_that_does_not_fit_the_weights_of_the_folder_is_refused(agnncert, received) -> None:
    refused = agnncert(*COMMANDS["certify"], "--model", "gcn")
    assert refused.status == 2
    assert "do not fit" in refused.err
    assert not MARKER.exists()


REVIEWS = {
    "the folder": ("verify", "received"),
    "the folder as data": ("verify", "sent.cert", "--data", "received"),
    "data of the reviewer's own": ("verify", "received", "--data", "tables"),
}


@pytest.fixture
def review(received) -> Path:
    """What a reviewer has: the folder, the code and weights from elsewhere, and the certificate apart."""
    Path("review").mkdir()
    Path("review/mine.py").write_text(MODULE, encoding="utf-8")
    shutil.copy("received/weights.safetensors", "own.safetensors")
    shutil.copy("received/certificate.cert", "sent.cert")
    return received


@pytest.mark.parametrize("what", REVIEWS)
def test_a_reviewer_checks_a_folder_with_code_and_weights_of_their_own(what, agnncert, review) -> None:
    (review / "weights.safetensors").write_bytes(b"not to be read")
    words = (*REVIEWS[what], "--model", "review/mine.py:Net", "--weights", "own.safetensors", "--recheck", 3)
    answer = agnncert(*words)
    assert answer.status == 0, answer.err + answer.out
    assert "checked: 3 of them once more" in answer.out
    assert not MARKER.exists()


@pytest.mark.parametrize("what", REVIEWS)
def test_weights_of_another_model_refute(what, agnncert, review) -> None:
    import torch
    from safetensors.torch import load_file, save_file

    others = {name: torch.rand_like(value) for name, value in load_file("own.safetensors").items()}
    save_file(others, "own.safetensors")
    answer = agnncert(*REVIEWS[what], "--model", "review/mine.py:Net", "--weights", "own.safetensors")
    assert answer.status == 1
    assert "the model is not the one that was certified" in answer.out


def test_code_under_another_name_is_another_model_and_the_reason_says_so(agnncert, review) -> None:
    Path("review/mine.py").rename("renamed.py")
    answer = agnncert("verify", "received", "--model", "renamed.py:Net", "--weights", "own.safetensors")
    assert answer.status == 1
    assert "classes under other names of their modules" in answer.out


def test_weights_alone_do_not_permit_the_code_of_a_folder(agnncert, review) -> None:
    refused = agnncert("verify", "received", "--weights", "own.safetensors")
    assert refused.status == 2
    assert "--model mine:Net" in refused.err
    assert not MARKER.exists()
    assert agnncert("verify", "received", "--weights", "own.safetensors", "--model", "mine:Net").status == 0
    assert MARKER.exists()


def test_weights_of_ones_own_for_a_built_in_model_need_no_description(agnncert, plain) -> None:
    shutil.copy(plain / "weights.safetensors", "own.safetensors")
    answer = agnncert("verify", plain, "--weights", "own.safetensors", "--recheck", 2)
    assert answer.status == 0, answer.err
    answer = agnncert("verify", plain, "--weights", "own.safetensors", "--model", "gcn", "--recheck", 2)
    assert answer.status == 0, answer.err


def test_the_data_of_a_folder_with_code_can_be_compared_with_ones_own(agnncert, review) -> None:
    answer = agnncert("verify", "received", "--data", "tables")
    assert answer.status == 0, answer.err
    assert "checked: the graph" in answer.out
    assert not MARKER.exists()


def test_a_folder_that_was_made_here_needs_the_model_too(agnncert, own) -> None:
    for words in (
        ("certify", "own"),
        ("verify", "own", "--recheck", 2),
        ("attack", "own", "--sizes", 1, "--sample", 2),
    ):
        refused = agnncert(*words)
        assert refused.status == 2
        assert "--model mine:Net" in refused.err
        assert agnncert(*words, "--model", "mine:Net").status == 0


def test_altered_settings_are_not_imported(agnncert, own) -> None:
    file = own / "settings.toml"
    file.write_text(file.read_text(encoding="utf-8").replace("mine:Net", "subprocess:getoutput"), encoding="utf-8")
    refused = agnncert("verify", own, "--recheck", 1)
    assert refused.status == 2
    assert "subprocess:getoutput" in refused.err


@pytest.fixture
def plain(senders, place) -> Path:
    """A received folder with a built-in model, which needs no word."""
    shutil.copytree(senders / "plain", "received")
    return Path("received")


def test_a_folder_is_compared_with_the_graph_and_the_weights_in_it(agnncert, plain) -> None:
    answer = agnncert("verify", plain, "--require", "data,model")
    assert answer.status == 0, answer.err
    assert "The certificate holds for this graph and this model" in answer.out
    alone = agnncert("verify", plain / "certificate.cert", "--require", "data,model")
    assert alone.status == 3
    assert "The arithmetic of this file is consistent." in alone.out
    assert "required, but not checked: the data\n  required, but not checked: the model" in alone.out
    assert agnncert("verify", plain / "certificate.cert").status == 0
    assert agnncert("verify", plain, "--require", "dates").status == 2
    (plain / "certificate.cert").write_bytes(b"")
    assert agnncert("verify", plain, "--require", "data").status == 1


def test_built_in_models_need_no_word(agnncert, plain) -> None:
    assert agnncert("certify", plain).status == 0
    assert agnncert("verify", plain, "--recheck", 2).status == 0


@pytest.mark.parametrize("setting", ['nodes = "/etc/passwd"', 'data = "../secret"', 'edges = "../../secret.csv"'])
def test_a_received_folder_names_no_files_elsewhere(setting, agnncert, plain) -> None:
    shutil.rmtree(plain / "data")
    file, name = plain / "settings.toml", setting.split(" = ")[0]
    lines = [line for line in file.read_text(encoding="utf-8").splitlines() if not line.startswith(f"{name} =")]
    lines.insert(1, setting)
    file.write_text("\n".join(lines), encoding="utf-8")
    refused = agnncert("certify", plain)
    assert refused.status == 2
    assert "names files outside of it" in refused.err
    assert "--root" in refused.err


def test_data_outside_of_a_folder_is_read_if_the_caller_names_where_it_lies(agnncert, plain) -> None:
    (plain / "data").rename("outside")
    file = plain / "settings.toml"
    text = file.read_text(encoding="utf-8")
    file.write_text(text.replace('data = "tables"', 'data = "outside"'), encoding="utf-8")
    assert agnncert("certify", plain).status == 2
    assert agnncert("certify", plain, "--root", "elsewhere").status == 2
    done = agnncert("certify", plain, "--root", ".")
    assert done.status == 0, done.err


@pytest.mark.parametrize("name", ["data/nodes.csv", "weights.safetensors", "log.txt"])
def test_links_in_a_received_folder_are_not_followed(name, agnncert, plain) -> None:
    victim = Path("victim")
    victim.write_text("mine\n", encoding="utf-8")
    (plain / name).unlink()
    (plain / name).symlink_to(victim.resolve())
    for words in (("certify", plain), ("attack", plain, "--sizes", 1)):
        assert agnncert(*words).status == 2
    assert victim.read_text(encoding="utf-8") == "mine\n"


def test_the_folder_of_datasets_is_never_named_by_a_received_folder(agnncert, place) -> None:
    """Files below it may be pickles, so it counts only if it is typed."""
    done = agnncert("train", "digits-knn", "--epochs", 1, "--groups", 5, "--no-references", "--out", "digits")
    assert done.status == 0, done.err
    file = Path("digits/settings.toml")
    file.write_text(file.read_text(encoding="utf-8").replace("[train]", '[train]\nroot = "poisoned"'), encoding="utf-8")
    from agnncert.cli.folder import RunFolder
    from agnncert.cli.studies import study_of_run

    assert study_of_run(RunFolder("digits"))[0].root is None
    refused = agnncert("train", "--settings", file, "--out", "other")
    assert refused.status == 2
    assert "root = 'poisoned'" in refused.err


@pytest.mark.parametrize("what", ["an amount", "a table that cannot be read"])
def test_a_folder_with_an_altered_amount_is_refuted_and_junit_says_so(what, agnncert, plain) -> None:
    table = plain / "data" / "nodes.csv"
    lines = table.read_text(encoding="utf-8").splitlines()
    cells = lines[3].split(",")
    cells[2] = "7.25" if what == "an amount" else "seven"
    lines[3] = ",".join(cells)
    table.write_text("\n".join(lines) + "\n", encoding="utf-8")
    answer = agnncert("verify", plain, "--junit", "refuted.xml")
    assert answer.status == 1, answer.err
    assert "is not what the run was made from" in answer.out
    assert "begin a new run" not in answer.out + answer.err
    suite = ElementTree.parse("refuted.xml").getroot()
    assert suite.get("failures") == "1"
    assert "is not what the run was made from" in next(
        case.get("name") for case in suite if case.find("failure") is not None
    )
    assert agnncert("certify", plain).status == 2
