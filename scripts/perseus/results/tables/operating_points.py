"""Make the table `operating_points`: the rates that one server carries, from which Perseus plans
fleets."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from perseus.host.parquet import REAL, TEXT, WHOLE
from perseus.results.columns import MIX, PRESET, PRICED, of_price
from perseus.results.fleets.operating_points import LOWER, OperatingPoint
from perseus.results.fleets.plans import HOURS_PER_MONTH, SPOT
from perseus.results.records import Row
from perseus.results.schema import Schema, column
from perseus.results.study_results import StudyResults

DESCRIPTION = (
    "One row per load line and model. The row has a rate in requests of one image. One server can"
    " serve this model at this rate while it serves the other models of the load line at the rates"
    " in their rows. A load line has no row in three cases: its peak is unknown, the 95 % interval"
    " of its peak begins at 0, or its server has no price."
)
TITLE = "What one server carries"
NOTE = (
    "The table shows the rates (in requests of one image) that a server carries for all its models"
    " at the same time. A server also carries lower rates. Plans do not assume that a server"
    " carries a higher rate of one model if it carries a lower rate of another model. Plans use the"
    " lower limit: a server carries more than its lower limit with a probability of"
    f" {1 - LOWER:.2f}. To plan by hand, add servers until the sum of their lower limits covers the"
    " demand for each model. If several mixes need the same number of servers, take the mix with"
    " the largest spare capacity: for each mix and model, divide the lower limit by the demand, and"
    " take the mix whose smallest quotient is the largest. The rates of shared servers are"
    " corrected to the speed that the host had in the dedicated measurements, so they may differ"
    " from the rates in the table of peaks. A lower limit may be above a certified rate. Plan by"
    " the lower limit, because it uses the evidence of all windows."
)
SHOWN = {
    "server": "server",
    "load line": "mix",
    "model": "model",
    "lower limit (requests/s)": "lower_rps",
    "estimate (requests/s)": "estimate_rps",
    "certified (requests/s)": "certified_rps",
    "USD per month": "usd_per_month",
}
SCHEMA = Schema(
    [
        column("study", TEXT, "", "name of the study"),
        column("server", TEXT, "", "name of the server in the configuration"),
        column("scenario", TEXT, "",
            "name of the scenario (a set of tenants on one server)"),
        column("load_line", TEXT, "", "name of the load line"),
        column("preset", TEXT, "", PRESET),
        column("mix", TEXT, "", MIX),
        column("model", TEXT, "", "name of the model"),
        column("lower_rps", REAL, "requests/s",
            "lower limit of the rate of this model that one server carries: the"
            f" {LOWER:.0%} quantile of the random draws of this rate. The server carries more with"
            f" a probability of {1 - LOWER:.0%}. If the server is shared, Perseus corrects this"
            " rate to the speed that the host had during the measurements of the dedicated"
            " peaks.", null=False),
        column("estimate_rps", REAL, "requests/s",
            "estimated rate of this model that one server carries, corrected like"
            " `lower_rps`", null=False),
        column("certified_rps", REAL, "requests/s",
            "certified rate of this model on one server, not corrected for the speed of the host."
            " Null if a repeat has no certified rate."),
        column("request_batch_size", WHOLE, "images",
            "number of images in each request of the model during the measurement. If the requests"
            " of several tenants with this model differ, the largest of these numbers.", least=1),
        column("device", TEXT, "", "device of the server: cpu or gpu"),
        column("cores", WHOLE, "cores", "number of CPU cores of the server", least=1),
        column("usd_per_hour", REAL, "USD/h", "on-demand price of one server"),
        column("usd_per_month", REAL, "USD",
            f"on-demand price of one server for {HOURS_PER_MONTH} hours"),
        column("spot_usd_per_month", REAL, "USD",
            f"spot price of one server for {HOURS_PER_MONTH} hours. Null if unknown."),
        *PRICED,
    ],
    key=("scenario", "load_line", "preset", "model"),
)  # fmt: skip


def rows(results: StudyResults) -> Iterator[Row]:
    for point in results.operating_points:
        for model in point.models:
            if point.rates_rps[model] > 0:
                price = results.task.prices[point.server]
                yield {"study": results.task.study, **_of_model(point, model), **of_price(price)}


def _of_model(point: OperatingPoint, model: str) -> Row:
    peak, task = point.peak, point.peak.task
    usd, spot_usd = (point.usd_per_hour.get(pricing) for pricing in ("on_demand", SPOT))
    mine = [i for i in peak.loaded if task.tenants[i].model == model]
    scale, rates_rps = peak.certified
    certified_rps = (rates_rps * peak.images_per_request)[mine].sum()
    return {
        "server": point.server,
        "scenario": task.scenario,
        "load_line": task.run.name,
        "preset": task.preset,
        "mix": point.peak.mix,
        "model": model,
        "lower_rps": float(point.lower_rps[model]),
        "estimate_rps": float(point.rates_rps[model]),
        "certified_rps": np.nan if np.isnan(scale) else float(certified_rps),
        "request_batch_size": max(task.tenants[i].request_batch_size for i in mine),
        "device": task.server.device,
        "cores": task.server.cores,
        "usd_per_hour": usd,
        "usd_per_month": None if usd is None else usd * HOURS_PER_MONTH,
        "spot_usd_per_month": None if spot_usd is None else spot_usd * HOURS_PER_MONTH,
    }
