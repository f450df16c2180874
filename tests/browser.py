"""Pages in headless Chromium: what they look like at several widths, in light and in dark."""

from __future__ import annotations

import base64
import html
import json
import re
import shutil
import subprocess

import pytest

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
WIDTHS = [390, 768, 1280]
DARK = "--blink-settings=preferredColorScheme=0"
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
FRAMES = """<!doctype html><body style="margin: 0">
<script>
addEventListener("message", event => {
  const place = document.createElement("pre");
  place.id = [...document.querySelectorAll("iframe")].find(one => one.contentWindow === event.source).name;
  place.textContent = event.data;
  document.body.append(place);
});
</script>
"""
"""A window may not be as narrow as a phone, a frame may."""


def shown(pages, widths, folder, *options):
    """Return what a browser says of every page at every width, in the order of both."""
    if BROWSER is None:
        pytest.skip("there is no Chromium here; Debian has it as the package chromium")
    frames, names = FRAMES, []
    for number, page in enumerate(pages):
        (folder / f"measured-{number}.html").write_text(page.replace("</body>", MEASURE + "</body>"))
        for width in widths:
            names.append(f"told-{number}-{width}")
            style = f"border: 0; width: {width}px; height: 900px"
            frames += f'<iframe name="{names[-1]}" src="measured-{number}.html" style="{style}"></iframe>'
    (folder / "frames.html").write_text(frames)
    command = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder / 'profile'}"]
    command += ["--hide-scrollbars", "--window-size=1400,1000", "--virtual-time-budget=20000", *options]
    command += ["--dump-dom", (folder / "frames.html").as_uri()]
    text = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout
    found = dict(re.findall(r'<pre id="([^"]+)">(.*?)</pre>', text, re.DOTALL))
    return [json.loads(html.unescape(found[name])) for name in names]


def smallest_text(source, width):
    """Return the height in pixels of the smallest text of a figure of that width."""
    svg = base64.b64decode(source.split(",", 1)[1]).decode()
    units = float(re.search(r'viewBox="0 0 ([\d.]+) ', svg)[1])
    return min(float(size) for size in re.findall(r"font-size: ([\d.]+)px", svg)) * width / units


def assert_readable(told, width):
    """Check that nothing is wider than the screen, and that all can be read, heard and reached by keys."""
    assert told["inner"] == width
    assert told["scroll"] <= width
    assert told["images"]
    for image in told["images"]:
        assert len(image["alt"]) > 15
        assert image["right"] <= width
        if "svg" in image["source"][:20]:
            assert smallest_text(image["source"], image["width"]) >= 9
    assert told["focusable"]
    assert told["lost"] == 0
    assert told["first"] == "#main"


def assert_dark_is_dark(light, dark):
    """Check the colors of a page in light and in dark."""
    assert brightness(light["paper"]) > 600 > 300 > brightness(light["ink"])
    assert brightness(dark["ink"]) > 600 > 300 > brightness(dark["paper"])


def brightness(color):
    return sum(map(int, re.findall(r"\d+", color)[:3]))
