"""Find the client's ceiling beside one server."""

import json
from pathlib import Path

from perseus.ceiling import Shape, measure
from perseus.client import ClientError
from perseus.entry import job
from perseus.host import TooFewCoresError
from perseus.route import RouteError
from perseus.server_failures import ServerError

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
