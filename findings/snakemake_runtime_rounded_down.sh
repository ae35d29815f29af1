#!/usr/bin/env bash
# Snakemake 9.27.1 rounds a job's time limit down to whole minutes: 119 s become 1 minute.
#
# Expected: Snakemake rounds a limit that executors enforce up.
# Behaviour: The limit of resources: runtime="119s" is 1 minute in the job and in the executor (for example Slurm's
#   --time). A job that needs 100 s and asks for 119 s ends after 60 s. Write minutes, rounded up.
# Output, Debian 12, Python 3.11:
#   runtime of 119 s: 1 min; of 179 s: 2 min
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q snakemake==9.27.1
cd "$folder"
cat > Snakefile <<'EOF'
rule all:
    input: "119s", "179s"
rule limited:
    output: "{limit}"
    resources: runtime=lambda wildcards: wildcards.limit
    shell: "echo {resources.runtime} > {output}"
EOF
venv/bin/snakemake --cores 1 --quiet all >log 2>&1
echo "runtime of 119 s: $(cat 119s) min; of 179 s: $(cat 179s) min"
[ "$(cat 119s) $(cat 179s)" = "1 2" ]
