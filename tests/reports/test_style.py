import subprocess
import sys

import matplotlib
from PIL import Image

from lmlab.reports.style import PALETTE, PANEL_INCHES, PNG_DPI, Picture, figure_style, save, shade


def drawn() -> Picture:
    with figure_style():
        figure = Picture()
        figure.add_subplot().plot([0, 1], [0, 1], color=PALETTE[0])
    return figure


def lightness(colour: tuple[float, float, float]) -> float:
    """Relative luminance of an sRGB colour (WCAG 2)."""
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in colour]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_the_style_ends_with_its_block_and_a_users_style_does_not_leak_in():
    with matplotlib.rc_context({"axes.facecolor": "black", "lines.linewidth": 9}):
        before = dict(matplotlib.rcParams)
        with figure_style():
            assert matplotlib.rcParams["axes.facecolor"] == "white"
        drawn()._repr_png_()
        assert dict(matplotlib.rcParams) == before


def test_pyplot_is_never_started():
    code = """
import sys, matplotlib
from lmlab.reports.style import Picture, figure_style
backend = matplotlib.rcParams._get("backend")
with figure_style():
    figure = Picture()
    figure.add_subplot().plot([0, 1])
figure._repr_png_()
assert "matplotlib.pyplot" not in sys.modules
assert matplotlib.rcParams._get("backend") is backend
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_png_has_its_size_and_svg_is_the_same_every_time(tmp_path):
    png, svg = save(drawn(), tmp_path / "new", "a.b")
    assert (png.name, svg.name) == ("a.b.png", "a.b.svg")
    with Image.open(png) as image:
        assert image.size == tuple(round(inches * PNG_DPI) for inches in PANEL_INCHES)
    again = save(drawn(), tmp_path, "again")
    assert [path.read_bytes() for path in again] == [png.read_bytes(), svg.read_bytes()]
    assert b"<dc:date>" not in svg.read_bytes()


def test_a_notebook_gets_a_png():
    assert drawn()._repr_png_().startswith(b"\x89PNG")


def test_models_and_splits_differ_in_lightness_too():
    first, second = (lightness(shade(colour, "val")) for colour in PALETTE[:2])
    assert max(first, second) > 1.5 * min(first, second)
    for colour in PALETTE:
        assert lightness(shade(colour, "val")) > 2 * lightness(shade(colour, "train"))
