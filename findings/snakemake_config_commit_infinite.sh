#!/usr/bin/env bash
# Snakemake 9.27.1 turns a commit given with --config into infinity.
#
# Expected: `--config commit=7e40912` sets a string, as in YAML, where a float needs a dot.
# Behaviour: Snakemake tries Python's int() and float() first, so 7e40912 is infinity, 00123 is 123, and "1.10" is 1.1
#   even in quotes. Of random commits with seven hexadecimal digits, about 1 in 18 becomes a number and 1 in 100
#   infinity. The same text inside a mapping stays a string. Pass commits and versions by --configfile, in quotes.
# Output, Debian 12, Python 3.11:
#   --config: commit inf, run 123, version 1.1; in a mapping: commit '7e40912', run '00123', version '1.10'
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q snakemake==9.27.1
mkdir "$folder/study"
cd "$folder/study"
cat > Snakefile <<'EOS'
def shown(values):
    return ", ".join(f"{key} {values[key]!r}" for key in ("commit", "run", "version"))
with open("seen.txt", "w") as seen:
    print("--config: " + shown(config) + "; in a mapping: " + shown(config["mapping"]), file=seen)
rule all:
EOS
values='{commit: 7e40912, run: 00123, version: "1.10"}'
"$folder/venv/bin/snakemake" --cores 1 --config commit=7e40912 run=00123 'version="1.10"' "mapping=$values" >log 2>&1
cat seen.txt
mapping="commit '7e40912', run '00123', version '1.10'"
[ "$(cat seen.txt)" = "--config: commit inf, run 123, version 1.1; in a mapping: $mapping" ]
