"""Parts of a panel: the step axis with step 0 on it, the loss axis, a legend that covers nothing, a bracket."""

from __future__ import annotations

from math import floor, log10

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator, SymmetricalLogLocator
from matplotlib.transforms import ScaledTranslation

from lmlab.reports.style import GREY

LEGEND_POINTS = 36
"""How far the legend hangs below the panel: under the tick labels and the axis label."""


def frame_steps(axes: Axes, steps: np.ndarray, log_steps: bool) -> None:
    """Step t from 0 to the last; logarithmic from the first evaluated power of ten on, linear between that and 0."""
    last = max(1.0, float(steps.max()))
    if log_steps:
        positive = steps[steps > 0]
        first = 10.0 ** floor(log10(positive.min())) if len(positive) else 1.0
        axes.set_xscale("symlog", linthresh=first, linscale=0.4)
        decades = [10.0**power for power in range(floor(log10(first) + 0.5), floor(log10(last)) + 1)]
        axes.xaxis.set_major_locator(FixedLocator([0.0, *decades]))
        axes.xaxis.set_minor_locator(SymmetricalLogLocator(base=10, linthresh=first, subs=range(2, 10)))
        axes.set_xlim(-0.12 * first, last * 1.12)
        axes.set_xlabel("step $t$ (log scale)")
    else:
        axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
        axes.set_xlim(-0.02 * last, last * 1.02)
        axes.set_xlabel("step $t$")
    axes.xaxis.set_major_formatter(FuncFormatter(lambda step, _: f"{step:,.0f}"))


def frame_loss(axes: Axes, low: float, high: float) -> None:
    """A logarithmic axis a little wider than the losses of all seeds."""
    axes.set_yscale("log")
    room = max(high / low, 1.5) ** 0.05
    axes.set_ylim(low / room, high * room)
    if high / low < 10:  # hardly a decade: powers of ten would leave one tick, so plain numbers
        axes.yaxis.set_major_locator(MaxNLocator(5))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda loss, _: f"{loss:.3g}"))
        axes.yaxis.set_minor_locator(NullLocator())


def legend_below(axes: Axes, title: str) -> None:
    """Below the panel, where no curve can run into it; a fixed distance, whatever the panel's height."""
    place = axes.transAxes + ScaledTranslation(0, -LEGEND_POINTS / 72, axes.figure.dpi_scale_trans)
    legend = axes.legend(
        title=title,
        loc="upper left",
        bbox_to_anchor=(0, 0),
        bbox_transform=place,
        ncols=2,
        borderaxespad=0,
        borderpad=0,
        columnspacing=1.4,
        alignment="left",
    )
    legend.get_title().set_color(GREY)


def span(axes: Axes, start: float, end: float, text: str) -> None:
    """A bracket above the panel from `start` to `end`, with its text on top."""
    above = axes.get_xaxis_transform()  # x in steps, y as a share of the panel's height
    x, y = [start, start, end, end], [1.015, 1.035, 1.035, 1.015]
    axes.plot(x, y, color=GREY, linewidth=0.9, transform=above, clip_on=False, scalex=False, scaley=False)
    to_share = axes.transData + axes.transAxes.inverted()
    left, right = (float(to_share.transform((step, 0.5))[0]) for step in (start, end))
    # Text at an edge would be cut or squeeze the panel: it leans inwards there.
    middle = (left + right) / 2
    side, place = ("right", 1.0) if middle > 0.87 else ("left", 0.0) if middle < 0.13 else ("center", middle)
    axes.text(place, 1.045, text, ha=side, va="bottom", fontsize=8.5, color=GREY, transform=axes.transAxes)
