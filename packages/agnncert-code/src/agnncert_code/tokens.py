"""A statement's normalised text: its tokens, one space between them, without comments.

Ids and features of a statement depend on this text alone, so this module needs no parser.
"""

import re
from collections.abc import Iterable
from functools import lru_cache

_TOKEN = re.compile(
    r"""\s*+([^\W\d][\w$]*+(?!["'])                                # a word that begins no string; most are
    |//(?:\\\r?\n|[^\n])*|/\*.*?\*/                                # comment
    |\\\r?\n                                                      # a line that goes on
    |(?:u8|[uUL])?R"(?P<mark>[^()\\\s]{0,16})\(.*?\)(?P=mark)"      # raw string
    |(?:u8|[uUL])?"(?:\\.|[^"\\\n])*"
    |(?:u8|[uUL])?'(?:\\.|[^'\\\n])*'
    |[^\W\d][\w$]*
    |\.?\d(?:[eEpP][+-]|'?[\w.])*
    |\.\.\.|<<=|>>=|<=>|->\*|\#\#|\+\+|--|->|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|::|\.\*
    |\S)""",
    re.VERBOSE | re.DOTALL,
)
_IGNORED = ("//", "/*", "\\\n", "\\\r")
_WORD = re.compile(r"[^\W\d][\w$]*")

_TYPES = ("auto", "bool", "char", "double", "float", "int", "long", "short", "signed", "unsigned", "void", "wchar_t")
_QUALIFIERS = ("const", "constexpr", "extern", "inline", "mutable", "register", "restrict", "static", "volatile")
_CONTROL = ("break", "case", "continue", "default", "do", "else", "for", "goto", "if", "return", "switch", "while")
_EXCEPTIONS = ("catch", "noexcept", "throw", "try")
_KINDS = ("class", "enum", "namespace", "struct", "typedef", "typename", "union", "using", "template")
_VALUES = ("NULL", "false", "nullptr", "this", "true")
_OPERATORS = ("alignof", "and", "decltype", "delete", "new", "not", "operator", "or", "sizeof", "typeid")
_CASTS = ("const_cast", "dynamic_cast", "reinterpret_cast", "static_cast")
_MEMBERS = ("explicit", "final", "friend", "override", "private", "protected", "public", "virtual")
_OTHERS = ("alignas", "asm", "export", "static_assert", "__attribute__", "__inline", "__restrict")
KEYWORDS = frozenset(
    {*_TYPES, *_QUALIFIERS, *_CONTROL, *_EXCEPTIONS, *_KINDS, *_VALUES, *_OPERATORS, *_CASTS, *_MEMBERS, *_OTHERS}
)


def tokens(text: str) -> list[str]:
    """Returns the tokens of a piece of C or C++, comments and joined lines left out.

    Example:
        >>> tokens("x->n += f(1.5e-3, 'a'); // why")
        ['x', '->', 'n', '+=', 'f', '(', '1.5e-3', ',', "'a'", ')', ';']
    """
    return [token for token, _ in _TOKEN.findall(text) if not token.startswith(_IGNORED)]


@lru_cache(maxsize=1 << 16)
def normalised(text: str) -> str:
    """Returns the text with one space between tokens and without comments.

    Two statements are equal if these texts are.

    Example:
        >>> normalised("if(a  /* b */ <\\tb)")
        'if ( a < b )'
    """
    return " ".join(tokens(text))


def is_name(token: str) -> bool:
    """Returns whether a token is an identifier: a word that is no keyword.

    Example:
        >>> [is_name(token) for token in ("buf", "while", "7")]
        [True, False, False]
    """
    return token not in KEYWORDS and _WORD.fullmatch(token) is not None


def numbered(texts: Iterable[str]) -> list[str]:
    """Returns ids: each text with its running number among equal texts.

    The ids of a list depend on how often each text occurs, not on where: a text that occurs m times has the ids
    numbered 1 to m. So one text more or less is one id more or less, wherever it stands.

    Example:
        >>> numbered(["i ++ ;", "f ( ) ;", "i ++ ;"])
        ['#1 i ++ ;', '#1 f ( ) ;', '#2 i ++ ;']
    """
    seen: dict[str, int] = {}
    ids = []
    for text in texts:
        seen[text] = seen.get(text, 0) + 1
        ids.append(f"#{seen[text]} {text}")
    return ids
