"""Tests that files, links and names in the documentation exist."""

import re
from pathlib import Path

import pytest
import yaml

from perseus.peak.outcome import Outcome
from perseus.peak.verdict import Verdict
from perseus.study.validation import validated

ROOT = Path(__file__).parents[2]
PAGES = sorted(path.relative_to(ROOT) for path in (*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")))
FOLDERS = "benchmarks|config|docs|envs|monitoring|profiles|report|rules|scripts|tests"


def anchors(page):
    """Return the anchors of the headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_a_link_leads_to_a_file_and_a_heading(page):
    for link in re.findall(r"\]\(([^)\s]+)\)", (ROOT / page).read_text()):
        if "://" in link:
            continue
        path, _, heading = link.partition("#")
        target = (ROOT / page).parent / path if path else ROOT / page
        assert target.exists(), link
        assert not heading or heading in anchors(target), link


# The changelog also names removed files.
@pytest.mark.parametrize("page", [p for p in PAGES if p.name != "CHANGELOG.md"], ids=str)
def test_a_file_that_is_named_is_there(page):
    """Check names such as `scripts/…` between backticks and without a placeholder."""
    for name in re.findall(rf"`((?:{FOLDERS})/[\w./-]+)`", (ROOT / page).read_text()):
        assert (ROOT / name).exists(), name


EXAMPLES = [
    pytest.param(block, id=f"{page}-{i}")
    for page in PAGES
    for i, block in enumerate(
        re.findall(r"```yaml\n(.*?)```", (ROOT / page).read_text(), re.DOTALL)
    )
]


@pytest.mark.parametrize("block", EXAMPLES)
def test_an_example_of_a_configuration_has_the_form_of_one(block):
    """Each section of the example replaces the section with the same name in the default study."""
    default = yaml.safe_load((ROOT / "config/config.yaml").read_text())
    _, problems, _ = validated({**default, **yaml.safe_load(block)})
    assert problems == []


@pytest.mark.parametrize("verdict", [*Verdict, *Outcome])
def test_the_reference_explains_every_verdict(verdict):
    assert f"\n| `{verdict}` |" in (ROOT / "docs/reference/verdicts.md").read_text()


def test_the_reference_names_every_target_and_rule():
    makefile = (ROOT / "Makefile").read_text()
    targets = re.search(r"^\.PHONY: (all .*)$", makefile, re.M).group(1).split()
    workflow = [(ROOT / "Snakefile"), *(ROOT / "rules").glob("*.smk")]
    rules = re.findall(r"^rule (\w+):", "\n".join(file.read_text() for file in workflow), re.M)
    text = (ROOT / "docs/reference/targets.md").read_text()
    unnamed = [name for name in targets if f"`make {name}`" not in text]
    assert unnamed + [name for name in rules if f"`{name}`" not in text] == []
