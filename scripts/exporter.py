"""Serve the progress of measurements in this folder to Prometheus (docs/how-to/monitoring.md).

python scripts/exporter.py [--port 9877]
"""

import argparse
import os
import sys
from contextlib import suppress
from pathlib import Path

from perseus.host.version import VERSION
from perseus.measurement.progress.exporter import PORT, Exporter

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--port", type=int, default=PORT, help="port on 127.0.0.1; 0: any free port")
parser.add_argument("--version", action="version", version=f"Perseus {VERSION}")
asked = parser.parse_args()

# The exporter uses the first CPU, since measured servers run on the last CPUs.
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
try:
    exporter = Exporter(Path("logs"), asked.port)
except (OSError, OverflowError) as error:
    why = getattr(error, "strerror", None) or error
    sys.exit(f"port {asked.port} on 127.0.0.1: {why}; choose another port with --port")
print(f"http://{exporter.address}/metrics: measurements in {Path.cwd()}", flush=True)
with exporter, suppress(KeyboardInterrupt):
    exporter.serve_forever()
