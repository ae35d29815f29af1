#!/usr/bin/env bash
# Snakemake 9.27.1 runs a job again if a parameter of the job is an unchanged set of strings.
#
# Expected: Two equal sets are equal parameters.
# Behaviour: Snakemake compares the printed parameters, and Python prints a set in an order that differs between
#   processes (hash randomisation). Snakemake therefore finds at random that "params have changed" although nothing was
#   edited. The script fixes two seeds that order the set differently. Use a sorted list instead of a set.
# Output, Debian 12, Python 3.11:
#   planned again: set_parameter; not again: list_parameter
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q snakemake==9.27.1
cd "$folder"
cat > Snakefile <<'EOF'
NAMES = {"resnet18", "vgg11", "alexnet", "densenet121", "googlenet"}
rule all:
    input: "set", "list"
rule set_parameter:
    output: "set"
    params: names=NAMES
    shell: "touch {output}"
rule list_parameter:
    output: "list"
    params: names=sorted(NAMES)
    shell: "touch {output}"
EOF
PYTHONHASHSEED=1 venv/bin/snakemake --cores 1 --quiet all >log 2>&1
PYTHONHASHSEED=2 venv/bin/snakemake --cores 1 --dry-run >plan 2>&1
again=$(grep -o '^rule [a-z_]*parameter' plan | cut -d' ' -f2 | sort -u | xargs)
echo "planned again: $again; not again: list_parameter"
[ "$again" = set_parameter ]
