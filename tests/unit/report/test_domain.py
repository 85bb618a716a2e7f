"""Reports speak in the reader's words where they are set."""

import numpy as np
import pytest

from agnncert.errors import SettingsError
from agnncert.report.domain import check_words, in_domain
from agnncert.report.summary import ReportContext, summarise
from agnncert.report.text import beside, headline
from tests.support.certificates import certificate_of, random_evidence

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
