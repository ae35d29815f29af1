#!/usr/bin/env bash
# Snakemake 9.27.1 runs all jobs at once on one core if `threads` is half of the cores.
#
# Expected: `threads: workflow.cores * 0.5` is at least one thread, so with --cores 1 jobs run one after another.
# Behaviour: Snakemake rounds 0.5 to 0 threads. A job with 0 threads takes no core, so all four jobs run at the same
#   time, and each of them reads 0 as its number of threads. Measured times are then wrong. Write
#   max(1, workflow.cores // 2).
# Output, Debian 12, Python 3.11:
#   --cores 1: 0 threads, 4 jobs at once; with max(1, ...): 1 thread, 1 job at once
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q snakemake==9.27.1
mkdir "$folder/half" "$folder/atleast"
cat > "$folder/half/Snakefile" <<'EOS'
rule all:
    input: expand("{job}.txt", job=range(4))
rule measure:
    output: "{job}.txt"
    threads: workflow.cores * 0.5
    shell: """
        touch running.{wildcards.job}
        sleep 4
        echo {threads} $(ls running.* | wc -l) > {output}
        sleep 1
        rm running.{wildcards.job}
    """
EOS
sed 's/workflow.cores \* 0.5/max(1, workflow.cores \/\/ 2)/' "$folder/half/Snakefile" > "$folder/atleast/Snakefile"
most() {
    cd "$folder/$1"
    "$folder/venv/bin/snakemake" --cores 1 >log 2>&1
    sort -k 2 -n ./*.txt | tail -n 1
}
read -r threads at_once <<< "$(most half)"
read -r right one <<< "$(most atleast)"
echo "--cores 1: $threads threads, $at_once jobs at once; with max(1, ...): $right thread, $one job at once"
[ "$threads $at_once $right $one" = "0 4 1 1" ]
