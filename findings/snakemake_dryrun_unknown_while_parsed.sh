#!/usr/bin/env bash
# Snakemake 9.27.1 says that a dry run is none while it reads the Snakefile.
#
# Guess: workflow.dryrun is true under -n, wherever a Snakefile asks.
# Behaviour: it is false while the file is parsed, and true only in what runs later, such as a params function. A
#   Snakefile that prepares something unless workflow.dryrun does so in dry runs, too. Prepare it in onstart, which a dry
#   run does not call.
# Output, Debian 12, Python 3.11:
#   under -n, workflow.dryrun is False while parsed and True in a params function
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q snakemake==9.27.1
cd "$folder"
cat > Snakefile <<'SNAKEFILE'
from pathlib import Path
Path("parsed").write_text(str(workflow.dryrun))


def asked(wildcards):
    Path("asked").write_text(str(workflow.dryrun))
    return "x"


rule all:
    output: "made"
    params: asked
    shell: "touch {output}"
SNAKEFILE
venv/bin/snakemake --cores 1 -n all >log 2>&1
echo "under -n, workflow.dryrun is $(cat parsed) while parsed and $(cat asked) in a params function"
[ "$(cat parsed) $(cat asked)" = "False True" ]
