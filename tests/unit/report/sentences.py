"""Functions that return the conclusions on tables, and the sentences in their code."""

import ast
import re
from pathlib import Path

from perseus.host import parquet
from perseus.report.conclusions import conclusions
from perseus.results.tables import TABLES, module_of


def tables_of(rows):
    """Return all tables of a study. `rows` contains the rows of each table by its name.

    Columns may be missing. Tests only read the tables.
    """
    return {name: table_of(name, rows.get(name, [])) for name in TABLES}


MADE = {}
"""Tables already made, by name and rows. Most studies of a test differ in one table only."""


def table_of(name, rows):
    key = name, repr(rows)
    if key not in MADE:
        schema = module_of(name).SCHEMA
        full = [{column: row.get(column) for column in schema.names} for row in rows]
        MADE[key] = parquet.table(full, schema.arrow).to_pandas()
    return MADE[key]


SAID = {}
"""For each id of the tables of a study: the tables, and the text of the conclusions. Many cases use
the same tables."""


def sentences_of(tables):
    if id(tables) not in SAID:
        SAID[id(tables)] = tables, said_of(tables)
    return SAID[id(tables)][1]


def said_of(tables):
    """Return all conclusions and their parts as one text, and check that no number is missing."""
    each = [part for conclusion in conclusions(tables) for part in (conclusion, *conclusion.parts)]
    found = " ".join(text for part in each for text in (part.headline, *part.sentences))
    assert not re.search(r"\b(nan|None|inf|NaT)\b", found)
    return found


def fragments(module):
    """Return the texts of a module's functions and constants, split at inserted values.

    The result omits texts of one word, because most of them are names.
    """
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
    """Check that the conclusions on `true` contain the sentence, and those on `false` do not."""
    assert sentence in sentences_of(true), sentences_of(true)
    assert sentence not in sentences_of(false), sentences_of(false)


def without_case(module, cases):
    """Return the texts of a module for which `cases` has no sentence.

    The function fails if the module has no texts.
    """
    found = fragments(module)
    assert found
    return [t for t in found if not any(t in sentence or sentence in t for sentence in cases)]
