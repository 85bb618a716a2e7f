"""Words of the reader's domain in the sentences of a report: "payment partner" for an edge, "account" for a node."""

import re
from collections.abc import Mapping

from agnncert.errors import SettingsError

KNOWN = ("node", "edge", "neighbour")
_WORD = re.compile(rf"\b(?P<article>[Aa]n? )?(?P<word>{'|'.join(KNOWN)})(?P<many>s?)\b", re.IGNORECASE)


def check_words(words: Mapping[str, str]) -> None:
    """Refuses words for other things than nodes, edges and neighbours, and words that are no short line of text.

    Raises:
        SettingsError: There is such a word.
    """
    for name, word in words.items():
        if name not in KNOWN:
            raise SettingsError(f'words has "{name}": expected some of {", ".join(KNOWN)}.')
        if not isinstance(word, str) or not 0 < len(word) <= 60 or not word.isprintable():
            raise SettingsError(f"words.{name} is {word!r:.80}: expected a word or two, in the singular.")


def in_domain(sentence: str, words: Mapping[str, str]) -> str:
    """Returns a sentence with words of the reader's domain. Plurals get an "s", and articles follow.

    Example:
        >>> in_domain("An edge joins two nodes.", {"edge": "payment", "node": "account"})
        'A payment joins two accounts.'
    """

    def replaced(match: re.Match[str]) -> str:
        word = words.get(match["word"].lower())
        if word is None:
            return match[0]
        if match["article"]:
            article = _article(word)
            return f"{article.capitalize() if match['article'][0] == 'A' else article} {word}{match['many']}"
        if match["word"][0].isupper():
            word = word[0].upper() + word[1:]
        return word + match["many"]

    return _WORD.sub(replaced, sentence) if words else sentence


def name_in_domain(name: str, words: Mapping[str, str]) -> str:
    """Returns a name such as "neighbour ann" with the first word in the reader's domain. What follows is an id.

    Example:
        >>> name_in_domain("neighbour node 7", {"neighbour": "payment partner", "node": "account"})
        'payment partner node 7'
    """
    first, space, rest = name.partition(" ")
    return f"{in_domain(first, words)}{space}{rest}"


def title_in_domain(name: str, words: Mapping[str, str]) -> str:
    """Returns the name of a column, such as ``new_neighbours``, in the reader's domain.

    Example:
        >>> title_in_domain("new_neighbours", {"neighbour": "payment partner"})
        'new_payment_partners'
    """
    return re.sub(r"\W+", "_", in_domain(name.replace("_", " "), words))


def glossary(words: Mapping[str, str]) -> str:
    """Returns a sentence that says what the formal words mean here, empty if there are no others.

    Example:
        >>> glossary({"edge": "payment", "node": "account"})
        'In it a node is an account, and an edge is a payment.'
    """
    said = [in_domain_of(name, words[name]) for name in KNOWN if name in words]
    if not said:
        return ""
    return f"In it {', and '.join(said)}."


def in_domain_of(name: str, word: str) -> str:
    """Returns "a node is an account"."""
    return f"{_article(name)} {name} is {_article(word)} {word}"


def _article(word: str) -> str:
    return "an" if word[0].lower() in "aeiou" else "a"
