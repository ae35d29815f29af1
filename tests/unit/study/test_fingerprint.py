"""Tests that a fingerprint covers the code that a job executes, its imports, and nothing else."""

import textwrap

import pytest

from perseus.study.fingerprint import Sources

FILES = {
    "job.py": "from perseus.layer.work import double\nprint(double(2))\n",
    "perseus/__init__.py": "",
    "perseus/layer/__init__.py": '"""A layer."""\n',
    "perseus/layer/work.py": '''\
        """What is done."""

        from __future__ import annotations

        from pydantic import BaseModel, Field

        FACTOR = 2
        """Of all numbers."""

        class Settings(BaseModel):
            """What is asked."""
            limit: int = Field(default=3, description="The largest.", examples=[3])

        SCHEMA = [
            column("rate", float, "1/s", "how " + "often"),
            column("by", str, unit="s", meaning="who"),
        ]

        def double(number: int) -> int:
            """Twice the number."""
            # obvious
            return number * FACTOR
        ''',
    "perseus/layer/other.py": "VALUE = 1\n",
    "perseus/host/__init__.py": "",
    "perseus/host/job.py": "VALUE = 1\n",
    "perseus/study/__init__.py": "",
    "perseus/study/runtimes.py": "ONNX = 'model.onnx'\nRUNTIMES = {'one': ONNX}\n",
    "perseus/page.html": "<p>1</p>\n",
}


@pytest.fixture
def folder(tmp_path):
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))
    return tmp_path


@pytest.fixture
def changes(folder):
    """Return a function that edits a file and returns whether the job's fingerprint changes."""

    def edit(name, old, new, paths=("job.py",), modules=()):
        before = Sources(folder).fingerprint(paths, modules)
        text = (folder / name).read_text()
        assert old in text
        (folder / name).write_text(text.replace(old, new))
        return Sources(folder).fingerprint(paths, modules) != before

    return edit


WORK = "perseus/layer/work.py"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("# obvious", "# clear"),
        ("Twice the number.", "The number, twice."),
        ("Of all numbers.", "Of each number."),
        ("What is done.", "All that is done."),
        ("The largest.", "The most."),
        ("examples=[3]", "examples=[4, 5]"),
        ("return number * FACTOR", "return (\n        number\n        * FACTOR\n    )"),
        ("FACTOR = 2", "FACTOR = 0x2"),
        ('"The largest."', "'The ' 'largest.'"),
        ('"1/s"', '"requests/s"'),
        ('"how " + "often"', '"how seldom"'),
        ('unit="s", meaning="who"', 'meaning="whose", unit=""'),
    ],
)
def test_what_is_written_about_code_is_not_in_it(changes, old, new):
    assert not changes(WORK, old, new)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("FACTOR = 2", "FACTOR = 3"),
        ("FACTOR = 2", "FACTOR = 2.0"),
        ("FACTOR = 2", "FACTOR = None"),
        ("FACTOR = 2", "FACTOR = '2'"),
        ("number * FACTOR", "FACTOR * number"),
        ("default=3", "default=4"),
        ("def double(number: int)", "def double(number: float)"),
        ("class Settings(BaseModel)", "class Settings(BaseModel, frozen=True)"),
        ("return number", "return -number"),
        ("description=", "alias="),
        ('column("rate", float', 'column("rates", float'),
        ('column("rate", float', 'column("rate", int'),
        ('column("by", str', 'column("by", bytes'),
        ("meaning=", "among="),
        ('column("by"', 'table.column("by"'),
        ('column("rate", float, ', 'rows("rate", float, '),
    ],
)
def test_what_runs_is(changes, old, new):
    assert changes(WORK, old, new)


def test_a_script_is_part_of_its_fingerprint(changes):
    assert changes("job.py", "double(2)", "double(4)")


@pytest.mark.parametrize(
    ("place", "statement"),
    [
        (WORK, "import perseus.layer.other"),
        (WORK, "import perseus.layer.other as other"),
        (WORK, "from perseus.layer import other"),
        (WORK, "from perseus.layer.other import VALUE"),
        (WORK, "from . import other"),
        (WORK, "from .other import VALUE"),
        (WORK, "from ..layer import other"),
        (WORK, "def later():\n    from perseus.layer import other"),
        (WORK, "try:\n    import perseus.layer.other\nexcept ImportError:\n    pass"),
        ("perseus/layer/__init__.py", "from .other import VALUE"),
        ("perseus/__init__.py", "import perseus.layer.other"),
        ("job.py", "import perseus.layer.other"),
    ],
)
def test_an_import_is_followed(changes, folder, place, statement):
    (folder / place).write_text((folder / place).read_text() + f"\n{statement}\n")
    assert changes("perseus/layer/other.py", "VALUE = 1", "VALUE = 2")


@pytest.mark.parametrize("test", ["TYPE_CHECKING", "typing.TYPE_CHECKING"])
def test_an_import_for_types_is_not_followed_and_does_not_count(changes, folder, test):
    block = f"if {test}:\n    from perseus.layer import other\nelse:\n    import perseus.host\n"
    assert changes(WORK, "FACTOR = 2", f"FACTOR = 2\n{block}")
    assert not changes("perseus/layer/other.py", "VALUE = 1", "VALUE = 2")
    assert not changes(WORK, "import other", "import nothing")
    assert changes("perseus/host/__init__.py", "", "VALUE = 2")


def test_a_module_that_nothing_imports_is_followed_where_it_is_named(changes):
    assert not changes("perseus/layer/other.py", "VALUE = 1", "VALUE = 2")
    assert changes(
        "perseus/layer/other.py", "VALUE = 2", "VALUE = 3", modules=["perseus.layer.other"]
    )


def test_the_packages_of_a_module_count(changes):
    assert changes("perseus/layer/__init__.py", '"""A layer."""', "OPEN = True")


def test_what_writes_text_for_people_is_left_out(changes, folder):
    (folder / "job.py").write_text("from perseus.host.job import VALUE\n")
    assert not changes("perseus/host/job.py", "VALUE = 1", "VALUE = 2")


def test_of_a_registry_only_the_entries_are_left_out(changes):
    modules = ["perseus.study.runtimes"]
    path = "perseus/study/runtimes.py"
    assert not changes(path, "'one': ONNX", "'one': ONNX, 'two': ONNX", modules=modules)
    assert not changes(path, "RUNTIMES = {", "RUNTIMES: dict[str, str] = {", modules=modules)
    assert changes(path, "model.onnx", "model.onnx2", modules=modules)


def test_the_settings_of_an_experiment_are_left_out_but_not_what_it_runs(folder, changes):
    path = "perseus/study/experiments/one.py"
    (folder / path).parent.mkdir()
    (folder / path).parent.joinpath("__init__.py").touch()
    (folder / path).write_text("class Run:\n    rate = 1\n\nclass Settings:\n    most = 2\n")
    modules = ["perseus.study.experiments.one"]
    assert not changes(path, "most = 2", "most = 3", modules=modules)
    assert changes(path, "rate = 1", "rate = 2", modules=modules)


def test_a_file_that_is_no_python_counts_as_it_is(changes):
    assert changes("perseus/page.html", "1", "2", paths=["perseus/page.html"])


def test_missing_files_and_modules_are_told(folder):
    sources = Sources(folder)
    with pytest.raises(FileNotFoundError, match=r"none\.py"):
        sources.fingerprint(["none.py"])
    with pytest.raises(ModuleNotFoundError, match=r"perseus\.layer\.none"):
        sources.fingerprint(["job.py"], ["perseus.layer.none"])
    (folder / "job.py").write_text("import perseus.gone\n")
    with pytest.raises(ModuleNotFoundError, match=r"perseus\.gone"):
        Sources(folder).fingerprint(["job.py"])


def test_the_order_of_what_is_asked_for_does_not_matter(folder):
    sources = Sources(folder)
    modules = ["perseus.layer.other", "perseus.study.runtimes"]
    assert sources.fingerprint(["job.py"], modules) == sources.fingerprint(
        ["job.py"], modules[::-1]
    )


def test_the_same_code_elsewhere_has_the_same_fingerprint(folder, tmp_path_factory):
    other = tmp_path_factory.mktemp("other") / "scripts"
    folder.rename(other)
    moved = Sources(other).fingerprint(["job.py"])
    other.rename(folder)
    assert Sources(folder).fingerprint(["job.py"]) == moved


def test_children_are_the_modules_of_a_package(folder):
    sources = Sources(folder)
    assert sources.children("perseus.layer") == ["perseus.layer.other", "perseus.layer.work"]
    assert sources.children("perseus.none") == []
