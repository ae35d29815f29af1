"""Tests that the page names foreign code with its version and its licence."""

import lzma

import pytest
import synthetic
import synthetic_files

from perseus.report import page as report_page
from perseus.report.templating import VENDORED

FILES = [path for path in VENDORED.iterdir() if path.suffix not in (".LICENSE", ".md")]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_library_has_its_version_and_licence_beside_it(path):
    (row,) = (
        line
        for line in (VENDORED / "README.md").read_text().splitlines()
        if f"| `{path.name}` |" in line
    )
    _, _, package, _, licence, _ = row.split("|")
    assert any(word[0].isdigit() for word in package.split()) or "the same" in package
    (name,) = (each.strip("` ") for each in licence.split(",")[1:])
    assert "Permission is hereby granted, free of charge" in (VENDORED / name).read_text()


def test_the_solver_is_one_binary_of_webassembly():
    assert lzma.decompress((VENDORED / "highs.wasm.xz").read_bytes()).startswith(b"\0asm")


def test_the_page_has_the_licence_of_each_library():
    made = synthetic.records(mixes=[(1, 1)], holds=())
    frames = {name: t.to_pandas() for name, t in synthetic_files.tables_of(made).items()}
    page = report_page.render(frames, {}, synthetic.loaded(made))
    licences = [path.read_text().strip() for path in VENDORED.glob("*.LICENSE")]
    assert len(licences) == 3 and all(licence in page for licence in licences)
