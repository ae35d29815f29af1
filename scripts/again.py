"""Repeat all cells (measurements) with a temporary failure, and all cells that need their results.

python scripts/again.py [--cores 4] [--configfile config/studies/paper.yaml]
"""

import argparse
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from snakemake.common.configfile import load_configfile
from snakemake.exceptions import WorkflowError

from perseus.host import cores
from perseus.host.version import VERSION
from perseus.results.failed_cells import outputs_to_repeat
from perseus.study import config_files, files
from perseus.study.problems import ConfigError
from perseus.study.read import read_study

HERE = Path(__file__).parents[1]
parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--cores", default="4", help="largest number of cores that Snakemake uses")
parser.add_argument("--configfile", nargs="+", default=[], help="files of the study")
parser.add_argument("--version", action="version", version=f"Perseus {VERSION}")
asked = parser.parse_args()

configuration: dict[str, Any] = {}
for file in [str(HERE / "config" / "config.yaml"), *asked.configfile]:
    try:
        configuration = config_files.merged(configuration, load_configfile(file))
        if doubled := list(config_files.doubled_keys(Path(file))):
            sys.exit("\n".join(doubled))
    except (OSError, UnicodeDecodeError, WorkflowError) as error:
        sys.exit(f"{file}: {getattr(error, 'strerror', None) or error}")
try:
    study = read_study(
        configuration,
        prices=HERE / "config" / "prices.csv",
        folder=Path.cwd(),
        most_cores=cores.max_server_cores(),
    )
except ConfigError as error:
    sys.exit(str(error))
records = map(Path, files.records(study, study.cells.values()))
again = outputs_to_repeat(records, map(Path, files.ceilings(study)))
if not again:
    print(f"Study {study.name!r}: no cell has a temporary failure, so there is nothing to repeat.")
    sys.exit()
configfiles = ["--configfile", *asked.configfile] if asked.configfile else []
command = ["snakemake", "--cores", asked.cores, "all", *configfiles]
command += ["--forcerun", *map(str, again)]
print(shlex.join(command), flush=True)
process = subprocess.Popen([sys.executable, "-m", *command])
# Ignore Ctrl-C here: Snakemake also gets it from the terminal, and ends its jobs properly.
signal.signal(signal.SIGINT, signal.SIG_IGN)
signal.signal(signal.SIGTERM, lambda *_: process.terminate())
code = process.wait()
sys.exit(code if code >= 0 else 128 - code)
