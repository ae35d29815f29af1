"""Install NVIDIA's AIPerf in an environment of its own, run the program, and read its reports.

AIPerf is made for language models. For a Triton model, it sends the same JSON body with each
request (endpoint `raw`), and treats the name of the model in the response as the generated text.
AIPerf does not run without a tokenizer, although the benchmark counts no tokens, so the benchmark
writes a tokenizer with a single word.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from benchmarks.perf_analyzer import FetchError, pinned

VERSION = "0.13.0"
NAME = f"AIPerf {VERSION}"
TOKENIZER = {
    "tokenizer.json": {
        "version": "1.0",
        "added_tokens": [],
        "pre_tokenizer": {"type": "Whitespace"},
        "model": {"type": "WordLevel", "vocab": {"x": 0}, "unk_token": "x"},
    },
    "tokenizer_config.json": {"tokenizer_class": "PreTrainedTokenizerFast", "unk_token": "x"},
}


@dataclass(frozen=True)
class Found:
    """Result of a search: the highest rate within the SLA (0 if no rate keeps it), and run time."""

    peak_rps: float
    wall_s: float


@dataclass(frozen=True)
class AIPerf:
    """The installed program, a folder for its files, and the cores on which it runs."""

    program: Path
    folder: Path
    cores: tuple[int, ...]

    def search(
        self, http_address: str, model: str, shape: Sequence[int], options: Sequence[str]
    ) -> Found:
        """Run a search to its end. Raises RuntimeError if AIPerf reports no boundary."""
        start_s = time.monotonic()
        with self.running(http_address, model, shape, options) as process:
            output, _ = process.communicate()
        history = self._artifacts / "search_history.json"
        if process.returncode or not history.exists():
            raise RuntimeError(f"AIPerf ended with {process.returncode}:\n{output[-2000:]}")
        boundary = json.loads(history.read_text())["boundary_summary"]["feasible_max"]
        peak_rps = float(boundary["value"]) if boundary else 0.0
        return Found(peak_rps, time.monotonic() - start_s)

    @contextmanager
    def running(
        self, http_address: str, model: str, shape: Sequence[int], options: Sequence[str]
    ) -> Iterator[subprocess.Popen[str]]:
        """Start AIPerf with float32 inputs of zeros in the shape `shape`, yield its process, and
        kill its processes at the end of the context."""
        self.folder.mkdir(parents=True, exist_ok=True)
        body, tokenizer = self.folder / "bodies.jsonl", self.folder / "tokenizer"
        body.write_text(json.dumps(request(shape), separators=(",", ":")) + "\n")
        tokenizer.mkdir(exist_ok=True)
        for name, content in TOKENIZER.items():
            (tokenizer / name).write_text(json.dumps(content))
        arguments = ["profile", "--model", model, "--endpoint-type", "raw"]
        arguments += ["--url", f"http://{http_address}/v2/models/{model}/infer"]
        arguments += ["--input-file", str(body), "--custom-dataset-type", "raw-payload"]
        arguments += ["--extra-inputs", "response_field:model_name"]
        arguments += ["--tokenizer", str(tokenizer), "--ui", "none"]
        arguments += ["--output-artifact-dir", str(self._artifacts), *options]
        process = subprocess.Popen(
            pinned(self.cores, [str(self.program), *arguments]),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        try:
            yield process
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    @property
    def _artifacts(self) -> Path:
        return self.folder / "artifacts"


def request(shape: Sequence[int]) -> dict[str, object]:
    """Return the body of a request. AIPerf requires the key `messages`, which Triton ignores."""
    count = 1
    for size in shape:
        count *= size
    tensor = {"name": "input", "shape": list(shape), "datatype": "FP32", "data": [0.0] * count}
    return {"inputs": [tensor], "messages": []}


def install(folder: Path, cores: Sequence[int]) -> AIPerf:
    """Install AIPerf if it is missing, and return it. Raises FetchError."""
    environment = folder / f"aiperf-{VERSION}"
    program = environment / "bin/aiperf"
    if not program.exists():
        for command in (
            [sys.executable, "-m", "venv", "--clear", str(environment)],
            [str(environment / "bin/pip"), "install", "--quiet", f"aiperf=={VERSION}"],
        ):
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                raise FetchError(f"'{' '.join(command)}' failed: {done.stderr.strip()}")
    return AIPerf(program, folder / "aiperf", tuple(cores))
