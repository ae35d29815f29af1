"""Find the client's ceiling beside one server."""

import json
from pathlib import Path

from perseus.host.cores import TooFewCoresError
from perseus.host.job import job
from perseus.measurement.ceiling import Shape, measure
from perseus.serving.failures import ServerError
from perseus.traffic.client import ClientError
from perseus.traffic.route import RouteError

spec = snakemake.params.slice
checks = {
    Path(path).parent.name: json.loads(Path(path).read_text()) for path in snakemake.input.checks
}

with job(snakemake.log[0], ServerError, ClientError, RouteError, TooFewCoresError) as say:
    shapes: dict[Shape, list[str]] = {}
    for model, images in spec["requests"]:
        shapes.setdefault(Shape(checks[model]["input_shape"][1], images), []).append(model)
    log_path = Path(snakemake.log[0]).with_suffix(".server.log")
    measure(spec, shapes, Path(snakemake.output[0]), log_path, say)
