"""Pictures of the page, to look at and for the documentation: ``python -m tests.support.screenshots FOLDER [REPORT]``.

Without a report, one is made up. Writes ``light.png``, ``dark.png``, ``phone.png`` (whole pages), ``top.png`` and
``explorer.png`` (one screen each) and ``print.pdf``.
"""

import sys
from pathlib import Path
from typing import Any

import numpy as np
from playwright.sync_api import sync_playwright

from agnncert.report.page import build_report
from agnncert.report.summary import ReportContext
from tests.support.browser import ARGUMENTS, CHROMIUM
from tests.support.synthetic import made_up_certificate

LOOKS: dict[str, dict[str, Any]] = {
    "light": {"width": 1240, "color_scheme": "light"},
    "dark": {"width": 1240, "color_scheme": "dark"},
    "phone": {"width": 390, "color_scheme": "light", "device_scale_factor": 2},
}


def made_up_report(path: Path, theorem: str = "node-centric/node") -> Path:
    """A page that looks like one of a real run."""
    rng = np.random.default_rng(0)
    task = theorem.split("/")[1]
    names = ["Case Based", "Genetic Algorithms", "Neural Networks", "Probabilistic", "Reinforcement", "Rules", "Theory"]
    certificate, degree = (
        made_up_certificate(rng, theorem, 1602, 60, len(names), mean_degree=5.0, unstable=0.001)
        if task == "node"
        else made_up_certificate(rng, theorem, 900, 50, 2, mean_degree=20.0)
    )
    guess = rng.integers(certificate.counts.shape[1], size=len(degree))
    truth = np.where(rng.random(len(degree)) < 0.72, certificate.label, guess)
    clean = float((truth == certificate.label).mean())
    context = ReportContext(
        truth=truth,
        degree=degree,
        class_names=names[: certificate.counts.shape[1]],
        dataset="made-up data",
        undefended=min(1.0, clean + 0.09),
        mlp=clean - 0.03 if task == "node" else None,
        majority=0.55 if task == "graph" else None,
        attacked=[(size, clean - 0.0005 * size * (size > 15)) for size in (0, 5, 10, 20, 25)],
        attack="greedy edge additions at the target",
        environment={"Python": "3.11", "Seed": 0},
        commands=["agnncert certify --dataset cora-ml --groups 60"],
        certificate_path="cora.cert",
    )
    return build_report(certificate, path, context=context)


def take_screenshots(report: Path, folder: Path) -> None:
    """Whole-page pictures of a report in each look, two single screens, and a print."""
    folder.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        for name, look in LOOKS.items():
            options = dict(look)
            page = browser.new_page(viewport={"width": options.pop("width"), "height": 900}, **options)
            _open(page, report)
            page.screenshot(path=folder / f"{name}.png", full_page=True)
            if name == "light":
                page.pdf(path=folder / "print.pdf", format="A4")
        page = browser.new_page(viewport={"width": 1240, "height": 1050}, device_scale_factor=1.5)
        _open(page, report)
        page.screenshot(path=folder / "top.png")
        page.locator("#presets button").last.click()
        if page.locator("#r-add_edges").is_enabled():
            page.locator("#r-add_edges").fill("16")
        page.evaluate("document.documentElement.style.scrollBehavior = 'auto'")
        page.evaluate("window.scrollTo(0, document.getElementById('explore').offsetTop + 20)")
        page.screenshot(path=folder / "explorer.png")
        browser.close()


def _open(page: Any, report: Path) -> None:
    page.goto(report.resolve().as_uri())
    page.wait_for_selector("html[data-ready=yes]", state="attached")
    page.wait_for_selector("#accuracy-chart svg", state="attached")


if __name__ == "__main__":
    target = Path(sys.argv[1])
    take_screenshots(Path(sys.argv[2]) if len(sys.argv) > 2 else made_up_report(target / "report.html"), target)
