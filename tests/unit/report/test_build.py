"""The page as text: escaped, complete in itself, readable in both colour schemes."""

import base64
import hashlib
import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

import agnncert.report.page as build
from agnncert.errors import SettingsError
from agnncert.report.page import build_report
from agnncert.report.summary import ReportContext
from tests.support.synthetic import made_up_certificate, sampled_certificate

ASSETS = Path(build.__file__).parent / "assets"


def page_of(tmp_path: Path, theorem: str = "edge-centric/node", **context: object) -> str:
    certificate, _ = made_up_certificate(np.random.default_rng(0), theorem, 20, 20, 3)
    return build_report(certificate, tmp_path / "new" / "page.html", context=ReportContext(**context)).read_text(
        "utf-8"
    )


def test_the_page_names_no_place_on_the_network(tmp_path: Path) -> None:
    page = page_of(tmp_path)
    addresses = set(re.findall(r"https?://[^\s\"'`<)]+", page))
    assert all(address.startswith("http://www.w3.org/") for address in addresses), addresses  # names of XML, not places
    assert not re.search(r"""\b(src|href)=["'](?!#)""", page)


def test_only_the_script_of_the_page_may_run(tmp_path: Path) -> None:
    page = page_of(tmp_path)
    allowed = re.search(r"script-src &#39;sha256-([^&]+)&#39;", page).group(1)
    script = page[page.rindex("<script>") + len("<script>") : page.rindex("</script>")]
    assert base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() == allowed


def test_scripts_write_text_never_markup() -> None:
    for file in ASSETS.glob("*.js"):
        assert not re.search(
            r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(", file.read_text("utf-8")
        ), file


def test_no_asset_ends_the_element_it_is_put_into() -> None:
    scripts = [file.read_text("utf-8") for file in (*ASSETS.glob("*.js"), *(ASSETS.parent / "vendor").glob("*.js"))]
    assert not [text for text in scripts if "</script" in text.lower()]
    assert "</style" not in (ASSETS / "style.css").read_text("utf-8").lower()


def test_every_element_is_closed(tmp_path: Path) -> None:
    class Nesting(HTMLParser):
        empty = frozenset({"meta", "input", "link", "br", "hr", "img"})

        def __init__(self) -> None:
            super().__init__()
            self.open: list[str] = []
            self.ids: list[str] = []

        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            self.ids += [str(value) for name, value in attrs if name == "id"]
            if tag not in self.empty:
                self.open.append(tag)

        def handle_endtag(self, tag: str) -> None:
            assert self.open.pop() == tag

    for theorem in ("gated/node", "node-centric/graph"):
        nesting = Nesting()
        nesting.feed(page_of(tmp_path, theorem, truth=np.zeros(20, dtype=int), degree=np.ones(20, dtype=int)))
        assert nesting.open == []
        assert len(nesting.ids) == len(set(nesting.ids))


def test_what_is_not_given_is_not_shown(tmp_path: Path) -> None:
    bare, full = (page_of(tmp_path), page_of(tmp_path, truth=np.zeros(20, dtype=int), mlp=0.5, environment={"Seed": 7}))
    assert "certified share" in bare
    bare, full = bare.split("<script")[0], full.split("<script")[0]
    assert "certified accuracy" not in bare
    assert "MLP" not in bare
    assert "certified accuracy" in full
    assert "MLP, no graph" in full
    assert "<dt>Seed</dt><dd>7</dd>" in full


def test_the_no_edge_accuracy_is_derived_from_the_votes(tmp_path: Path) -> None:
    certificate, _ = made_up_certificate(np.random.default_rng(0), "node-centric/node", 20, 20, 3)
    truth = np.arange(20) % 3
    expected = (certificate.evidence.votes.default == truth).mean()
    page = build_report(certificate, tmp_path / "page.html", context=ReportContext(truth=truth)).read_text("utf-8")
    assert f'<td class="num">{100 * expected:.1f}\u00a0%</td>' in page
    assert "same model, no edges" in page


def test_an_attack_that_beats_the_certificate_is_pointed_out(tmp_path: Path) -> None:
    certificate, _ = made_up_certificate(np.random.default_rng(0), "node-centric/node", 20, 20, 3)
    at_two = (certificate.radius >= 2).mean()
    for left, alarmed in ((at_two, False), (at_two - 0.05, True)):
        context = ReportContext(truth=certificate.label, attacked=[(2, left)])
        page = build_report(certificate, tmp_path / "page.html", context=context).read_text("utf-8")
        assert ("Both cannot be true" in page) == alarmed


def test_the_same_certificate_gives_the_same_file(tmp_path: Path) -> None:
    assert page_of(tmp_path / "a") == page_of(tmp_path / "b")


def test_an_interrupted_run_leaves_the_old_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page_of(tmp_path)
    path = tmp_path / "new" / "page.html"
    before = path.read_bytes()

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("os.replace", stop)
    with pytest.raises(KeyboardInterrupt):
        page_of(tmp_path, dataset="other")
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"truth": [1, 2]}, "one whole number for each of the 20 targets"),
        ({"degree": np.ones(20)}, "float64"),
        ({"mlp": 71.4}, "between 0 and 1"),
        ({"attacked": [(3, 50.0)]}, "between 0 and 1"),
        ({"size_only": [(-1, 0.5)]}, r"size_only=.*from 0 on"),
        ({"possible": {"at most": [(1, 1.5)]}}, "at most=.*between 0 and 1"),
        ({"class_names": ["only one"]}, "1 class names"),
    ],
)
def test_a_context_that_does_not_fit_is_refused(wrong: dict[str, object], message: str, tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=message):
        page_of(tmp_path, **wrong)


def test_samples_are_called_probabilistic(tmp_path: Path) -> None:
    certificate = sampled_certificate(np.random.default_rng(1), 10)
    page = build_report(certificate, tmp_path / "page.html").read_text("utf-8")
    assert "With probability at least 0.99, stated for each target" in page
    assert "holds with certainty" not in page


def luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_dark_colours_are_for_screens_and_paper_has_the_light_ones() -> None:
    style = (ASSETS / "style.css").read_text("utf-8")
    assert re.findall(r"@media (.*)\(prefers-color-scheme: dark\)", style) == ["screen and "]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_from_its_background(scheme: str) -> None:
    style = (ASSETS / "style.css").read_text("utf-8")
    light, dark = style.split("prefers-color-scheme: dark")
    found = dict(re.findall(r"--([a-z0-9-]+): (#[0-9a-f]{6})", light))
    found |= {
        k: 2 * c[1] and "#" + "".join(2 * x for x in c[1:])
        for k, c in re.findall(r"--([a-z0-9-]+): (#[0-9a-f]{3});", light)
    }
    if scheme == "dark":
        part = dark.split("\n}\n")[0]
        found |= dict(re.findall(r"--([a-z0-9-]+): (#[0-9a-f]{6})", part))
        found |= {
            k: "#" + "".join(2 * x for x in c[1:]) for k, c in re.findall(r"--([a-z0-9-]+): (#[0-9a-f]{3});", part)
        }
    pairs = [(text, ground) for text in ("ink", "soft", "accent", "bad") for ground in ("paper", "panel")]
    pairs += [(f"t{k}", f"k{k}") for k in range(8)]
    for text, ground in pairs:
        bright, dim = sorted((luminance(found[text]), luminance(found[ground])), reverse=True)
        assert (bright + 0.05) / (dim + 0.05) >= 4.5, (text, ground)


def test_how_to_check_it_is_told_as_a_command(tmp_path: Path) -> None:
    page = page_of(tmp_path, certificate_path="a b.cert")
    assert (
        "agnncert verify &#39;a b.cert&#39; --data DATA --model package.module:factory --weights FILE --recheck 100"
        in page
    )
    page = page_of(tmp_path, certificate_path="runs/x/certificate.cert", run_path="runs/x")
    assert "<code>agnncert verify runs/x --recheck 100</code>" in page
