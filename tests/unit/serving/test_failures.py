"""Tests of hints for servers that end before they are ready, from the words in their logs."""

import pytest

from perseus.serving.failures import early_exit, never_ready

SHM = "Hint: /dev/shm is too small for the model instances; enlarge /dev/shm."
DISK = "Hint: a disk is full; free some space, or set TMPDIR to another folder."
STUB = (
    "Hint: the stub (the process of a Python backend) could not run, probably because the"
    " temporary folder is mounted noexec. Set TMPDIR to another folder."
)
NOEXEC = "Hint: the temporary folder is probably mounted noexec. Set TMPDIR to another folder."


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ("libtriton_python.so: failed to map segment from shared object", NOEXEC),
        ("error while loading shared libraries: a.so: failed to map segment from shared object",
         NOEXEC),
        ("Unable to initialize shared memory key 'a'. Error: No space left on device", SHM),
        ("write /tmp/x: No space left on device", DISK),
        ("I1127 Registered system shared memory region", ""),
        ("Failed to run python backend stub. Errno = 13", STUB),
        ("/tmp/triton_python_backend_stub: Permission denied", STUB),
        ("I1127 Starting Python backend stub: triton_python_backend_stub model.py", ""),
        ("stub: error while loading shared libraries: libpython3.12.so.1.0: cannot open",
         "Hint: the server needs the library libpython of this Python; in Debian and Ubuntu: "
         "apt-get install libpython3.11 (or the version that python3 has)."),
        ("something that nobody has seen before", ""),
    ],
)  # fmt: skip
def test_a_hint_is_given_for_words_that_are_known(tmp_path, line, hint):
    (tmp_path / "server.log").write_text(f"{line}\n")
    expected = ["the server ended before it was ready (exit code 1); the last lines of its log:"]
    expected += [line, *([hint] if hint else [])]
    assert str(early_exit(1, tmp_path / "server.log")) == "\n".join(expected)


LOADING = """\
I1127 model_lifecycle.cc:472] "loading: resnet50:1"
I1127 model_lifecycle.cc:472] "loading: resnet18:1"
I1127 model_lifecycle.cc:839] "successfully loaded 'resnet18'"
"""


@pytest.mark.parametrize(
    ("log", "hint"),
    [
        (
            LOADING,
            "Hint: the server was still loading resnet50. With more cores, models load faster.",
        ),
        (LOADING + "E1127 failed to load 'resnet50' version 1: Internal\n", ""),
        ("I1127 Started HTTPService at 127.0.0.1:8000\n", ""),
        ("", ""),
        (LOADING + "a.so: failed to map segment from shared object\n", NOEXEC),
    ],
    ids=["one is loading", "it was refused", "something else waits", "no word", "known words"],
)
def test_more_cores_are_a_hint_for_models_that_are_loading_alone(tmp_path, log, hint):
    path = tmp_path / "server.log"
    path.write_text(log)
    first, *rest = str(never_ready(30, path)).splitlines()
    assert first == f"the server was not ready after 30 s; the end of {path}:"
    assert [line for line in rest if line.startswith("Hint:")] == ([hint] if hint else [])
