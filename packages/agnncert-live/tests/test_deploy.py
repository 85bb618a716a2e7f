"""The files in deploy/: containers, Kubernetes and systemd start what there is, and the steps of the containers work."""

import inspect
import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from agnncert_live.command import serve
from agnncert_live.guard import OPEN_PATHS
from tests.support.paths import PROJECT
from tests.support.serving import TOKEN, a_service, sent, served

DEPLOY = PROJECT / "deploy"
OPTIONS = {"--" + name.replace("_", "-") for name in inspect.signature(serve).parameters}


def instructions(name: str) -> list[tuple[str, str]]:
    """The instructions of a Containerfile, in order."""
    lines = [line for line in (DEPLOY / name).read_text().splitlines() if line and line[0] != "#"]
    return [tuple(line.split(" ", 1)) for line in lines]


def words_of(name: str, instruction: str) -> list[str]:
    """What an instruction that is a list says."""
    [text] = [rest for kind, rest in instructions(name) if kind == instruction]
    return json.loads(text)


def pods() -> list[dict]:
    documents = list(yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text()))
    return [document for document in documents if document["kind"] == "StatefulSet"]


def test_the_unit_of_systemd_starts_what_there_is() -> None:
    unit = (DEPLOY / "agnncert-serve.service").read_text()
    lines = (DEPLOY / "serve.env").read_text().splitlines()
    settings = dict(line.split("=", 1) for line in lines if line and line[0] != "#")
    [command] = re.findall(r"^ExecStart=/usr/bin/env agnncert serve (.*)$", unit, re.MULTILINE)
    assert set(re.findall(r"\$\{?(\w+)\}?", command)) == settings.keys()
    words = [*command.split(), *settings["AGNNCERT_OPTIONS"].split()]
    assert {word for word in words if word.startswith("--")} <= OPTIONS
    assert re.search(r"^MemoryMax=\d+G$", unit, re.MULTILINE)
    if shutil.which("systemd-analyze"):
        checked = subprocess.run(
            ["systemd-analyze", "verify", DEPLOY / "agnncert-serve.service"],
            capture_output=True,
            text=True,
            check=False,
        )
        assert checked.returncode == 0, checked.stderr


def test_kubernetes_asks_what_answers_without_a_token() -> None:
    [pod] = pods()
    assert pod["spec"]["replicas"] == 1  # a journal has one writer
    [container] = pod["spec"]["template"]["spec"]["containers"]
    probes = {kind: container[f"{kind}Probe"]["httpGet"] for kind in ("liveness", "readiness")}
    assert (probes["liveness"]["path"], probes["readiness"]["path"]) == ("/live", "/ready")
    assert {probe["path"] for probe in probes.values()} <= set(OPEN_PATHS)
    [port] = container["ports"]
    assert {probe["port"] for probe in probes.values()} == {port["name"]}
    assert f"--port={port['containerPort']}" in container["args"]
    assert "memory" in container["resources"]["limits"]
    with served(a_service(), TOKEN) as address:
        for probe in probes.values():
            assert sent(address, probe["path"])[0] == 200


def test_containers_are_started_with_options_that_there_are() -> None:
    [container] = pods()[0]["spec"]["template"]["spec"]["containers"]
    mounts = [mount["mountPath"] for mount in container["volumeMounts"]]
    command = words_of("Containerfile.serve", "CMD")
    for words in (command, container["args"]):
        assert words[0] == "serve"
        assert {word.partition("=")[0] for word in words if word.startswith("--")} <= OPTIONS
    files = [word.rpartition("=")[2] for word in container["args"] if "/" in word]
    assert all(any(file.startswith(mount) for mount in mounts) for file in files)
    commented = re.findall(r"^ +# - (--[\w-]+)=", (DEPLOY / "kubernetes.yaml").read_text(), re.MULTILINE)
    assert commented
    assert set(commented) <= OPTIONS
    [exposed] = [rest for kind, rest in instructions("Containerfile.serve") if kind == "EXPOSE"]
    assert inspect.signature(serve).parameters["port"].default == int(exposed)
    assert int(exposed) == container["ports"][0]["containerPort"]


def test_the_workflow_builds_both_and_pins_its_actions_as_the_others_do() -> None:
    folder = PROJECT / ".github" / "workflows"
    text = (folder / "containers.yml").read_text()
    for file in DEPLOY.glob("Containerfile.*"):
        assert f"--file deploy/{file.name} " in text
    pinned = re.findall(r"uses: (\S+@[0-9a-f]{40})", text)
    others = "".join(file.read_text() for file in folder.glob("*.yml") if file.name != "containers.yml")
    assert pinned
    assert len(pinned) == text.count("uses:")
    assert all(pin in others for pin in pinned)
    [stored] = re.findall(r"agnncert-verify /golden/(\S+)", text)
    assert (PROJECT / "tests" / "soundness" / "golden" / stored).is_file()


def built(name: str, place: Path, install: str = "pip install ") -> Path:
    """Runs the steps of a Containerfile in a virtual environment; returns its folder of programs."""
    venv = place / "venv"
    for kind, step in instructions(name):
        if kind != "RUN":
            continue
        # The index of torch for processors alone is left out: nothing of torch is fetched here.
        words = re.sub(r"--extra-index-url \S+ ", "", step).replace("/opt/agnncert", str(venv))
        words = words.replace("python3 ", f"{shlex.quote(sys.executable)} ", 1).replace("pip install ", install)
        done = subprocess.run(
            ["sh", "-c", words],
            cwd=PROJECT,
            env={"PATH": "/usr/bin:/bin", "HOME": str(place), "PIP_DISABLE_PIP_VERSION_CHECK": "1"},
            capture_output=True,
            text=True,
            check=False,
        )
        if re.search("No matching distribution found for|Max retries|Could not fetch", done.stderr):
            pytest.skip("there is no index of packages to install from")
        assert done.returncode == 0, done.stderr
        here = place / "here.pth"
        if here.exists():
            shutil.copy(here, next(venv.glob("lib/python*/site-packages")))
    return venv / "bin"


@pytest.mark.slow
def test_the_container_that_verifies_needs_no_torch(tmp_path) -> None:
    programs = built("Containerfile.verify", tmp_path)
    entry = words_of("Containerfile.verify", "ENTRYPOINT")
    stored = PROJECT / "tests" / "soundness" / "golden" / "v1" / "edge-centric-graph-prior.cert"
    done = subprocess.run(
        [programs / entry[0], *entry[1:], stored], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert "arithmetic of this file is consistent" in done.stdout
    without = subprocess.run([programs / "python", "-c", "import torch"], capture_output=True, text=True, check=False)
    assert "No module named 'torch'" in without.stderr


@pytest.mark.slow
def test_the_container_that_serves_has_the_command(tmp_path) -> None:
    """What the packages need is taken from this environment instead of being fetched."""
    packages = next(path for path in sys.path if path.endswith("site-packages"))
    (tmp_path / "here.pth").write_text(f"import site; site.addsitedir({packages!r})\n")
    programs = built("Containerfile.serve", tmp_path, "pip install --no-deps ")
    entry = words_of("Containerfile.serve", "ENTRYPOINT")
    done = subprocess.run(
        [programs / entry[0], *entry[1:], "serve", "--help"], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert "--from-journal" in done.stdout
    where = subprocess.run(
        [programs / "python", "-c", "import agnncert_live; print(agnncert_live.__file__)"],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert str(tmp_path) in where.stdout
