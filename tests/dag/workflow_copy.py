"""A copy of the workflow: the DAG is real, but fake steps only make their outputs."""

from __future__ import annotations

import ast
import compileall
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from dag.warm_snakemake import run_script, run_snakemake
from workflow_files import ROOT, copy_workflow

from perseus.study.raw_files import RAW

UPGRADES = "upgrades"  # Python searches this folder before the installed packages
IN_FOLDERS = {"measure": RAW, "repository": ("made.json",)}  # files in output folders, by rule
OUTPUT_FILES = f"""
from pathlib import Path

names = {IN_FOLDERS}.get(snakemake.rule, [""])
output_files = [Path(output, name) for output in snakemake.output for name in names]
for output_file in output_files:
    output_file.parent.mkdir(parents=True, exist_ok=True)
"""
TOUCH_OUTPUTS = OUTPUT_FILES + "for path in output_files:\n    path.touch()\n"
MAKE_OUTPUTS = (
    OUTPUT_FILES
    + """
import perseus.host.files  # as the real script would

for path in output_files:
    path.write_text('{"outcome": "ok", "reason": "", "path": "%s"}' % path)
"""
)
# the first calls the workflow, the second lists files of jobs
NO_FAKES = ("again.py", "measured.py")
Job = tuple[str, ...]  # name of a rule, values of its wildcards by their names


@dataclass(frozen=True)
class Workflow:
    """A folder with a Snakefile, in which the tests run commands."""

    root: Path

    @classmethod
    def copied_to(cls, root: Path) -> Workflow:
        """Return a workflow without results, in which scripts only make their outputs."""
        copy_workflow(root)
        (root / "config" / "prices.csv").chmod(0o644)
        workflow = cls(root)
        for script in (root / "scripts").glob("*.py"):
            if script.name not in NO_FAKES:
                workflow.fake(script.stem, MAKE_OUTPUTS)
        compileall.compile_dir(root / "scripts", quiet=1)  # compile once, not in each process
        return workflow

    def fake(self, script: str, body: str) -> None:
        """Replace the body of a script. The script keeps its import statements, because the jobs
        depend on the imported modules."""
        tree = ast.parse((ROOT / "scripts" / f"{script}.py").read_text())
        imports = [ast.unparse(n) for n in tree.body if isinstance(n, (ast.Import, ast.ImportFrom))]
        unused = "".join(f"    {line}\n" for line in imports)
        (self.root / "scripts" / f"{script}.py").write_text(f"if False:\n{unused}    pass\n{body}")

    def copy(self, root: Path) -> Workflow:
        """Copy the workflow with its results, time stamps and the metadata of Snakemake."""
        shutil.copytree(self.root, root, symlinks=True)
        return Workflow(root)

    def run(self, *arguments: str) -> str:
        """Run the workflow with its fake steps; return its standard output."""
        return self.messages(*arguments)[0]

    def messages(self, *arguments: str) -> tuple[str, str]:
        """Run the workflow with its fake steps; return its standard output and standard error."""
        code, output, errors = self._snakemake(*arguments)
        assert code == 0, output + errors
        return output, errors

    def script(self, *arguments: str) -> str:
        """Run a script of the workflow, which may call Snakemake; return its standard output."""
        code, output, errors = run_script(self.root, arguments, self.root / UPGRADES)
        assert code == 0, output + errors
        return output

    def python(self, *arguments: str) -> str:
        """Run a script in a new Python process, as from a terminal; return its standard output."""
        command = [sys.executable, *arguments]
        environment = {**os.environ, "PYTHONPATH": str(self.root / UPGRADES)}
        done = subprocess.run(
            command, cwd=self.root, env=environment, capture_output=True, text=True, timeout=120
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def accept(self) -> None:
        """Mark all outputs as up to date, as if all jobs had run."""
        self.run("--touch", "--cores", "2", "all")

    def plan(self, *arguments: str) -> tuple[int, str, str]:
        """Return the exit code, standard output and standard error of a dry run."""
        return self._snakemake("--dry-run", *arguments)

    def _snakemake(self, *arguments: str) -> tuple[int, str, str]:
        return run_snakemake(self.root, arguments, self.root / UPGRADES)

    def jobs(self, *arguments: str) -> dict[Job, bool]:
        """Return every job of `all`, and whether a run would do the job now.

        The result leaves out the jobs of the rule `measured`, which only write lists of cells. The
        tests check the tables and figures that depend on these lists.
        """
        code, output, errors = self.plan("--dag", "dot", *arguments)
        assert code == 0, output + errors
        nodes = re.findall(r'label = "(.*?)", color = .*?, style="(.*?)"', output)
        jobs = {
            tuple(part.split(": ")[-1] for part in label.split("\\n")): style == "rounded"
            for label, style in nodes
        }
        assert len(jobs) == len(nodes) > 1, output
        lists = [job for job in jobs if job[0].endswith("measured")]
        return {job: wanted for job, wanted in jobs.items() if job not in [("all",), *lists]}

    def stale(self, *arguments: str) -> set[Job]:
        return {job for job, wanted in self.jobs(*arguments).items() if wanted}

    def edit(self, path: str, old: str, new: str) -> None:
        """Replace `old` in a file by `new`."""
        text = (self.root / path).read_text()
        assert text.count(old) == 1, f"{path} has {text.count(old)} times {old!r}"
        (self.root / path).write_text(text.replace(old, new))

    def append(self, path: str, line: str) -> None:
        with (self.root / path).open("a") as file:
            file.write(line)

    def upgrade(self, package: str) -> None:
        """Pretend that another version of a package is installed."""
        folder = self.root / UPGRADES / f"{package.replace('-', '_')}-999.dist-info"
        folder.mkdir(parents=True)
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 999\n")
