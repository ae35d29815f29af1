#!/usr/bin/env bash
# The more jobs have finished, the more often per second Snakemake 9.27.1 selects the next jobs.
#
# Expected: While a job runs and another job waits for a resource, Snakemake waits for the end of the first job.
# Behaviour: Snakemake limits the jobs per second (--max-jobs-per-timespan, 100 by default). With this limit, each end
#   of a job starts a timer that makes Snakemake select jobs again every second, and that never ends as long as a job
#   waits. A selection looks at the input files of all waiting jobs. After 150 jobs of a workflow with 57 measurements
#   that ran one after another, Snakemake used half a core. Without the limit, which a workflow can remove by
#   `workflow.scheduler.job_rate_limiter = None` in `onstart`, it used less than 1 % of a core.
# Output on 2 vCPUs (AMD EPYC), Debian 12, Python 3.11:
#   selections of jobs while a job of 10 seconds runs: 17 after 1 job, 71 after 100 jobs
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q snakemake==9.27.1
mkdir "$folder/study"
cd "$folder/study"
cat > Snakefile <<'EOS'
rule all:
    input: "last/1.txt", "last/2.txt"
rule first:
    output: touch("first/{n}.txt")
rule last:
    input: [f"first/{n}.txt" for n in range(int(config["jobs"]))]
    output: touch("last/{n}.txt")
    resources: slot=1
    shell: "echo a last job >&2; sleep 10"
EOS
# Count how often Snakemake selects jobs during the first of the two last jobs: it logs one line each time.
selections() {
  rm -rf first last
  "$folder/venv/bin/snakemake" --cores 2 --resources slot=1 --verbose --config jobs="$1" > log 2>&1
  awk '/^a last job/ {jobs++} jobs == 1' log | grep -c "Ready jobs:"
}
few=$(selections 1)
many=$(selections 100)
echo "selections of jobs while a job of 10 seconds runs: $few after 1 job, $many after 100 jobs"
[ "$many" -gt $((2 * few)) ]
