#!/usr/bin/env bash
# Snakemake 9.27.1 reports workflow.dryrun as false in a dry run while it reads the Snakefile.
#
# Expected: With -n, workflow.dryrun is true everywhere in a Snakefile.
# Behaviour: workflow.dryrun is false while Snakemake parses the file, and true only in code that runs later, such as a
#   params function. If a Snakefile prepares something unless workflow.dryrun is true, it does so in dry runs, too. Use
#   onstart for such preparations, because a dry run does not call onstart.
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
