"""The conclusions on tables, and which sentences the code of a conclusion has."""

import ast
import re
from pathlib import Path

from perseus.host import parquet
from perseus.report.conclusions import conclusions
from perseus.results.tables import TABLES, module_of


def tables_of(rows):
    """All tables of a study, of rows by table, in which columns may be missing. To read only."""
    return {name: table_of(name, rows.get(name, [])) for name in TABLES}


MADE = {}
"""By their rows, since most studies of a test differ in one table."""


def table_of(name, rows):
    key = name, repr(rows)
    if key not in MADE:
        schema = module_of(name).SCHEMA
        full = [{column: row.get(column) for column in schema.names} for row in rows]
        MADE[key] = parquet.table(full, schema.arrow).to_pandas()
    return MADE[key]


SAID = {}
"""The text for tables, by their identity, and the tables: many cases are of the same ones."""


def sentences_of(tables):
    if id(tables) not in SAID:
        SAID[id(tables)] = tables, said_of(tables)
    return SAID[id(tables)][1]


def said_of(tables):
    """All that is answered, as one text; what is summed up, too. No number that is not there has
    been written as one."""
    each = [part for conclusion in conclusions(tables) for part in (conclusion, *conclusion.parts)]
    found = " ".join(text for part in each for text in (part.headline, *part.sentences))
    assert not re.search(r"\b(nan|None|inf|NaT)\b", found)
    return found


def fragments(module):
    """The texts of a module's functions and of its constants, between what is filled in; of more
    than one word, so that they are no names."""
    tree = ast.parse(Path(module.__file__).read_text())
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef)
    docstrings = [
        ast.get_docstring(n, clean=False) for n in ast.walk(tree) if isinstance(n, documented)
    ]
    after = [n.value.value for n in ast.walk(tree) if isinstance(n, ast.Expr)
             and isinstance(n.value, ast.Constant)]  # fmt: skip
    keys = [k.value for n in ast.walk(tree) if isinstance(n, ast.Dict) for k in n.keys
            if isinstance(k, ast.Constant)]  # fmt: skip
    texts = [n.value for n in ast.walk(tree) if isinstance(n, ast.Constant)]
    return [
        text.strip()
        for text in texts
        if isinstance(text, str)
        and text not in [*docstrings, *after, *keys]
        and re.search(r"[A-Za-z]{2,}\W+[A-Za-z]{2,}", text)
    ]


def stands_only_where_true(sentence, true, false):
    """A sentence, tables that make it true, and tables that make it false."""
    assert sentence in sentences_of(true), sentences_of(true)
    assert sentence not in sentences_of(false), sentences_of(false)


def without_case(module, cases):
    """The texts of a module that no sentence of `cases` has; a module without any text fails."""
    found = fragments(module)
    assert found
    return [t for t in found if not any(t in sentence or sentence in t for sentence in cases)]
