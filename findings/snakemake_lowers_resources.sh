#!/usr/bin/env bash
# Snakemake 9.27.1 lowers what a job requests to the limit of --resources, without a warning.
#
# Expected: A job that needs two GPUs does not run under --resources gpus=1: Snakemake reports an error.
# Behaviour: Snakemake runs the job with gpus=1 and half of its memory. The script of the job reads the lowered values,
#   and an executor for a cluster requests them. --set-resources does not lift a value above the limit, either. A job
#   that needs 8 GB then runs out of memory. Compare the requests of the rules with the limits yourself.
# Output, Debian 12, Python 3.11:
#   requested gpus 2, mem_mb 8000; with --resources gpus=1 mem_mb=4000: exit code 0, ran with gpus 1, mem_mb 4000,
#   warnings 0
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q snakemake==9.27.1
mkdir "$folder/study"
cd "$folder/study"
cat > Snakefile <<'EOS'
rule train:
    output: "ran.txt"
    resources:
        gpus=2,
        mem_mb=8000,
    shell: "echo gpus {resources.gpus}, mem_mb {resources.mem_mb} > {output}"
EOS
code=0
"$folder/venv/bin/snakemake" --cores 1 --resources gpus=1 mem_mb=4000 >log 2>&1 || code=$?
ran=$(cat ran.txt)
warnings=$(grep -ciE "warn|exceed|lower|limit" log || true)
echo "requested gpus 2, mem_mb 8000; with --resources gpus=1 mem_mb=4000: exit code $code, ran with $ran," \
    "warnings $warnings"
[ "$code; $ran; $warnings" = "0; gpus 1, mem_mb 4000; 0" ]
