"""The page of a reproduction in a browser: at the width of a phone, a tablet and a desk, in light and in dark."""

from __future__ import annotations

import base64
import html
import json
import re
import shutil
import subprocess

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from codiag.experiments.chapters import chapters_of
from codiag.experiments.pages import write_pages
from codiag.experiments.paper import CLAIMS, EXPERIMENTS
from codiag.experiments.records import Journal, Record

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
MEASURE = """
<script>
addEventListener("load", () => {
  document.querySelectorAll("details").forEach(one => one.open = true);
  const images = [...document.images].map(one => {
    one.loading = "eager";
    const box = one.getBoundingClientRect();
    return {alt: one.alt, width: box.width, right: box.right, source: one.src};
  });
  const badges = [...document.querySelectorAll(".claims .badge")].map(one => one.getBoundingClientRect().right);
  const wide = [...document.querySelectorAll(".scroll")].filter(one => one.scrollWidth > one.clientWidth);
  const style = getComputedStyle(document.body);
  const told = {inner: innerWidth, scroll: document.documentElement.scrollWidth, images, badges,
    focusable: wide.every(one => one.tabIndex === 0), ink: style.color, paper: style.backgroundColor,
    lost: [...document.querySelectorAll("a[href^='#']")].filter(
      one => !document.getElementById(one.getAttribute("href").slice(1))).length,
    first: document.querySelector("a, button, summary, [tabindex]").getAttribute("href")};
  parent.postMessage(JSON.stringify(told), "*");
});
</script>
"""
FRAME = """<!doctype html><body style="margin: 0">
<script>
addEventListener("message", event => {
  const place = document.createElement("pre");
  place.id = "told";
  place.textContent = event.data;
  document.body.append(place);
});
</script>
<iframe src="SOURCE" style="border: 0; width: WIDTHpx; height: 900px"></iframe>
"""
"""A window may not be as narrow as a phone, a frame may."""


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """Write a page with figures of every kind: lines with bands, points, names for ticks, logarithmic axes."""
    folder = tmp_path_factory.mktemp("page")
    rng = np.random.default_rng(0)
    names = {
        "drivers": ["TPM (nearest)", "OJD0 (nearest)", "OJD1 (nearest)"],
        "nonorthogonal": ["NOJD0", "NOJD1", "NOJD1 (factors)", "Lathauwer", "ALS", "NLS", "oracle"],
        "starts": [f"{name}{what}" for name in ("OJD1", "NOJD1") for what in ("", ", objective", ", from the first")],
    }
    for name, values in names.items():
        journal = Journal(folder, name)
        for cell in EXPERIMENTS[name].cells(False):
            if cell["trial"] < 20 and cell.get("model", "text") == "text":
                journal.append(Record(cell, {value: rng.uniform(0.001, 1.0) for value in values}))
    write_pages(folder)
    return folder / "index.html"


def shown(page, folder, width, *options):
    """Return what a browser of a width says of the page."""
    if BROWSER is None:
        pytest.skip("there is no Chromium here; Debian has it as the package chromium")
    copy, frame = folder / "measured.html", folder / "frame.html"
    copy.write_text(page.read_text().replace("</body>", MEASURE + "</body>"))
    frame.write_text(FRAME.replace("SOURCE", copy.name).replace("WIDTH", str(width)))
    command = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder / 'profile'}"]
    command += ["--hide-scrollbars", "--window-size=1400,1000", "--virtual-time-budget=20000", *options]
    command += ["--dump-dom", frame.as_uri()]
    text = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout
    found = re.search(r'<pre id="told">(.*?)</pre>', text, re.DOTALL)
    assert found, text[-500:]
    return json.loads(html.unescape(found[1]))


def smallest_text(source, width):
    """Return the height in pixels of the smallest text of a figure of that width."""
    svg = base64.b64decode(source.split(",", 1)[1]).decode()
    units = float(re.search(r'viewBox="0 0 ([\d.]+) ', svg)[1])
    return min(float(size) for size in re.findall(r"font-size: ([\d.]+)px", svg)) * width / units


@pytest.mark.parametrize("width", [390, 768, 1280])
def test_nothing_is_wider_than_the_screen_and_all_can_be_read(page, tmp_path, width):
    told = shown(page, tmp_path, width)
    assert told["inner"] == width
    assert told["scroll"] <= width
    assert len(told["badges"]) == len(CLAIMS)
    assert max(told["badges"]) <= width
    assert told["images"]
    for image in told["images"]:
        assert len(image["alt"]) > 15
        assert image["right"] <= width
        assert smallest_text(image["source"], image["width"]) >= 9
    assert told["focusable"]
    assert told["lost"] == 0
    assert told["first"] == "#main"


def test_dark_is_dark(page, tmp_path):
    def brightness(color):
        return sum(map(int, re.findall(r"\d+", color)[:3]))

    light = shown(page, tmp_path, 768)
    dark = shown(page, tmp_path, 768, "--blink-settings=preferredColorScheme=0")
    assert brightness(light["paper"]) > 600 > 300 > brightness(light["ink"])
    assert brightness(dark["ink"]) > 600 > 300 > brightness(dark["paper"])


def test_the_page_and_the_markdown_tell_the_same(page):
    folder = page.parent
    _, judgements = chapters_of(folder)
    text, markdown = html.unescape(page.read_text()), (folder / "REPRODUCTION.md").read_text()
    for one in judgements:
        row = f"| {one.claim.number} | {one.claim.sentence} | {one.measured} | {one.verdict} |"
        assert row in markdown
        assert one.measured in text
        assert one.reason in text
