"""What is handed over with a certificate: who issued it, the statement to sign, the redacted form, JUnit."""

import base64
import hashlib
import json
import shutil
import subprocess
from pathlib import Path
from xml.etree import ElementTree

import pytest

import agnncert as ac
from agnncert.certificates.file import checked_issue
from agnncert.errors import CertificateError
from agnncert.storage import read_sealed, write_sealed
from tests.support.paths import PROJECT

ISSUE = ("--by", "Fraud team", "--system", "scoring 2.1", "--until", "2999-12-31")


@pytest.fixture
def issued(agnncert, certified) -> Path:
    answer = agnncert("issue", certified, *ISSUE)
    assert answer.status == 0, answer.err
    return certified / "issued"


def test_the_command_says_whether_data_and_model_were_verified(agnncert, certified, tmp_path) -> None:
    whole = agnncert("issue", certified, *ISSUE).out
    assert "Result:         PASSED, data and model were verified" in whole
    alone = agnncert("issue", certified / "certificate.cert", *ISSUE, "--out", tmp_path / "alone").out
    assert "Result:         WARNED, data or model were not verified: name the folder of the run" in alone


def read(folder: Path, name: str) -> dict:
    return json.loads((folder / name).read_text(encoding="utf-8"))


def test_a_certificate_states_who_issued_it_for_what_and_until_when(agnncert, issued) -> None:
    shown = agnncert("show", issued / "certificate.cert").out
    for line in ("Issued by: Fraud team", "Issued system: scoring 2.1", "Issued until: 2999-12-31", "Issued on: 20"):
        assert line in shown
    certificate = ac.load_certificate(issued / "certificate.cert")
    assert certificate.issued["by"] == "Fraud team"
    certificate.save(issued / "again.cert")
    assert ac.load_certificate(issued / "again.cert").issued == certificate.issued
    verdict = ac.verify(issued / "again.cert")
    assert verdict
    assert not verdict.warnings
    assert "who issued the file: verify a signature of it" in verdict.not_checked


def test_classes_have_their_names_in_the_file_and_in_what_commands_say(agnncert, issued, certified) -> None:
    assert ac.load_certificate(issued / "certificate.cert").class_names == ("cat", "dog")
    assert "Classes: 0 is cat, 1 is dog." in agnncert("show", issued / "certificate.cert").out
    asked = agnncert("show", issued / "certificate.cert", "--budget", "add_edges=1").out
    assert "cannot get the label “dog”." in asked
    assert " cat" in agnncert("verify", issued / "certificate.cert").out
    statement = read(issued, "certificate.statement.json")
    assert statement["predicate"]["configuration"][0]["annotations"]["class_names"] == ["cat", "dog"]
    names = json.loads(agnncert("show", certified, "--json").out)["class_names"]
    assert names == ["cat", "dog"]


def test_what_is_stated_cannot_be_changed_unnoticed(issued) -> None:
    file = issued / "certificate.cert"
    file.write_bytes(file.read_bytes().replace(b"2999-12-31", b"2998-12-31"))
    assert "was altered" in str(ac.verify(file))


@pytest.mark.parametrize(
    "issue",
    [{}, {"who": "me"}, {"by": ""}, {"by": "a\nb"}, {"by": 7}, {"by": "x" * 201}, {"until": "soon"},
     {"until": "20270101"}, {"on": "2027-01-02", "until": "2027-01-01"}, "me"],
)  # fmt: skip
def test_senseless_statements_are_refused_when_written_and_when_read(certified, issue) -> None:
    with pytest.raises(CertificateError, match="issued"):
        checked_issue(issue)
    file = certified / "certificate.cert"
    header, arrays = read_sealed(file, "agnncert-certificate", 1)
    write_sealed(file, header | {"issued": issue}, arrays)
    (reason,) = ac.verify(file).reasons
    assert "issued" in reason or "control characters" in reason


def test_an_expired_certificate_holds_with_a_warning(agnncert, certified) -> None:
    certificate = ac.load_certificate(certified / "certificate.cert")
    certificate.save("old.cert", issued={"on": "2020-01-01", "until": "2020-12-31"})
    certificate.save("young.cert", issued={"on": "2999-01-01"})
    answer = agnncert("verify", "old.cert")
    assert (answer.status, "warning: it was issued until 2020-12-31" in answer.out) == (0, True)
    assert "has not come yet" in str(ac.verify("young.cert"))
    assert agnncert("verify", "old.cert", "--require", "date").status == 3
    assert agnncert("verify", certified / "certificate.cert", "--require", "date").status == 0


def test_the_statement_is_an_in_toto_test_result_about_these_files(issued, certified) -> None:
    statement = read(issued, "certificate.statement.json")
    assert statement["_type"] == "https://in-toto.io/Statement/v1"
    assert statement["predicateType"] == "https://in-toto.io/attestation/test-result/v0.1"
    assert {each["name"]: each["digest"]["sha256"] for each in statement["subject"]} == {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in (
            issued / "certificate.cert",
            issued / "certificate.redacted.json",
            certified / "weights.safetensors",
        )
    }
    predicate = statement["predicate"]
    assert predicate["result"] == "PASSED"
    assert predicate["failedTests"] == []
    assert any(test.startswith("the model, and all") for test in predicate["passedTests"])
    claim = json.loads(base64.b64decode(predicate["configuration"][0]["content"]))
    assert claim == ac.load_certificate(issued / "certificate.cert").claim.to_json()
    assert all({"uri", "digest", "content"} & set(one) for one in predicate["configuration"])


def test_a_file_alone_is_issued_with_warnings_and_a_forged_one_is_not(agnncert, certified) -> None:
    shutil.copy(certified / "certificate.cert", "alone.cert")
    assert agnncert("issue", "alone.cert").status == 0
    assert read(Path("issued"), "alone.statement.json")["predicate"]["result"] == "WARNED"
    header, arrays = read_sealed(Path("alone.cert"), "agnncert-certificate", 1)
    write_sealed(Path("alone.cert"), header, arrays | {"radius": arrays["radius"] + 1})
    answer = agnncert("issue", "alone.cert", "--out", "other")
    assert (answer.status, "is not issued" in answer.err) == (2, True)
    assert list(Path("other").iterdir()) == []


def test_a_redacted_form_that_claims_more_than_the_certificate_is_not_the_signed_one(issued) -> None:
    honest = issued / "certificate.redacted.json"
    forged = json.loads(honest.read_text(encoding="utf-8"))
    forged["curves"]["all"] = [[size, 1.0] for size, _ in forged["curves"]["all"]]
    text = json.dumps(forged, indent=2, ensure_ascii=False) + "\n"
    assert forged["certificate_sha256"] == hashlib.sha256((issued / "certificate.cert").read_bytes()).hexdigest()
    signed = {each["digest"]["sha256"] for each in read(issued, "certificate.statement.json")["subject"]}
    assert hashlib.sha256(honest.read_bytes()).hexdigest() in signed
    assert hashlib.sha256(text.encode()).hexdigest() not in signed


def test_the_redacted_form_has_curves_and_names_no_target(issued) -> None:
    text = (issued / "certificate.redacted.json").read_text(encoding="utf-8")
    form, certificate = json.loads(text), ac.load_certificate(issued / "certificate.cert")
    assert not any(str(target) in text for target in certificate)
    assert form["certificate_sha256"] == hashlib.sha256((issued / "certificate.cert").read_bytes()).hexdigest()
    for size, share in form["curves"]["all"]:
        assert share == pytest.approx(certificate.measures(size).accuracy)
    assert form["class_names"] == ["cat", "dog"]
    for size, share in form["curves"]["recall of class 1 (dog)"]:
        assert share == pytest.approx(certificate.measures(size).recall[1])


def test_junit_says_what_passed_failed_and_was_not_checked(agnncert, certified) -> None:
    file = certified / "certificate.cert"
    assert agnncert("verify", file, "--junit", "good.xml", "--require", "model").status == 3
    suite = ElementTree.parse("good.xml").getroot()
    verdict = ac.verify(file)
    assert suite.get("failures") == "1"
    assert [case.get("name") for case in suite if len(case) == 0] == list(verdict.checked)
    assert int(suite.get("skipped")) == len(verdict.not_checked)
    file.write_bytes(file.read_bytes()[:-1])
    assert agnncert("verify", file, "--junit", "bad.xml").status == 1
    assert [case.find("failure") is not None for case in ElementTree.parse("bad.xml").getroot()] == [True]


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl")
def test_the_statement_is_signed_and_verified_by_openssl_as_the_guide_says(issued) -> None:
    guide = (PROJECT / "docs/guides/hand-over.md").read_text(encoding="utf-8")
    commands = [line.removeprefix("$ ") for line in guide.splitlines() if line.startswith("$ openssl")]
    assert len(commands) == 4
    for command in commands:
        done = subprocess.run(command, shell=True, cwd=issued, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    assert "Verified" in done.stdout
    (issued / "certificate.statement.json").write_text("{}")
    altered = subprocess.run(commands[-1], shell=True, cwd=issued, capture_output=True, text=True, check=False)
    assert altered.returncode != 0


def test_the_four_headings_of_a_validator_say_what_the_folder_holds_and_what_it_does_not(agnncert, certified) -> None:
    assert agnncert("issue", certified, *ISSUE).status == 0
    text = (certified / "issued" / "VALIDATION.md").read_text(encoding="utf-8")
    titles = [line.removeprefix("## ") for line in text.splitlines() if line.startswith("## ")]
    assert titles == ["Soundness", "Outcomes", "Monitoring", "Independent challenge"]
    certificate = ac.load_certificate(certified / "certificate.cert")
    assert all(f"- {sentence}" in text for sentence in certificate.claim.assumes)
    assert "Valid until 2999-12-31." in text
    for absent in ("a rate that the threshold was chosen for", "a backtest", "an attack", "other models"):
        assert f"Not in this folder: {absent}" in text
    assert "- the model, and all" in text
    assert agnncert("attack", certified, "--sizes", 1, "--sample", 4).status == 0
    period = {"until": "2026-01-01", "to": "2026-02-01", "model": "the first", "alerts": 1200}
    period |= {"false_positive_rate": 0.034, "recall": 0.75, "certified_recall": 0.5}
    found = {"periods": [period], "alarms": [{"to": "2026-02-01", "rate": "alerts"}]}
    (certified / "backtest.json").write_text(json.dumps(found), encoding="utf-8")
    assert agnncert("issue", certified, *ISSUE[:4]).status == 0
    text = (certified / "issued" / "VALIDATION.md").read_text(encoding="utf-8")
    assert "1,200" in text
    assert "0.034" in text
    assert "Alarms: alerts in the period until 2026-02-01." in text
    assert "accuracy under attack" in text
    assert "Not in this folder: a last day of use" in text
    for there in ("a backtest", "an attack"):
        assert f"Not in this folder: {there}" not in text
    (certified / "backtest.json").write_text('{"periods": [{}], "alarms": []}', encoding="utf-8")
    assert "is no backtest" in agnncert("issue", certified, *ISSUE).err
