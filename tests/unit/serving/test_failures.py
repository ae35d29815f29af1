"""Hints for servers that end before they are ready, by the words in their log."""

import pytest

from perseus.serving.failures import early_exit

NOEXEC = "Hint: the temporary folder is probably mounted noexec. Set TMPDIR to another folder."


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ("libtriton_python.so: failed to map segment from shared object", NOEXEC),
        ("error while loading shared libraries: a.so: failed to map segment from shared object",
         NOEXEC),
        ("something that nobody has seen before", ""),
    ],
)  # fmt: skip
def test_a_hint_is_given_for_words_that_are_known(tmp_path, line, hint):
    (tmp_path / "server.log").write_text(f"{line}\n")
    expected = ["the server ended before it was ready (exit code 1); the last lines of its log:"]
    expected += [line, *([hint] if hint else [])]
    assert str(early_exit(1, tmp_path / "server.log")) == "\n".join(expected)
