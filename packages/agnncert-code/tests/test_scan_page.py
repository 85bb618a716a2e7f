from dataclasses import replace
from html.parser import HTMLParser

from agnncert_code.page import MOST_LINES, lines_of, render_scan, visible, write_scan_page
from tests.support.scanned import HOSTILE, hostile_scan


class Elements(HTMLParser):
    """What a browser would make of the page: its elements, and the text outside of scripts and styles."""

    def __init__(self):
        super().__init__()
        self.elements, self.text, self.inside = [], [], ""

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        self.inside = tag

    def handle_endtag(self, tag):
        self.inside = ""

    def handle_data(self, data):
        if self.inside not in ("script", "style"):
            self.text.append(data)


def parsed(page):
    elements = Elements()
    elements.feed(page)
    return elements


def test_text_of_others_is_shown_and_does_nothing():
    page = parsed(render_scan(hostile_scan(), [f"runs/{HOSTILE}.cert"], HOSTILE))
    tags = [tag for tag, _ in page.elements]
    assert "img" not in tags
    assert tags.count("script") == 1
    assert not [name for _, attributes in page.elements for name in attributes if name.startswith("on")]
    text = "".join(page.text)
    assert text.count(HOSTILE) > 8
    assert "\u202e" not in "".join([text, *(value or "" for _, a in page.elements for value in a.values())])
    assert "⟨U+202E⟩" in text
    assert "\x1b" not in text


def test_nothing_is_loaded_and_only_the_own_script_runs():
    elements = parsed(render_scan(hostile_scan())).elements
    policy = next(a["content"] for tag, a in elements if a.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert [a for _, a in elements if "src" in a] == []
    assert all(a["href"].startswith("#") for tag, a in elements if "href" in a)


def test_each_line_tells_what_its_statements_voted():
    lines = lines_of(hostile_scan().functions[0], suspicious=1)
    assert [(line.number, line.look, line.mark) for line in lines] == [
        (1, "", ""), (2, "", ""), (3, "for", "●"), (4, "against", "○"), (5, "open", "?"), (6, "", ""),
    ]  # fmt: skip
    assert lines[2].title.startswith("for: puts")
    assert lines[3].title == "against, one vote with 1 other statements: a ⟨U+202E⟩ b"
    assert lines[4].title.startswith("too close to call")


def test_several_statements_of_a_line_are_counted():
    one = hostile_scan().functions[0]
    (line, *_) = lines_of(replace(one, spoke=tuple(replace(vote, line=1, stable=True) for vote in one.spoke)), 1)
    assert line.mark == "●2"


def test_links_lead_to_the_texts_that_are_shown(tmp_path):
    elements = parsed(write_scan_page(hostile_scan(), tmp_path / "x" / "page.html").read_text("utf-8")).elements
    ids = {a["id"] for _, a in elements if "id" in a}
    assert {a["href"][1:] for tag, a in elements if tag == "a"} <= ids
    assert "f0" in ids
    assert "f1" not in ids


def test_very_long_functions_are_cut():
    one = replace(hostile_scan().functions[0], source="a;\n" * (MOST_LINES + 50), last_line=MOST_LINES + 50)
    assert len(lines_of(one, 1)) == MOST_LINES
    assert f"The first {MOST_LINES} lines" in render_scan(replace(hostile_scan(), functions=(one,)))


def test_letters_of_all_languages_stay():
    assert visible("naïve 日本 é") == "naïve 日本 é"
