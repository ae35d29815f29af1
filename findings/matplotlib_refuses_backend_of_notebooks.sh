#!/usr/bin/env bash
# If a notebook starts a program of another environment, this program cannot import matplotlib 3.11.2.
#
# Expected: MPLBACKEND names a backend for plots, and a program that shows no plots ignores a backend that is not
#   installed.
# Behaviour: A Jupyter kernel sets MPLBACKEND=module://matplotlib_inline.backend_inline, and its child processes inherit
#   this variable. In an environment without matplotlib-inline, `import matplotlib` raises ValueError. The message lists
#   the supported values, but no value that begins with module://. Start such programs without MPLBACKEND.
# Output, Debian 12, Python 3.11:
#   import matplotlib: ValueError; without MPLBACKEND: imported; with matplotlib-inline: imported
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q matplotlib==3.11.2
cd "$folder"
import() { env "$@" venv/bin/python -c "import matplotlib" 2>log && echo imported || grep -o "^[A-Za-z]*Error" log; }
backend=MPLBACKEND=module://matplotlib_inline.backend_inline
refused=$(import "$backend")
without=$(import -u MPLBACKEND)
venv/bin/pip install -q matplotlib-inline==0.2.1
installed=$(import "$backend")
echo "import matplotlib: $refused; without MPLBACKEND: $without; with matplotlib-inline: $installed"
[ "$refused $without $installed" = "ValueError imported imported" ]
