"""Define the common style of all figures: panels, legends, texts, and image files."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.collections import PathCollection
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.textpath import TextPath
from matplotlib.transforms import Bbox

from perseus.host.files import whole
from perseus.report.svg import compact
from perseus.study.experiments.peak import DEMANDED
from perseus.study.tasks.figure import FigureTask

FAMILIES: Final = {"sans": "DejaVu Sans", "serif": "STIXGeneral"}
MATHEMATICS: Final = {"sans": "dejavusans", "serif": "stix"}
"""Fonts of texts and formulas. They come with matplotlib, so that figures are the same on every
machine."""

GREY, DARK = "#999999", "#222222"
NOTHING: Final = "nothing-to-draw"
MM = 1 / 25.4
BESIDE_MM = 12.0  # width in mm beside a panel, for the axis with its labels
ROW_MM = 6.0
NAMES_SHARE = 0.4  # largest share of the width of a figure for row names
MAX_LINES = 5  # largest number of lines of a row name
TICKS = 0.9  # font size of ticks and row names, relative to the base size
SMALL = 0.833  # font size of matplotlib's "small", relative to the base size
MAX_BACKGROUND_NAMED = 2  # a label names at most this many tenants with background load
MAX_BACKGROUND_CHARACTERS = 40  # their names have at most this many characters together
MAX_WEIGHTS = 4  # a label lists at most this many equal weights
MAX_NAMED = 12  # a note names at most this many rows without data
BESIDE_MARK: Final = "beside a mark"  # marks the texts that `fit` places
CORNER_PT: Final = 4.5  # distance from the middle of a mark to the text beside it
CORNERS: Final = ((True, True), (True, False), (False, True), (False, False))
"""Corners of a mark, as (is right, is up), in the order in which `fit` tries to place a text."""


def panels(
    style: FigureTask,
    count: int,
    columns: int,
    height_mm: float | Sequence[float],
    **shared: Any,
) -> tuple[Figure, list[Axes]]:
    """Return a figure with `count` panels in rows of `columns` panels, and the axes of the panels.

    `height_mm` is the height of each row, or has one value per row. The function `fit` later adds
    the heights of the legend and the notes. `shared` has the arguments sharex and sharey of
    matplotlib.
    """
    rows = -(-count // columns)
    heights = [height_mm] * rows if isinstance(height_mm, (int, float)) else list(height_mm)
    figure = Figure(figsize=(style.width_mm * MM, sum(heights) * MM), layout="constrained")
    FigureCanvasAgg(figure)
    grid = figure.subplots(rows, columns, squeeze=False, height_ratios=heights, **shared)
    flat = list(grid.flat)
    for unused in flat[count:]:
        unused.remove()
    # The lowest panel of each column shows the labels of the ticks.
    for lowest in flat[max(0, count - columns) : count]:
        lowest.tick_params(labelbottom=True)
    return figure, flat[:count]


def wrapped_title(
    axes: Axes, text: str, style: FigureTask, columns: int, pad_pt: float | None = None
) -> Text:
    """Write a title above one of `columns` panels in a row, wrapped to the width of the panel, and
    return it. `pad_pt` is the distance from the panel in points."""
    width = characters(style.width_mm / columns - BESIDE_MM, style.font_pt)
    lines = textwrap.fill(text, width, break_long_words=False)
    return axes.set_title(lines, loc="left", pad=pad_pt)


def title_over(axes: Sequence[Axes], text: str, style: FigureTask) -> None:
    """Write a title above a row of panels without making the panels narrower."""
    title = wrapped_title(axes[0], text, style, 1)
    if len(axes) == 1:
        return
    title.set_in_layout(False)
    axes[-1].set_title(
        " " + "\n" * title.get_text().count("\n"), loc="left"
    )  # this title already reserves the height of the row


def characters(width_mm: float, font_pt: float) -> int:
    """Return how many characters of the figure's font fit on a line that is `width_mm` wide."""
    return int(10 * width_mm / text_mm(10 * "a", font_pt))


def text_mm(text: str, font_pt: float) -> float:
    """Return the width in mm of a text in the font of the figure."""
    return float(TextPath((0, 0), text, font_pt).get_extents().width) / 72 / MM


def short(row: pd.Series) -> str:
    """Return a short label of a load line, such as "mix 2 : 1". If all tenants of a mix have load,
    the label leaves out their names."""
    if row["kind"] == "dedicated":
        return f"{row['mix']} alone"
    if row["load_line"] == DEMANDED:
        return "the demand's mix"
    weights = str(row["weights"])
    each = weights.split(" : ")
    if row["kind"] == "mix" and len(each) > MAX_WEIGHTS and set(each) == {"1"}:
        return f"equal mix of {len(each)}"
    if row["kind"] == "mix":
        # If only some tenants have load, names are clearer than weights with zeros.
        return str(row["mix"]) if "0" in each else f"mix {weights}"
    searched, _, background = str(row["mix"]).partition(" beside ")
    names, _, at = background.partition(" held at ")
    return background if few(names) == names else f"{searched} beside {few(names)} at {at}"


def few(tenants: str) -> str:
    """Return `tenants`, which has the names of tenants joined by plus signs. If these are too many
    names or characters for a label, return "the others"."""
    names = tenants.split(" + ")
    is_short = len(names) <= MAX_BACKGROUND_NAMED and len(tenants) <= MAX_BACKGROUND_CHARACTERS
    return tenants if len(names) == 1 or is_short else "the others"


def row_names(names: Sequence[str], style: FigureTask) -> list[str]:
    """Return the labels of rows, wrapped so that they take at most the share NAMES_SHARE of the
    width of the figure."""
    width = characters(NAMES_SHARE * style.width_mm, TICKS * style.font_pt)
    lines = textwrap.TextWrapper(width, max_lines=MAX_LINES, placeholder=" \N{HORIZONTAL ELLIPSIS}")
    space = "\N{NO-BREAK SPACE}"
    return [lines.fill(name.replace(" %", f"{space}%")).replace(space, " ") for name in names]


def rows_mm(names: Sequence[str], style: FigureTask) -> float:
    """Return the height in mm of all rows together. `names` has the wrapped labels of the rows."""
    more = max((name.count("\n") for name in names), default=0)
    return len(names) * (ROW_MM + more * 1.2 * TICKS * style.font_pt / 72 / MM)


def name_rows(axes: Axes, names: Sequence[str]) -> None:
    """Write the label of each row on the y axis, with the first row on top."""
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.grid(axis="y", visible=False)


def verdict(row: pd.Series) -> str:
    return str(row["verdict"]).replace("_", " ")


def say(axes: Axes, text: str) -> None:
    """Write a text into a panel in place of data."""
    axes.text(0.5, 0.5, text, transform=axes.transAxes, ha="center", va="center", color=DARK)


def remainder(
    figure: Figure, shown: int, total: int, what: str, where: str, empty: Sequence[str] = ()
) -> None:
    """Write notes below the figure, for example "3 more load lines in peaks.csv".

    The first note states the number of rows that the figure leaves out: it shows only `shown` of
    `total` rows. `what` is the noun for the rows, and `where` is the file that has all rows. The
    second note names the rows without data (`empty`).
    """
    notes = figure.get_supxlabel().splitlines()
    notes += [f"{total - shown} more {what} in {where}"] if total > shown else []
    more = [f"{len(empty) - MAX_NAMED} more"] if len(empty) > MAX_NAMED else []
    notes += [f"No data for {', '.join([*empty[:MAX_NAMED], *more])}"] if empty else []
    if notes:
        figure.supxlabel("\n".join(notes), fontsize="small", color=DARK)


def legend(figure: Figure, handles: Sequence[Any], columns: int) -> None:
    """Draw a legend above all panels, with at most `columns` columns, or fewer if they do not fit
    the width of the figure."""
    for count in range(columns, 0, -1):
        drawn = figure.legend(
            handles=list(handles), loc="outside upper center", ncols=count, frameon=False
        )
        if count == 1 or drawn.get_window_extent().width <= figure.bbox.width:
            return
        drawn.remove()


def label_mark(axes: Axes, text: str, at: tuple[float, float], **look: Any) -> None:
    """Write a short text beside a mark. Later, the function `fit` moves the text to the corner of
    the mark where the text covers the fewest other marks."""
    axes.annotate(
        text,
        at,
        xytext=(CORNER_PT, CORNER_PT),
        textcoords="offset points",
        fontsize="small",
        color=DARK,
        label=BESIDE_MARK,
        zorder=4,
        **look,
    )


def fit(figure: Figure) -> None:
    """Wrap labels, titles and notes to the width of their panel or of the figure, and place the
    texts of `label_mark`.

    The function makes the figure higher by the heights of the legend and the notes, and by the
    additional lines of titles and x labels, so that the panels keep their heights.
    """
    drawn: Any = figure  # matplotlib has no public names for its notes and its titles on the left
    around = [*figure.legends]
    if drawn._supxlabel is not None:
        _wrap(drawn._supxlabel, figure.bbox.width)
        around.append(drawn._supxlabel)
    _add_height(figure, sum(each.get_window_extent().height for each in around))
    figure.draw_without_rendering()
    lines_px: dict[int, float] = {}  # by row of panels
    for panel in drawn.axes:
        place = panel.get_subplotspec()
        if place is None:
            continue
        columns = place.get_gridspec().ncols
        left, right = (edge * figure.bbox.width / columns for edge in
                       (place.colspan.start, place.colspan.stop))  # fmt: skip
        box = panel.get_window_extent()
        middle = (box.x0 + box.x1) / 2
        title, label = panel._left_title, panel.xaxis.label
        _wrap(label, 2 * min(middle - left, right - middle))
        # A title over a row of panels is not in the layout.
        _wrap(title, (right if title.get_in_layout() else figure.bbox.width) - box.x0)
        row, more_px = place.rowspan.start, _more_lines_px(title) + _more_lines_px(label)
        lines_px[row] = max(lines_px.get(row, 0.0), more_px)
    _add_height(figure, sum(lines_px.values()))
    _place_beside_marks(figure)


def _add_height(figure: Figure, height_px: float) -> None:
    width, height = figure.get_size_inches()
    figure.set_size_inches(width, height + height_px / figure.dpi)


def _more_lines_px(text: Text) -> float:
    """Return the height in pixels of the lines of a text after its first line."""
    lines = text.get_text().count("\n") + 1
    return float(text.get_window_extent().height * (lines - 1) / lines)


def _place_beside_marks(figure: Figure) -> None:
    """Move each text of `label_mark` to the corner of its mark where the text covers the fewest
    marks. If the text would cover another such text at every corner, hide the text."""
    figure.draw_without_rendering()
    for panel in figure.axes:
        texts = [text for text in panel.texts if text.get_label() == BESIDE_MARK]
        texts.sort(key=lambda text: -len(text.get_text()))  # a long text fits in fewer places
        marks = _marks_px(panel) if texts else np.empty((0, 2))
        taken: list[Bbox] = []
        for text in texts:
            costs = {}
            for corner in CORNERS:
                box = _at_corner(text, *corner)
                is_inside = panel.bbox.containsx(box.x0) and panel.bbox.containsx(box.x1)
                is_inside &= panel.bbox.containsy(box.y0) and panel.bbox.containsy(box.y1)
                covered = int(box.padded(CORNER_PT / 2).count_contains(marks))
                costs[corner] = (sum(map(box.overlaps, taken)), not is_inside, covered)
            best = min(CORNERS, key=costs.__getitem__)
            taken.append(_at_corner(text, *best))
            if costs[best][0]:
                text.set_visible(False)
                taken.pop()


def _marks_px(panel: Axes) -> np.ndarray:
    """Return the places of all marks of a panel in pixels, as an array of shape (marks, 2)."""
    lines = [line for line in panel.lines if line.get_marker() not in ("None", "")]
    places = [line.get_transform().transform(line.get_xydata()) for line in lines]
    places += [
        each.get_offset_transform().transform(each.get_offsets())
        for each in panel.collections
        if isinstance(each, PathCollection)
    ]
    return np.vstack(places) if places else np.empty((0, 2))


def _at_corner(text: Text, right: bool, up: bool) -> Bbox:
    """Move a text of `label_mark` to a corner of its mark, and return the box of the text."""
    text.set_position((CORNER_PT if right else -CORNER_PT, CORNER_PT if up else -CORNER_PT))
    text.set_horizontalalignment("left" if right else "right")
    text.set_verticalalignment("bottom" if up else "top")
    return text.get_window_extent()


def _wrap(text: Text, width: float) -> None:
    """Wrap a text to a width in pixels, without breaking words."""
    content = text.get_text()
    longest = max(content.splitlines(), key=len, default="")
    extent = text.get_window_extent().width
    if longest and extent > width > 0:
        most = max(int(len(longest) * width / extent), 1)
        lines = [textwrap.wrap(line, most, break_long_words=False) for line in content.splitlines()]
        text.set_text("\n".join(line for wrapped in lines for line in wrapped))


def empty_figure(style: FigureTask, text: str) -> Figure:
    """Return a figure without data, with a text that says why there are no data.

    The SVG file of this figure contains the id NOTHING, so that the page recognises the figure and
    leaves it out.
    """
    figure, (axes,) = panels(style, 1, 1, 30)
    figure.set_gid(NOTHING)
    axes.set_axis_off()
    say(axes, text)
    return figure


@contextmanager
def drawing(style: FigureTask) -> Iterator[None]:
    """Apply the settings of Perseus to the figures that the `with` block draws. All other settings
    are the defaults of matplotlib: the matplotlibrc of the user has no effect."""
    settings: dict[Any, Any] = {
        "font.family": FAMILIES[style.font],
        "mathtext.fontset": MATHEMATICS[style.font],
        "font.size": style.font_pt,
        "text.hinting": "none",  # with hinting, the width of PNG text differs from the layout
        "axes.titlesize": style.font_pt,
        "axes.labelsize": style.font_pt,
        "xtick.labelsize": TICKS * style.font_pt,
        "ytick.labelsize": TICKS * style.font_pt,
        "legend.fontsize": TICKS * style.font_pt,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.axisbelow": True,
        "axes.grid": True,
        "grid.color": "#e4e4e4",
        "grid.linewidth": 0.6,
        "hatch.linewidth": 0.6,
        "lines.linewidth": 1.2,
        "lines.markersize": 4.5,
        "legend.handlelength": 1.6,
        "legend.columnspacing": 1.2,
        "svg.hashsalt": "perseus",
    }
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(settings)
        yield


def save(figure: Figure, style: FigureTask, svg: Path, png: Path) -> None:
    """Save a figure as SVG and PNG with the same layout. The same figure always becomes the same
    SVG file."""
    fit(figure)
    # `savefig` would draw the figure twice for each file.
    drawn = io.StringIO()
    figure.set_dpi(style.dpi)
    FigureCanvasSVG(figure).print_svg(drawn, metadata={"Date": None})
    figure.set_layout_engine("none")
    with whole(svg) as partial:
        partial.write_text(compact(drawn.getvalue()), encoding="utf-8")
    figure.set_dpi(style.dpi)  # `print_svg` changes the resolution
    with whole(png) as partial:
        FigureCanvasAgg(figure).print_png(partial)


def is_known(value: Any) -> bool:
    return value is not None and bool(np.isfinite(value))
