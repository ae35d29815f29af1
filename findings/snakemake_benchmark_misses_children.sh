#!/usr/bin/env bash
# The benchmark of Snakemake 9.27.1 omits most of the CPU time of a job with short processes.
#
# Expected: The directive `benchmark` takes the CPU time from the operating system, as `time -v` does, so the result
#   includes the processes that the job has waited for.
# Behaviour: Snakemake samples the running processes of a job every 0.5 s during about the first 15 s, and every 30 s
#   later. A process that starts and ends between two samples is missing. Of any other process, the CPU time after the
#   last sample is missing. The memory comes from the same samples. To measure a job with short processes, write
#   `time -v` into its command.
# Output, Debian 12, Python 3.11:
#   CPU time of ten processes of 0.3 s: 3.2 s; benchmark of Snakemake: 0.8 s
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q snakemake==9.27.1
mkdir "$folder/study"
cd "$folder/study"
cat > Snakefile <<'EOS'
rule measure:
    output: "used.txt"
    benchmark: "benchmark.tsv"
    shell: "python3 job.py > {output}"
EOS
cat > job.py <<'EOS'
import resource, subprocess, sys

compute = "import time\nwhile time.process_time() < 0.3: pass"
for _ in range(10):
    subprocess.run([sys.executable, "-c", compute], check=True)
children = resource.getrusage(resource.RUSAGE_CHILDREN)
print(children.ru_utime + children.ru_stime)
EOS
"$folder/venv/bin/snakemake" --cores 1 measure > log 2>&1
python3 - <<'EOS'
import csv

with open("benchmark.tsv") as file:
    row = next(csv.DictReader(file, delimiter="\t"))
with open("used.txt") as file:
    used_s = float(file.read())
print(f"CPU time of ten processes of 0.3 s: {used_s:.1f} s; benchmark of Snakemake: {float(row['cpu_time']):.1f} s")
assert used_s > 3 and float(row["cpu_time"]) < 0.7 * used_s
EOS
