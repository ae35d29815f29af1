"""Table `costs`: what an inference costs (docs/method.md, "Sharing, cost and saving")."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from perseus.host.parquet import REAL, TEXT, column
from perseus.peak.stats import Interval
from perseus.results.columns import CI, LOAD_LINE, load_line, with_ends
from perseus.results.costs import joules_per_inference, usd_per_million
from perseus.results.records import Row
from perseus.results.repeats import sharing_ratio
from perseus.results.study_results import StudyResults

DESCRIPTION = "One row per load line and pricing."
SCHEMA = pa.schema(
    [
        *LOAD_LINE,
        column("instance", TEXT, "", "cloud instance that the server stands for"),
        column("region", TEXT, "", "region of the price"),
        column("pricing", TEXT, "", "on_demand or spot"),
        column("usd_per_hour", REAL, "USD/h", "price of the instance"),
        column("usd_per_million_inferences", REAL, "USD", "a million inferences at the estimated"
               " limit, in the proportion of the mix"),
        column("ci_low_usd", REAL, "USD", f"usd_per_million_inferences: lower end {CI}"),
        column("ci_high_usd", REAL, "USD", f"usd_per_million_inferences: upper end {CI}"),
        column("usd_per_million_certified", REAL, "USD", "the same at the certified rate"),
        column("dedicated_usd_per_million", REAL, "USD", "the same million inferences on dedicated"
               " servers (fractions of servers allowed)"),
        column("joules_per_inference", REAL, "J", "energy of the server's GPUs (whole boards, idle"
               " power included; not of the host) for an inference, at the certified rate, mean of"
               " the repeats; null without GPUs"),
        column("price_source", TEXT, "", "where the price was read"),
    ]
)  # fmt: skip


def rows(results: StudyResults) -> Iterator[Row]:
    for peak in results.peaks.values():
        price = results.task.prices[peak.task.server.name]
        ratio = sharing_ratio(peak, results.alone(peak)).value
        images = peak.images_per_request
        rate = peak.total(images).interval()
        for pricing in results.task.pricing:
            usd = price.usd_per_hour(pricing)
            if usd is None:
                continue
            each = Interval(*(usd_per_million(usd, x) for x in (rate.value, rate.high, rate.low)))
            certified = usd_per_million(usd, float(peak.certified[1] @ images))
            yield {
                **load_line(peak),
                "instance": price.instance,
                "region": price.region,
                "pricing": pricing,
                "usd_per_hour": usd,
                **with_ends("usd_per_million_inferences", each, ("ci_low_usd", "ci_high_usd")),
                "usd_per_million_certified": certified,
                "dedicated_usd_per_million": each.value * ratio,
                "joules_per_inference": joules_per_inference(peak),
                "price_source": price.source,
            }
