#!/usr/bin/env bash
# Snakemake 9.27.1 runs no script if its Python lies in a folder whose name has a space.
#
# Expected: A rule with `script:` runs in every environment that can run Snakemake.
# Behaviour: Snakemake plans the job and quotes the path of the script, but not the path of Python. The shell splits
#   the path of Python at the space, and the job fails.
# Output on Debian 12, Python 3.11:
#   in plain: ok; in a folder with a space: Error in rule made; the shell reports: No such file or directory
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
printf 'rule made:\n    output: "made.txt"\n    script: "make.py"\n' > Snakefile
printf 'open(snakemake.output[0], "w").close()\n' > make.py

outcome() {
  python3 -m venv "$1"
  "$1/bin/python" -m pip install -q snakemake==9.27.1
  if "$1/bin/python" -m snakemake --cores 1 --forceall made > log.txt 2>&1; then echo ok; else
    echo "$(grep -om1 "Error in rule made" log.txt); the shell reports:" \
      "$(grep -om1 "No such file or directory" log.txt)"
  fi
}

plain=$(outcome plain)
space=$(outcome "with space")
echo "in plain: $plain; in a folder with a space: $space"
[[ $plain == ok && $space == "Error in rule made; the shell reports: No such file or directory" ]]
