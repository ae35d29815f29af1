"""Tests that figures do not depend on a user's settings of matplotlib, Python or the locale."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parents[3] / "scripts"
DRAW = """
import sys
from pathlib import Path

from perseus.report.style import drawing, panels, save
from perseus.study.tasks.figure import FigureTask

style = FigureTask(width_mm=80, font_pt=8, dpi=60, pricing="on_demand")
with drawing(style):
    figure, (axes,) = panels(style, 1, 1, 30)
    axes.plot([-1, 1], [2, 3], label="\\N{GREEK SMALL LETTER MU}")
    axes.legend()
    save(figure, style, Path("drawn.svg"), Path("drawn.png"))
"""
MATPLOTLIBRC = """\
text.usetex: True
figure.facecolor: black
axes.facecolor: black
text.color: black
lines.color: black
axes.prop_cycle: cycler('color', ['000000'])
svg.fonttype: none
savefig.bbox: tight
"""


def drawn(folder: Path, **environment: str) -> tuple[bytes, bytes]:
    command = [sys.executable, "-c", DRAW]
    clean = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    subprocess.run(
        command, cwd=folder, env=clean | {"PYTHONPATH": str(SCRIPTS)} | environment, check=True
    )
    return (folder / "drawn.svg").read_bytes(), (folder / "drawn.png").read_bytes()


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    return drawn(tmp_path_factory.mktemp("plain"))


def test_a_matplotlibrc_changes_nothing(plain, tmp_path):
    (tmp_path / "matplotlibrc").write_text(MATPLOTLIBRC)
    assert drawn(tmp_path) == plain


def test_the_backend_of_a_notebook_changes_nothing(plain, tmp_path):
    assert drawn(tmp_path, MPLBACKEND="module://matplotlib_inline.backend_inline") == plain


def test_a_locale_that_is_not_utf_8_changes_nothing(plain, tmp_path):
    assert drawn(tmp_path, LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0") == plain
