"""What Snakemake asks itself anew for each job of a rule, answered once.

Where a rule has ten thousand jobs, reading its script and inspecting its functions for each of them
takes a fifth of the time of a plan. What is remembered depends on nothing but what it is
remembered by, so that the rules of a workflow with this one as a module get the answers that they
get anyway. A Snakemake that has no such question, or one with more arguments, is left as it is.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import lru_cache, wraps
from types import FunctionType, MethodType
from typing import Any, Final
from weakref import WeakKeyDictionary

Question = Callable[..., Any]


def remember(modules: Mapping[str, Any]) -> None:
    """Have the functions of Snakemake that are in `modules`, as in sys.modules, remember what they
    have answered. Once is enough; again does nothing."""
    for module, name, arguments, remembering in _QUESTIONS:
        plain = getattr(modules.get(module), name, None)
        if plain is None or hasattr(plain, "__wrapped__"):
            continue
        if tuple(inspect.signature(plain).parameters) == arguments:
            setattr(modules[module], name, remembering(plain))


def _by_function(plain: Question) -> Question:
    """What parameters a function has. One that somebody gave attributes may have got others by
    them, such as those of snakemake.common.overwrite_function_params."""
    of_functions: WeakKeyDictionary[FunctionType, Any] = WeakKeyDictionary()
    of_methods: WeakKeyDictionary[FunctionType, Any] = WeakKeyDictionary()

    @wraps(plain)
    def remembered(func: Any) -> Any:
        is_method = isinstance(func, MethodType)
        known, function = (of_methods, func.__func__) if is_method else (of_functions, func)
        if type(function) is not FunctionType or function.__dict__:
            return plain(func)
        found = known.get(function)
        if found is None:
            found = known[function] = plain(func)
        return found

    return remembered


def _by_script(plain: Question) -> Question:
    """What a script is: the copy that a source cache has once made of it. Where braces stand in its
    path, it is another one for each job."""
    of_caches: WeakKeyDictionary[Any, dict[Any, Any]] = WeakKeyDictionary()

    @wraps(plain)
    def remembered(
        path: Any, sourcecache: Any, basedir: Any = None, wildcards: Any = None, params: Any = None
    ) -> Any:
        if type(path) is not str or "{" in path or "}" in path:
            return plain(path, sourcecache, basedir, wildcards, params)
        known = of_caches.setdefault(sourcecache, {})
        key = path, type(basedir), basedir
        if key not in known:
            known[key] = plain(path, sourcecache, basedir, wildcards, params)
        return known[key]

    return remembered


_QUESTIONS: Final[tuple[tuple[str, str, tuple[str, ...], Callable[[Question], Question]], ...]] = (
    ("snakemake.common", "get_function_params", ("func",), _by_function),
    ("snakemake.rules", "get_function_params", ("func",), _by_function),
    (
        "snakemake.script",
        "get_source",
        ("path", "sourcecache", "basedir", "wildcards", "params"),
        _by_script,
    ),
    ("snakemake.sourcecache", "parse_uri", ("path_or_uri",), lru_cache(1000)),
)
"""Where each stands, its name, its arguments, and what makes it remember."""
