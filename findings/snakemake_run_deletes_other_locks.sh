#!/usr/bin/env bash
# Snakemake 9.27.1 deletes the locks of other runs in the same folder when a run ends.
#
# Expected: While a run makes long.txt, a second run for long.txt is refused, because the first run holds a lock.
# Behaviour: A third run for another file ends meanwhile, and deletes the locks of all runs. The long run still works,
#   but no lock protects its file any more.
# Output on Debian 12, Python 3.11:
#   locks during the long run: 1 or more; after another run: 0; the long run still runs
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/python -m pip install -q snakemake==9.27.1
cat > Snakefile << 'RULES'
rule long:
    output: "long.txt"
    shell: "sleep 25; touch {output}"
rule short:
    output: "short.txt"
    shell: "touch {output}"
RULES
locks() { { find .snakemake/locks -name "*.lock" 2> find.txt || true; } | wc -l; }

env/bin/python -m snakemake --cores 1 long.txt > long.log 2>&1 &
long=$!
for _ in $(seq 100); do [[ $(locks) -gt 0 ]] && break; sleep 0.1; done
before=$(locks)
env/bin/python -m snakemake --cores 1 short.txt > short.log 2>&1
after=$(locks)
if kill -0 $long; then runs="still runs"; else runs="has ended"; fi
wait $long
[[ $before -gt 0 ]] && before="1 or more"
echo "locks during the long run: $before; after another run: $after; the long run $runs"
[[ $before == "1 or more" && $after == 0 && $runs == "still runs" ]]
