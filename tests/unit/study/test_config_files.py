"""Tests of configuration files and of values on the command line."""

import json

import pytest
import yaml

from perseus.study.config_files import (
    doubled_keys,
    keys_of_profile,
    merged,
    naming_profile,
    typed,
)

DEFAULT = {"study": "a", "models": [{"name": "m"}], "costs": {"pricing": ["spot"], "prices": "p"}}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, DEFAULT),
        ({"study": "b"}, DEFAULT | {"study": "b"}),
        ({"costs": {"prices": "q"}}, DEFAULT | {"costs": {"pricing": ["spot"], "prices": "q"}}),
        ({"costs": {}}, DEFAULT),
        ({"costs": None, "models": []}, DEFAULT | {"costs": None, "models": []}),
        ({"models": {}}, DEFAULT | {"models": {}}),  # refused, since it is no list
    ],
)
def test_mappings_merge_and_all_else_replaces_what_was_there(given, expected):
    assert merged(DEFAULT, given) == expected


TEXTS = ("resnet*", "*", "a: b # c", "<<", "2026-02-30")


@pytest.mark.parametrize(
    ("value", "given", "expected"),
    [
        ({"repeats": "3", "arrivals": {"cv": "0.5"}}, ..., {"repeats": 3, "arrivals": {"cv": 0.5}}),
        (
            [{"name": "m", "sla": {"latency_ms": "2"}}],
            ...,
            [{"name": "m", "sla": {"latency_ms": 2}}],
        ),
        ({"shared_memory": "true", "prices": "null"}, ..., {"shared_memory": True, "prices": None}),
        ([*TEXTS], ..., [*TEXTS]),
        ("3", ..., "3"),  # Snakemake itself reads a value outside of lists and mappings
        # values of a configuration file stay unchanged
        ({"preset": "1", "repeats": "3"}, {"repeats": "3"}, {"preset": "1", "repeats": 3}),
        ([{"name": "1"}], None, [{"name": "1"}]),
        ({"client": {"processes": "2"}}, {"client": "2"}, {"client": {"processes": "2"}}),
    ],
)
def test_the_parts_of_a_value_on_the_command_line_have_the_types_of_yaml(value, given, expected):
    assert typed(value, value if given is ... else given) == expected


@pytest.fixture
def problems(tmp_path):
    """Return a function that lists the problems of a configuration file with a given text."""

    def of(text):
        path = tmp_path / "config.yaml"
        path.write_text(text)
        return [problem.removeprefix(str(path)) for problem in doubled_keys(path)]

    return of


@pytest.mark.parametrize(
    ("text", "key", "lines"),
    [
        ("study: a\nmodels: []\nstudy: b\n", "study", (1, 3)),
        ("servers:\n  - {name: a, cores: 1,\n     cores: 2}\n", "cores", (2, 3)),
        ("costs:\n  prices: a\n  'prices': b\n", "prices", (2, 3)),
        ('{"study": "a",\n "study": "b"}', "study", (1, 2)),
    ],
)
def test_a_key_that_stands_twice_is_told_with_both_lines(problems, text, key, lines):
    first, last = lines
    content = f" line {last}: {key!r} is already in line {first} (remove one of the lines)"
    assert problems(text) == [content]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a: {x: 1}\nb: {x: 1}\n1: a\n'1': b\n",
        "a: &a {x: 1}\nb: &b {y: 1}\nc:\n  <<: *a\n  <<: *b\n  x: 2\nd: [*a, *a]\n",
        "a: &a [*a]\n",
        "__use_yte__: true\n__variables__: {n: 1}\n?if n:\n  study: a\n?else:\n  study: b\n",
        "? [a, b]\n: 1\n",
        "a: !of_mine {x: 1}\n",
        json.dumps(DEFAULT, indent="\t"),
    ],
)
def test_what_snakemake_takes_is_no_problem(problems, text):
    assert problems(text) == []


def test_a_file_that_is_no_yaml_is_left_to_snakemake(problems):
    text = "a: [\n"
    with pytest.raises(yaml.YAMLError):
        yaml.safe_load(text)
    assert problems(text) == []


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["snakemake", "--configfile", "a.yaml", "--cores", "2"], {"email", "seed"}),
        (["snakemake", "--config", "email=x"], set()),
        (["snakemake", "--config=email=x"], set()),
        (["snakemake", "-C", "email=x"], set()),
    ],
)
def test_keys_are_of_a_profile_unless_the_command_line_sets_them(arguments, expected):
    assert keys_of_profile({"email": "x", "seed": -3}, arguments) == expected


def test_a_problem_of_a_key_that_a_profile_sets_names_the_profile():
    text = (
        "a Snakemake profile, such as profiles/default or the profile in the variable"
        " SNAKEMAKE_PROFILE, sets this key"
    )
    assert naming_profile("email: unknown key", {"email"}) == (
        f"email: unknown key ({text} in its section `config:`; remove the key there, or run with"
        " --profile none)"
    )
    assert text in naming_profile("costs.pricing[0]: 'x' is not known", {"costs"})
    assert naming_profile("emails: unknown key", {"email"}) == "emails: unknown key"
