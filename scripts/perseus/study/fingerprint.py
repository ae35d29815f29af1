"""Compute fingerprints (hashes) of the code that a job runs. If the fingerprint changes, Snakemake
repeats the job.

The fingerprint of a script covers its syntax tree, and the modules of Perseus that the script
imports, directly or indirectly. The fingerprint does not cover comments, docstrings, formatting, or
descriptions of settings and columns: edits of these texts repeat no job. This module finds import
statements in the syntax tree. If code imports a module by name at run time, the caller of
`Sources.fingerprint` must name this module.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any, Final

PACKAGE: Final = "perseus"

LEFT_OUT: Final = (
    # These modules only show information: no result depends on the code in these modules.
    "perseus.host.job",
    "perseus.host.logs",
    "perseus.measurement.progress*",
    "perseus.serving.remote_failures",
    "perseus.host.machine.PACKAGES",
    "perseus.study.hints",
    # An edit of these classes affects a cell only if it also changes the task of the cell.
    "perseus.study.experiments.*Settings",
    # A job uses only one entry of each collection below. The task of the job contains the entry, or
    # the entry determines the code and versions on which the job depends.
    "perseus.study.experiments.KINDS",
    "perseus.study.experiments.SEARCHES",
    "perseus.study.experiments.OTHER_KINDS",
    "perseus.study.launchers.LAUNCHERS",
    "perseus.study.presets.PRESETS",
    "perseus.study.runtimes.RUNTIMES",
)
"""Patterns of the names of modules, classes and values that no fingerprint covers."""

_DOCUMENTING: Final = {
    "Field": frozenset({"description", "examples", "title"}),
    "column": frozenset({"unit", "meaning"}),
}
"""For each function (`pydantic.Field`, `host.parquet.column`), the keyword arguments that do not
affect results."""

_COUNTED: Final = {"column": 2}
"""For each function, the number of leading positional arguments that affect results. The
fingerprint does not cover the other positional arguments."""


@dataclass(frozen=True)
class _Source:
    """A source file: the hash of its code, and the modules that it imports."""

    digest: str
    imports: frozenset[str]


class Sources:
    """The source files in a folder and its subfolders. Perseus reads each file at most once.

    `folder` must contain the scripts of the jobs and the package `perseus`.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._source = cache(self._read)
        self._fingerprint = cache(self._combined)
        self._children = cache(self._list)
        self._find = cache(self._found)

    def fingerprint(self, paths: Collection[str], modules: Collection[str] = ()) -> str:
        """Return one fingerprint of the files `paths`, the modules `modules`, and all modules that
        these files and modules import.

        If a file is not Python code, the fingerprint covers its whole content. Raises
        ModuleNotFoundError for a missing module, FileNotFoundError for a missing file, and
        SyntaxError for invalid Python.
        """
        return self._fingerprint(frozenset(paths), frozenset(modules))

    def modules(self, paths: Collection[str], modules: Collection[str] = ()) -> set[str]:
        """Return the names of all modules that the fingerprint of `paths` and `modules` covers."""
        found: set[str] = set()
        todo = {name for path in paths for name in self._source(path).imports}.union(modules)
        while todo:
            name = todo.pop()
            if name in found or _is_left_out(name):
                continue
            found.add(name)
            todo |= self._source(self._path(name)).imports
            if parent := name.rpartition(".")[0]:
                todo.add(parent)
        return found

    def children(self, package: str) -> list[str]:
        """Return the names of the modules of a package; empty if the package does not exist."""
        return self._children(package)

    def files(self, folder: str) -> list[str]:
        """Return the paths of all files in a subfolder of the source folder."""
        found = (self._folder / folder).iterdir()
        return sorted(f"{folder}/{path.name}" for path in found if path.is_file())

    def _combined(self, paths: frozenset[str], modules: frozenset[str]) -> str:
        files = {*paths, *map(self._path, self.modules(paths, modules))}
        lines = "".join(f"{path} {self._source(path).digest}\n" for path in sorted(files))
        return hashlib.sha256(lines.encode()).hexdigest()[:16]

    def _list(self, package: str) -> list[str]:
        folder = self._folder / package.replace(".", "/")
        return sorted(f"{package}.{path.stem}" for path in folder.glob("[!_]*.py"))

    def _found(self, module: str) -> str | None:
        """Return the path of a module's file relative to the source folder; None without a file."""
        path = module.replace(".", "/")
        found = (each for each in (f"{path}.py", f"{path}/__init__.py") if self._is_file(each))
        return next(found, None)

    def _is_file(self, path: str) -> bool:
        return (self._folder / path).is_file()

    def _path(self, module: str) -> str:
        path = self._find(module)
        if path is None:
            raise ModuleNotFoundError(f"there is no module {module} in {self._folder}")
        return path

    def _read(self, path: str) -> _Source:
        content = (self._folder / path).read_bytes()
        if not path.endswith(".py"):
            return _Source(hashlib.sha256(content).hexdigest(), frozenset())
        tree = ast.parse(content, str(self._folder / path))
        parts = Path(path).with_suffix("").parts
        module = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        tree.body = [node for node in tree.body if not _is_left_out(f"{module}.{_name(node)}")]
        statements: list[ast.Import | ast.ImportFrom] = []
        digest = hashlib.sha256(repr(_code(tree, statements)).encode()).hexdigest()
        imports = (self._imports(each, package=parts[:-1]) for each in statements)
        return _Source(digest, frozenset(chain.from_iterable(imports)))

    def _imports(
        self, node: ast.Import | ast.ImportFrom, package: tuple[str, ...]
    ) -> Iterator[str]:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if _ours(alias.name))
            return
        base = package[: len(package) + 1 - node.level] if node.level else ()
        origin = ".".join((*base, *([node.module] if node.module else [])))
        if _ours(origin):
            yield origin
            names = (f"{origin}.{alias.name}" for alias in node.names)
            yield from (name for name in names if self._find(name))


@cache
def _is_left_out(name: str) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in LEFT_OUT)


def _name(statement: ast.stmt) -> str:
    """Return the name of the class or variable that a statement defines; empty for other
    statements."""
    match statement:
        case ast.ClassDef(name=name):
            return name
        case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
            return name
    return ""


def _ours(module: str) -> bool:
    return module.partition(".")[0] == PACKAGE


def _is_type_checking(test: ast.expr) -> bool:
    return _is_named(test, "TYPE_CHECKING") or (
        isinstance(test, ast.Attribute) and test.attr == "TYPE_CHECKING"
    )


def _is_named(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _code(node: Any, imports: list[ast.Import | ast.ImportFrom]) -> Any:
    """Convert a syntax tree into nested lists, which are the same in all versions of Python.

    The function appends all import statements to `imports`. The result leaves out docstrings, and
    code that only type checkers read. The result also leaves out empty fields, because new versions
    of Python add empty fields to the tree.
    """
    if isinstance(node, list):
        return [_code(item, imports) for item in node if not _is_text(item)]
    if not isinstance(node, ast.AST):
        return node
    match node:
        case ast.Import() | ast.ImportFrom():
            imports.append(node)
        case ast.If(test=test) if _is_type_checking(test):
            return ["If", _code(node.orelse, imports)]
        case ast.Call(func=ast.Name(id=name)) if name in _DOCUMENTING:
            kept = [each for each in node.keywords if each.arg not in _DOCUMENTING[name]]
            arguments = _code(node.args[: _COUNTED.get(name)], imports)
            return [name, arguments, _code(kept, imports)]
    code: list[Any] = [type(node).__name__]
    for name in node._fields:
        value = getattr(node, name, None)
        if value is not None and value != [] and name != "ctx":  # the position determines "ctx"
            code += name, _code(value, imports)
    return code


def _is_text(node: Any) -> bool:
    """Return whether a node is a docstring."""
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )
