#!/usr/bin/env bash
# Snakemake 9.27.1 fails with --until RULE if jobs of this rule depend on each other.
#
# Expected: With --until RULE, Snakemake runs all jobs of the rule and all jobs that these jobs need.
# Behaviour: Snakemake runs only some of these jobs, prints "BUG: Out of jobs ready to be started" and exits with 1. A
#   dry run also exits with 1. Without --until, Snakemake completes the workflow.
# Output, Debian 12, Python 3.11:
#   dry run: exit code 1; run: exit code 1, made 0.txt 1.txt; without --until: exit code 0, made 0.txt 1.txt 2.txt
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q snakemake==9.27.1
mkdir "$folder/study"
cd "$folder/study"
cat > Snakefile <<'EOF'
rule all:
    input: "2.txt"
rule first:
    output: "0.txt"
    shell: "echo 0 > {output}"
rule next:
    input: lambda wildcards: f"{int(wildcards.n) - 1}.txt"
    output: "{n,[1-9]}.txt"
    shell: "cp {input} {output}"
EOF
run() { "$folder/venv/bin/snakemake" --cores 1 "$@" >>log 2>&1 && echo 0 || echo $?; }
made() { ls ./*.txt | xargs -n 1 basename | paste -sd ' '; }
planned=$(run --dry-run --until next)
ended=$(run --until next)
some=$(made)
whole=$(run)
all=$(made)
echo "dry run: exit code $planned; run: exit code $ended, made $some; without --until: exit code $whole, made $all"
grep -q "BUG: Out of jobs ready to be started" log
[ "$planned $ended $whole" = "1 1 0" ]
[ "$all" = "0.txt 1.txt 2.txt" ] && [ "$some" != "$all" ]
