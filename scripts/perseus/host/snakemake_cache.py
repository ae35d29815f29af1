"""Cache the results of functions that Snakemake calls for each job of a rule.

For a rule with ten thousand jobs, Snakemake reads the same script and inspects the same functions
for each job, which takes a fifth of the planning time. The cached results do not depend on the
workflow that contains the rule, so the caches are also correct for workflows that import this
workflow as a module.

Other versions of Snakemake may define the functions differently. Therefore the module caches only
functions that have the expected parameters.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import lru_cache, wraps
from types import FunctionType, MethodType
from typing import Any, Final
from weakref import WeakKeyDictionary

Function = Callable[..., Any]


def cache_functions(modules: Mapping[str, Any]) -> None:
    """Replace functions of Snakemake in `modules` (sys.modules) by cached versions.

    The function does not change functions that are already cached.
    """
    for module, name, arguments, caching in _FUNCTIONS:
        plain = getattr(modules.get(module), name, None)
        if plain is None or hasattr(plain, "__wrapped__"):
            continue
        if tuple(inspect.signature(plain).parameters) == arguments:
            setattr(modules[module], name, caching(plain))


def _by_function(plain: Function) -> Function:
    """Return `get_function_params` with a cache, so that Snakemake inspects each function once.

    For a function with attributes, the cache stores no result, because the result could become
    outdated: snakemake.common.overwrite_function_params stores changed parameters in an attribute.
    """
    of_functions: WeakKeyDictionary[FunctionType, Any] = WeakKeyDictionary()
    of_methods: WeakKeyDictionary[FunctionType, Any] = WeakKeyDictionary()

    @wraps(plain)
    def cached(func: Any) -> Any:
        is_method = isinstance(func, MethodType)
        known, function = (of_methods, func.__func__) if is_method else (of_functions, func)
        if type(function) is not FunctionType or function.__dict__:
            return plain(func)
        found = known.get(function)
        if found is None:
            found = known[function] = plain(func)
        return found

    return cached


def _by_script(plain: Function) -> Function:
    """Return `get_source` with a cache, so that Snakemake reads each script only once.

    If a path has wildcards in braces, the cache stores no result, because each job may have another
    script.
    """
    of_caches: WeakKeyDictionary[Any, dict[Any, Any]] = WeakKeyDictionary()

    @wraps(plain)
    def cached(
        path: Any, sourcecache: Any, basedir: Any = None, wildcards: Any = None, params: Any = None
    ) -> Any:
        if type(path) is not str or "{" in path or "}" in path:
            return plain(path, sourcecache, basedir, wildcards, params)
        known = of_caches.setdefault(sourcecache, {})
        key = path, type(basedir), basedir
        if key not in known:
            known[key] = plain(path, sourcecache, basedir, wildcards, params)
        return known[key]

    return cached


_FUNCTIONS: Final[tuple[tuple[str, str, tuple[str, ...], Callable[[Function], Function]], ...]] = (
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
"""The functions to cache: module, name, parameters, and the wrapper that adds the cache."""
