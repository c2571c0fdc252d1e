"""How figures look. Nothing is set at import, and pyplot's global state is never touched.

    with figure_style():
        figure = Picture(columns=2)
        ...
    save(figure, folder, "loss-arithmetic-gpt")

Colours are Okabe and Ito's, which colour-blind readers tell apart; they are ordered so that neighbours differ in
lightness too. Validation is solid, training dashed and darker: a greyscale print says the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

PALETTE = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#56B4E9")
"""Blue, orange, green, purple, vermilion, sky blue; yellow is too pale for a line on white."""
LINES: dict[str, Any] = {"val": "solid", "train": (0, (4, 2))}
GREY = "#595959"
MEAN_LINE, THIN_LINE = 1.7, 0.6

PANEL_INCHES = (5.4, 4.1)
"""Small enough that 9-point text is still legible when a telephone shows the figure at its full width."""
PNG_DPI = 200

_LOOKS = ("axes", "figure", "font", "grid", "legend", "lines", "mathtext", "patch", "path", "savefig", "svg", "text")
_TICKS = ("xaxis", "yaxis", "xtick", "ytick")
_STYLE = {
    "figure.facecolor": "white",
    "savefig.facecolor": "white",
    "font.family": "DejaVu Sans",  # comes with matplotlib, so every machine draws the same letters
    "font.size": 9.5,
    "axes.titlesize": 10.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.labelsize": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#E3E3E3",
    "grid.linewidth": 0.6,
    "lines.linewidth": MEAN_LINE,
    "lines.solid_capstyle": "round",
    "legend.frameon": False,
    "legend.fontsize": 8.5,
    "legend.title_fontsize": 8.5,
    "svg.fonttype": "path",
    "svg.hashsalt": "lmlab",  # else element ids are random and no two SVGs of the same figure are equal
}


def shade(colour: str, split: str) -> tuple[float, float, float]:
    """A model's colour for a split: as it is for validation, half way to black for training."""
    red, green, blue = to_rgb(colour)
    part = 0.5 if split == "train" else 1.0
    return red * part, green * part, blue * part


@contextmanager
def figure_style() -> Iterator[None]:
    """matplotlib's defaults with our changes, inside this block only; a reader's own style does not leak in."""
    # Not rcdefaults(): it also drops the backend, and looking that up would start pyplot.
    rc: Any = {key: value for key, value in matplotlib.rcParamsDefault.items() if key.startswith(_LOOKS + _TICKS)}
    rc.update(_STYLE)
    with matplotlib.rc_context(rc):
        yield


class Picture(Figure):
    """A figure of rows × columns panels that belongs to no window; a notebook shows it as a PNG."""

    def __init__(self, rows: int = 1, columns: int = 1) -> None:
        width, height = PANEL_INCHES
        super().__init__(figsize=(width * columns, height * rows), layout="constrained")
        FigureCanvasAgg(self)

    def _repr_png_(self) -> bytes:
        return _drawn(self, "png", dpi=PNG_DPI // 2, metadata={"Software": None})


def save(figure: Figure, folder: Path, name: str) -> tuple[Path, Path]:
    """Write `name.png` and `name.svg`; the same figure gives the same bytes."""
    folder.mkdir(parents=True, exist_ok=True)
    png, svg = folder / f"{name}.png", folder / f"{name}.svg"
    png.write_bytes(_drawn(figure, "png", dpi=PNG_DPI, metadata={"Software": None}))
    svg.write_bytes(_drawn(figure, "svg", metadata={"Date": None, "Creator": None}))
    return png, svg


def _drawn(figure: Figure, kind: str, **options: Any) -> bytes:
    data = BytesIO()
    with figure_style():  # some settings, the salt among them, are read only when a figure is written
        figure.savefig(data, format=kind, **options)
    return data.getvalue()
