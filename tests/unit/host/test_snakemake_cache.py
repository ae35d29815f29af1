"""Tests that the cached functions of Snakemake return the same values as the original functions."""

from functools import partial
from types import SimpleNamespace

import pytest
from snakemake import common, rules, script, sourcecache

from perseus.host.snakemake_cache import cache_functions

NAMES = {
    "snakemake.common": (common, "get_function_params"),
    "snakemake.rules": (rules, "get_function_params"),
    "snakemake.script": (script, "get_source"),
    "snakemake.sourcecache": (sourcecache, "parse_uri"),
}
PLAIN = {of: getattr(module, name) for of, (module, name) in NAMES.items()}


@pytest.fixture
def asked():
    """Return modules with cached functions of Snakemake, and the calls that missed the cache."""
    asked = []

    def counted(plain):
        if plain is script.get_source:
            return lambda path, sourcecache, basedir=None, wildcards=None, params=None: (
                asked.append(path) or plain(path, sourcecache, basedir, wildcards, params)
            )
        if plain is sourcecache.parse_uri:
            return lambda path_or_uri: asked.append(path_or_uri) or plain(path_or_uri)
        return lambda func: asked.append(func) or plain(func)

    modules = {of: SimpleNamespace(**{name: counted(PLAIN[of])}) for of, (_, name) in NAMES.items()}
    cache_functions(modules)
    return SimpleNamespace(
        params=modules["snakemake.rules"].get_function_params,
        source=modules["snakemake.script"].get_source,
        uri=modules["snakemake.sourcecache"].parse_uri,
        anew=asked,
    )


class OfAll:
    def method(self, wildcards, input=None):
        pass

    def __call__(self, wildcards, attempt):
        pass


FUNCTIONS = {
    "function": lambda wildcards, threads=3, **others: None,
    "method": OfAll().method,
    "function of methods": OfAll.method,
    "partial": partial(lambda wildcards, output: None, output=1),
    "object": OfAll(),
    "class": OfAll,
    "built-in": len,
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_has_its_own_parameters_each_time(asked, name):
    """A bound method has one parameter less than its function, whether Snakemake asks for the
    method or for the function first."""
    func, plain = FUNCTIONS[name], PLAIN["snakemake.rules"]
    for each in (func, OfAll.method, OfAll().method, func):
        assert asked.params(each) == plain(each)
        assert list(asked.params(each)) == list(plain(each))


def test_a_function_is_inspected_once_and_so_are_the_methods_of_all_objects(asked):
    for each in (*[FUNCTIONS["function"]] * 3, *(OfAll().method for _ in range(3))):
        asked.params(each)
    assert len(asked.anew) == 2


def test_parameters_that_are_said_later_count(asked):
    def func(*args):
        pass

    assert list(asked.params(func)) == ["args"]
    common.overwrite_function_params(func, ["wildcards", "input"])
    assert asked.params(func) == ["wildcards", "input"]
    common.overwrite_function_params(func, ["wildcards"])
    assert asked.params(func) == ["wildcards"]


def cache(folder):
    (folder / "runtime").mkdir(parents=True)
    return sourcecache.SourceCache(folder / "cache", folder / "runtime")


@pytest.fixture
def scripts(tmp_path):
    """Return a folder with two scripts."""
    for name in ("one", "two"):
        (tmp_path / f"{name}.py").write_text(f"print('{name}')")
    return sourcecache.LocalSourceFile(str(tmp_path))


def test_a_script_is_read_once(asked, scripts, tmp_path):
    sources = cache(tmp_path / "first")
    found = {asked.source("one.py", sources, scripts, {"kind": n}, {})[1] for n in range(3)}
    assert found == {"print('one')"} and asked.anew == ["one.py"]
    plain = PLAIN["snakemake.script"]("one.py", sources, scripts, {}, {})
    assert asked.source("one.py", sources, scripts, {}, {}) == plain


def test_other_scripts_folders_and_caches_are_not_mixed_up(asked, scripts, tmp_path):
    sources = cache(tmp_path / "first")
    assert asked.source("one.py", sources, scripts)[1] == "print('one')"
    assert asked.source("two.py", sources, scripts)[1] == "print('two')"
    other = tmp_path / "other"
    other.mkdir()
    (other / "one.py").write_text("print('another')")
    of_other = sourcecache.LocalSourceFile(str(other))
    assert asked.source("one.py", sources, of_other)[1] == "print('another')"
    (tmp_path / "one.py").write_text("print('edited')")
    assert asked.source("one.py", sources, scripts)[1] == "print('one')"
    assert asked.source("one.py", cache(tmp_path / "second"), scripts)[1] == "print('edited')"


def test_a_script_whose_path_has_wildcards_or_params_is_that_of_its_job(asked, scripts, tmp_path):
    sources = cache(tmp_path / "first")
    for kind in ("one", "two", "one"):
        of_job = SimpleNamespace(kind=kind)
        for path in ("{wildcards.kind}.py", "{params.kind}.py"):
            assert asked.source(path, sources, scripts, of_job, of_job)[1] == f"print('{kind}')"


def test_a_script_that_is_not_there_is_looked_for_again(asked, scripts, tmp_path):
    sources = cache(tmp_path / "first")
    with pytest.raises(Exception, match=r"three\.py"):
        asked.source("three.py", sources, scripts)
    (tmp_path / "three.py").write_text("3")
    assert asked.source("three.py", sources, scripts)[1] == "3"


def test_an_address_is_taken_apart_once(asked):
    for uri in ("/a/b.py", "https://example.org/c.py", "docker://d", "/a/b.py"):
        assert tuple(asked.uri(uri)) == tuple(PLAIN["snakemake.sourcecache"](uri))
    assert len(asked.anew) == 3


def test_the_installed_snakemake_has_all_that_is_remembered():
    """If Snakemake renames a function, Perseus does not cache the results of the function, and
    plans take longer."""
    modules = {of: SimpleNamespace(**{n: PLAIN[of]}) for of, (_, n) in NAMES.items()}
    cache_functions(modules)
    assert not [of for of, (_, n) in NAMES.items() if getattr(modules[of], n) is PLAIN[of]]


def test_a_snakemake_without_these_functions_or_with_others_is_left_as_it_is():
    cache_functions({})

    def get_source(path, sourcecache, basedir=None, wildcards=None, params=None, attempt=None):
        pass

    modules = {"snakemake.script": SimpleNamespace(get_source=get_source)}
    modules["snakemake.common"] = SimpleNamespace()
    cache_functions(modules)
    assert vars(modules["snakemake.script"]) == {"get_source": get_source}
    assert vars(modules["snakemake.common"]) == {}


def test_twice_is_once():
    """A workflow may load this module twice."""
    module = SimpleNamespace(get_function_params=PLAIN["snakemake.rules"])
    cache_functions({"snakemake.rules": module})
    first = module.get_function_params
    cache_functions({"snakemake.rules": module})
    assert module.get_function_params is first
