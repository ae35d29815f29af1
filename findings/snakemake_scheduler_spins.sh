#!/usr/bin/env bash
# Snakemake 9.27.1 plans once more per second for each finished job, and so takes CPU time while a job runs.
#
# Expected: While the last job runs, Snakemake waits, whatever number of jobs ran before.
# Behaviour: Snakemake limits the jobs per second (--max-jobs-per-timespan, 100 by default). With this limit, each
#   finished job starts a timer that never ends: every second, the timer makes Snakemake select jobs again. After 300
#   jobs, Snakemake selects jobs 300 times per second. The time for a selection grows with the number of waiting jobs.
# Output on 2 vCPUs (AMD EPYC), Debian 12, Python 3.11:
#   OUTPUT
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q snakemake==9.27.1
mkdir "$folder/study"
cd "$folder/study"
cat > Snakefile <<'EOS'
rule all:
    input: "last.txt"
rule first:
    output: touch("first/{n}.txt")
    run: pass
rule last:
    input: [f"first/{n}.txt" for n in range(int(config["jobs"]))]
    output: touch("last.txt")
    shell: "echo the last job >&2; sleep 10"
EOS
# Count how often Snakemake selects jobs during the last job: it logs one line each time.
rounds() {
  rm -rf first last.txt
  "$folder/venv/bin/snakemake" --cores 1 --verbose --config jobs="$1" > log 2>&1
  sed -n '/^the last job/,$p' log | grep -c "Ready jobs:"
}
few=$(rounds 1)
many=$(rounds 300)
echo "selections of jobs during a job of 10 seconds: $few after 1 job, $many after 300 jobs"
[ "$many" -gt $((10 * few)) ]
