#!/usr/bin/env bash
# Snakemake 9.27.1 turns numbers and booleans inside a list or a mapping of `--config` into strings.
#
# Expected: `--config 'repeats=3'` and `--config 'measurement={repeats: 3}'` both give the number 3.
# Behaviour: The number in the mapping becomes the string "3", and `true` in the list becomes the string "true".
# Output on Debian 12, Python 3.11:
#   alone: 3; in a mapping: {'repeats': '3'}; in a list: ['3', 'true']
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/python -m pip install -q snakemake==9.27.1
printf 'print(repr(config["value"]))\nrule all:\n' > Snakefile

value() { env/bin/python -m snakemake --dry-run --cores 1 --config "value=$1" 2> log.txt | sed -n 1p; }

alone=$(value 3) mapping=$(value '{repeats: 3}') list=$(value '[3, true]')
echo "alone: $alone; in a mapping: $mapping; in a list: $list"
[[ $alone == 3 && $mapping == "{'repeats': '3'}" && $list == "['3', 'true']" ]]
