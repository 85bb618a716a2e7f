"""Notes of an author never look like something that was proved or checked."""

from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest

from agnncert.certificates.claim import LONGEST_NOTE, NOTE_WIDTH, NOTES_TITLE
from agnncert.errors import CertificateError
from agnncert.proving.certificate import load_certificate
from agnncert.report.page import build_report
from agnncert.verdict import verify
from tests.support.certificates import certificate_of, random_evidence

IMITATION = "Covers the target's own features too"
HOSTILE = {
    "a statement": f"{IMITATION}.",
    "new lines": f"Made by us.\nCovered:\n  - {IMITATION}.\r\n  - All of it.",
    "markup": f"</blockquote></aside><h2>Covered</h2><ul><li>{IMITATION}</li></ul><script>alert(1)</script>",
    "commands to a terminal": f"\x1b[2K\x1b[1ACovered:\x1b[0m {IMITATION}\u202e\u2028Covered:",
    "spaces up to the next line": "x" + " " * 300 + f"Covered: {IMITATION}",
    "nothing but spaces": " " * 50,
    "very long": f"{'word ' * 3_000}{IMITATION}",
}


@pytest.fixture(params=HOSTILE, ids=str)
def noted(request):
    certificate = certificate_of(random_evidence(np.random.default_rng(1), "edge-centric/node"))
    return replace(certificate, claim=replace(certificate.claim, notes=(HOSTILE[request.param],)))


def test_in_print_every_line_of_a_note_is_quoted_under_a_heading_of_its_own(noted):
    plain = str(replace(noted, claim=replace(noted.claim, notes=()))).split("\n")
    lines = str(noted).split("\n")
    assert lines[: len(plain)] == plain  # what is proved comes first, and is what it is without notes
    heading, *quoted = lines[len(plain) :]
    assert heading == f"{NOTES_TITLE}:"
    assert quoted
    for line in quoted:
        assert line.startswith("  > ")
        assert line.isprintable()
        assert len(line) <= NOTE_WIDTH + 4
    assert sum(map(len, quoted)) < LONGEST_NOTE + 200


class Page(HTMLParser):
    """Collects the texts of a page inside and outside the notes, and which elements the notes have."""

    def __init__(self, text):
        super().__init__()
        self.inside = self.outside = ""
        self.open, self.elements = [], set()
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        if tag == "aside" and ("class", "notes small") in attrs:
            self.open = ["aside"]
        elif self.open:
            self.elements.add(tag)
            self.open.append(tag)

    def handle_endtag(self, tag):
        if self.open:
            assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open:
            self.inside += data
        else:
            self.outside += data


def test_in_the_page_a_note_stays_within_the_words_of_the_author(noted, tmp_path):
    page = Page(build_report(noted, tmp_path / "page.html").read_text("utf-8"))
    assert page.elements <= {"p", "blockquote", "bdi"}
    assert f"{NOTES_TITLE}:" in page.inside
    assert " ".join(noted.claim.quoted_notes) in page.inside
    assert IMITATION not in page.outside


def test_a_verdict_says_that_notes_are_not_checked_and_no_part_of_what_is_proved(noted, tmp_path):
    noted.save(tmp_path / "noted.cert")
    verdict = verify(tmp_path / "noted.cert")
    assert IMITATION not in str(verdict) or not verdict.holds
    if verdict.holds:
        assert (
            "the notes that the author added to the claim, which are no part of what is proved" in verdict.not_checked
        )


@pytest.mark.parametrize("name", ["new lines", "commands to a terminal"])
def test_a_file_with_commands_in_a_note_is_not_loaded(name, tmp_path):
    certificate = certificate_of(random_evidence(np.random.default_rng(1), "edge-centric/node"))
    replace(certificate, claim=replace(certificate.claim, notes=(HOSTILE[name],))).save(tmp_path / "noted.cert")
    with pytest.raises(CertificateError, match="control characters"):
        load_certificate(tmp_path / "noted.cert")
