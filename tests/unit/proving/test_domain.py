"""Reports speak in the reader's words where they are set."""

import html
import json
import re

import numpy as np
import pytest

from agnncert.controls.table import Control
from agnncert.errors import SettingsError
from agnncert.explanation import Arrival, Given, Removal, VoteExplanation, Voter
from agnncert.proving.domain import check_words, glossary, in_domain
from agnncert.report.page import build_report, page_data
from agnncert.report.summary import ReportContext, summarise
from agnncert.report.text import beside, headline
from tests.support.certificates import certificate_of, random_evidence
from tests.support.stacked_records import random_stacked, stacked_certificate
from tests.support.synthetic import made_up_certificate

WORDS = {"edge": "payment", "node": "account", "neighbour": "partner"}


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("changes any 3 edges or other nodes", "changes any 3 payments or other accounts"),
        ("An edge, and a node.", "A payment, and an account."),
        ("Edges have no vote.", "Payments have no vote."),
        ("add_edges=3 of knowledge", "add_edges=3 of knowledge"),
    ],
)
def test_whole_words_are_replaced_with_their_articles_and_plurals(sentence, expected):
    assert in_domain(sentence, WORDS) == expected
    assert in_domain(sentence, {}) == sentence


@pytest.mark.parametrize("words", [{"vote": "ballot"}, {"edge": ""}, {"edge": "a\nb"}, {"edge": 3}])
def test_other_words_are_refused(words):
    with pytest.raises(SettingsError, match="words"):
        check_words(words)
    with pytest.raises(SettingsError, match="words"):
        ReportContext(words=words)


def test_the_main_sentences_use_them():
    rng = np.random.default_rng(0)
    certificate = certificate_of(random_evidence(rng, "edge-centric/node"), truth=rng.integers(0, 3, 30))
    plain = summarise(certificate, None)
    told = summarise(certificate, ReportContext(words=WORDS))
    assert headline(told) == in_domain(headline(plain), WORDS)
    assert "edge" not in headline(told)
    assert beside(told) == [in_domain(sentence, WORDS) for sentence in beside(plain)]


FORMAL = re.compile(r"\b(nodes?|edges?|neighbours?)\b", re.IGNORECASE)
QUOTED = ("covers", "assumes", "not_proved")  # the certificate's own sentences


def seen_texts(page: str) -> str:
    """What a reader sees without scripts, without code and the sentences that are quoted from the certificate."""
    body = page[page.index("<body>") : page.index('<section id="check"')]
    body = re.sub(r"<(code|pre)\b.*?</\1>", " ", body, flags=re.DOTALL)
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", body)).split())


@pytest.mark.parametrize("make", ["per-neighbour/node", "node-centric/node", "stacked"])
def test_a_page_says_them_everywhere_but_where_it_quotes_the_certificate(make, tmp_path):
    rng = np.random.default_rng(0)
    if make == "stacked":
        certificate = stacked_certificate(random_stacked(rng, "mean by edge", num_targets=30))
        degree = certificate.evidence.degree
    else:
        certificate, degree = made_up_certificate(rng, make, 30, 12, 3)
    truth = np.where(rng.random(30) < 0.8, certificate.label, 0)
    control = Control("MLP, no graph", label=certificate.label, reads_graph=False)
    context = ReportContext(truth=truth, degree=degree, words=WORDS, controls=[control])
    page = build_report(certificate, tmp_path / "page.html", context=context).read_text("utf-8")
    text = seen_texts(page)
    for name in QUOTED:
        for sentence in getattr(certificate.claim, name):
            text = text.replace(" ".join(sentence.split()), " ")
    for quoted in (glossary(WORDS), certificate.claim.division or certificate.claim.method, "per-neighbour"):
        text = text.replace(quoted, " ")
    left = [text[max(0, found.start() - 40) : found.end() + 20] for found in FORMAL.finditer(text)]
    assert left == []
    assert glossary(WORDS) in html.unescape(page), "the quoted words are explained"
    meta, _ = page_data(summarise(certificate, context))
    said = {
        name: meta[name] for name in ("presets", "withstood", "target_title", "neighbours_title", "radius_sentence")
    }
    assert not FORMAL.search(json.dumps([entry.get("name", "") for entry in said["presets"] + said["withstood"]]))
    assert said["target_title"] == "Account"
    assert FORMAL.search((meta["charts"]["degree"] or {"ceiling": ""})["ceiling"]) is None
    assert all(FORMAL.search(sentence) is None for sentence in (said["radius_sentence"], said["neighbours_title"]))


def test_the_signed_claim_keeps_its_words(tmp_path):
    certificate, _ = made_up_certificate(np.random.default_rng(0), "node-centric/node", 30, 12, 3)
    before = certificate.claim
    page = build_report(certificate, tmp_path / "p.html", context=ReportContext(words=WORDS)).read_text("utf-8")
    assert certificate.claim == before
    plain = html.unescape(page)
    for sentence in (*before.covers, *before.assumes, *before.not_proved):
        assert sentence in plain


def test_an_id_that_looks_like_a_word_stays_an_id():
    voter = Voter("neighbour node 7", (), (("node 7", "edge"),), (1, 0))
    explanation = VoteExplanation(
        "edge", "d", 0, (1, 0), 1, (1, 0), (Given("votes without any edge", (0, 0)),), (voter,),
        removal=Removal((("node 7", "edge"),), ("neighbour node 7",), 1),
        arrivals=(Arrival(1, 2, "new neighbours that give it their whole vote"),), words=WORDS,
    )  # fmt: skip
    rows = explanation.rows()
    assert [row[0] for row in rows[:2]] == ["votes without any payment", "partner node 7"]
    first, second = explanation.sentences()
    assert first == "Without this payment the label is class 1: node 7 – edge."
    assert "2 new partners that give it their whole vote" in second
