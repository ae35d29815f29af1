"""Make the table `costs`: the cost of inferences on each load line
(docs/explanation/sharing-and-cost.md)."""

from __future__ import annotations

from collections.abc import Iterator

from perseus.host.parquet import REAL, TEXT, WHOLE
from perseus.peak.stats import Interval
from perseus.results.columns import (
    CI,
    LOAD_LINE,
    PRECISION,
    PRICED,
    REPEATS,
    load_line,
    of_price,
    with_ends,
)
from perseus.results.costs import energy_per_inference, usd_per_million
from perseus.results.records import Row
from perseus.results.repeats import RepeatedPeak
from perseus.results.schema import Schema, ascending, column
from perseus.results.study_results import StudyResults
from perseus.study.tasks.tables import Price

DESCRIPTION = (
    "One row per load line and kind of price (column `pricing`). A load line on a server without a"
    " price has no row."
)
SCHEMA = Schema(
    [
        *LOAD_LINE,
        column("runtime", TEXT, "",
            "runtime that executes the neural networks, as configured"),
        PRECISION,
        column("cores", WHOLE, "cores", "number of CPU cores of the server", least=1),
        column("instance", TEXT, "",
            "cloud instance whose price Perseus uses for the server"),
        column("vcpus", REAL, "vCPUs",
            "number of vCPUs of the instance. Null if the price list does not state the number."),
        column("accelerator", TEXT, "",
            "accelerators that are priced separately from the instance. Empty if no accelerator is"
            " priced separately."),
        column("share", REAL, "",
            "share of the instance that the server uses. The costs contain only this share of the"
            " price of the instance. The share is above 1 if a server in a grid has more cores than"
            " the instance.", null=False, least=0),
        column("region", TEXT, "", "cloud region of the price"),
        column("zone", TEXT, "",
            "availability zone of the price: the configured zone, or else the cheapest zone. Empty"
            " if the price list has no zones."),
        column("pricing", TEXT, "", "kind of price: on_demand, spot or committed",
               choices=("on_demand", "spot", "committed")),
        column("usd_per_hour", REAL, "USD/h",
            "price per hour of the server: `share` x (price of the instance + price of its"
            " accelerators)",
               null=False),
        column("usd_per_million_inferences", REAL, "USD",
            "cost of a million inferences on a server that always runs at its estimated peak. Each"
            " model has the same share of the inferences as on the load line."),
        column("ci_low_usd", REAL, "USD",
            f"lower end of the 95 % interval of `usd_per_million_inferences` {CI}"),
        column("ci_high_usd", REAL, "USD",
            f"upper end of the 95 % interval of `usd_per_million_inferences` {CI}"),
        column("usd_per_million_certified", REAL, "USD",
            "cost of a million inferences, as in `usd_per_million_inferences`, but on a server that"
            " always runs at its certified rate"),
        column("dedicated_usd_per_million", REAL, "USD",
            "cost of the same million inferences on dedicated servers that always run at their"
            " dedicated peaks. The cost counts fractions of servers, not whole servers."),
        column("joules_per_inference", REAL, "J",
            "energy of one inference at the certified rate (mean over the repeats). This energy"
            " includes the whole GPU boards, the whole processors with their memory, the idle power"
            " and the client. Null if unknown, for example without energy counters."),
        column("energy_of", TEXT, "",
            "hardware whose energy is in `joules_per_inference`: GPUs, processors and memory, or"
            " both. Empty if the energy is unknown."),
        column("electricity_usd_per_million", REAL, "USD",
            "cost of the electricity for a million inferences at the configured price"
            " costs.usd_per_kwh. The price of a cloud server already includes electricity. Null if"
            " the energy or the price of electricity is unknown."),
        *PRICED,
        column("price_doubts", TEXT, "",
            "reasons why the price of the server may be wrong. Empty if there is no such"
            " reason."),
    ],
    key=("scenario", "load_line", "pricing"),
    holds=[*REPEATS, ascending("ci_low_usd", "usd_per_million_inferences", "ci_high_usd")],
)  # fmt: skip


def rows(results: StudyResults) -> Iterator[Row]:
    for peak in results.peaks.values():
        if price := results.task.prices.get(peak.task.server.name):
            yield from priced(peak, price, results)


def priced(peak: RepeatedPeak, price: Price, results: StudyResults) -> Iterator[Row]:
    """Yield the rows of the table for the peak of one load line, at one price of its server."""
    ratio = results.sharing_ratio(peak).value
    images = peak.images_per_request
    rate = peak.total(images).interval()
    energy = energy_per_inference(peak)
    for pricing in results.task.pricing:
        usd = price.usd_per_hour(pricing)
        if usd is None:
            continue
        each = Interval(*(usd_per_million(usd, x) for x in (rate.value, rate.high, rate.low)))
        yield {
            **load_line(peak),
            "runtime": peak.task.server.runtime,
            "precision": peak.precision,
            "cores": peak.task.server.cores,
            "instance": price.instance,
            "vcpus": price.vcpus,
            "accelerator": price.accelerator,
            "share": price.share,
            "region": price.region,
            "zone": price.zone,
            "pricing": pricing,
            "usd_per_hour": usd,
            **with_ends("usd_per_million_inferences", each, ("ci_low_usd", "ci_high_usd")),
            "usd_per_million_certified": usd_per_million(usd, float(peak.certified[1] @ images)),
            "dedicated_usd_per_million": each.value * ratio,
            "joules_per_inference": energy.joules,
            "energy_of": energy.of,
            "electricity_usd_per_million": energy.usd_per_million(results.task.usd_per_kwh),
            **of_price(price),
            "price_doubts": "; ".join(price.doubts),
        }
