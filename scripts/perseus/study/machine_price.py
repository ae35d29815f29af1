"""Find the price of a server's machine in the price list.

If the accelerators of the machine have a separate row, also find the price of the accelerators.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Final

from perseus.study.hints import did_you_mean
from perseus.study.presentation import Costs
from perseus.study.price import CustomMachine, PriceRow, Rates
from perseus.study.price_list import PRICES, ListedPrice, PriceList

SUSPICIOUS_SPOT: Final = 0.15
"""Perseus warns about a spot price below this share of the on-demand price. Clouds list such low
prices, but hardly ever sell machines at such prices."""
SUSPICIOUS_REGION: Final = 2.0
"""Perseus warns about an on-demand price if it is more than this factor above or below the median
on-demand price in the other regions."""


class UnpricedError(ValueError):
    """Error: Perseus finds no price for a server. `text` says why and what to do. `key` is the key
    in the mapping `price` that the user must correct."""

    def __init__(self, key: str, text: str) -> None:
        self.key = key
        super().__init__(text)


@dataclass(frozen=True)
class MachinePrice:
    """Price of a machine, or of accelerators that have a separate row in the price list.

    `usd_per_hour` contains the price for each pricing (on_demand, spot, committed). An unknown
    price is None. `vcpus` is the number of vCPUs, or None if the price list does not state this
    number. `accelerators` is the number of accelerators that the price includes. `currency` is the
    currency of the price list. `source` says where the price comes from. `date` is the day on which
    the price was valid, or None if unknown. `doubts` contains the reasons why the price may be
    wrong.
    """

    usd_per_hour: Mapping[str, float | None]
    currency: str
    vcpus: float | None
    accelerators: float
    zone: str
    source: str
    date: str | None
    doubts: tuple[str, ...] = ()


def machine_price(wanted: PriceRow, prices: PriceList, costs: Costs) -> list[MachinePrice]:
    """Return the price of the machine, and the price of accelerators that the configuration names.

    If at least one zone of the region has both prices, both prices come from the zone in which
    their sum is lowest.

    Raises UnpricedError if the price list has no price for the machine or for the accelerators, or
    if two rows for the same zone have different prices or numbers of vCPUs.
    """
    machines = (
        {"": _custom(wanted.custom, costs)}
        if wanted.custom is not None
        else _machines(wanted, prices, costs)
    )
    if wanted.accelerator is None:
        return [min(machines.values(), key=lambda machine: _by_pricing(machine, costs))]
    accelerators = _accelerators(wanted, wanted.accelerator, prices, costs)
    zones = machines.keys() & accelerators.keys()
    pairs = [
        (machine, accelerator)
        for zone, machine in machines.items()
        for other, accelerator in accelerators.items()
        if not zones or zone == other
    ]
    machine, accelerator = min(
        pairs,
        key=lambda pair: tuple(
            map(sum, zip(*(_by_pricing(each, costs) for each in pair), strict=True))
        ),
    )
    if not zones and machine.zone:
        doubt = (
            f"{accelerator.source} lists {wanted.accelerator} only in zones without"
            f" {wanted.instance}, so Perseus adds the prices of two zones"
        )
        accelerator = replace(accelerator, doubts=(*accelerator.doubts, doubt))
    return [machine, accelerator]


def _by_pricing(of: MachinePrice, costs: Costs) -> tuple[float, ...]:
    """Return the prices of a machine in the order of `costs.pricing`, as a sort key that puts the
    cheapest machine first. An unknown price counts as infinite."""
    order = dict.fromkeys((*costs.pricing, "on_demand", "spot"))
    return tuple(of.usd_per_hour[pricing] or math.inf for pricing in order)


def usable_pricings(costs: Costs) -> tuple[str, ...]:
    """Return the pricings that make a row of the price list usable.

    A usable row has a price for at least one of these pricings.

    If `costs.pricing` contains on_demand, a usable row has an on-demand price. Otherwise, a usable
    row has an on-demand price or a price for one of the pricings in `costs.pricing`.
    """
    if "on_demand" in costs.pricing:
        return ("on_demand",)
    return ("on_demand", *costs.pricing)


def _machines(wanted: PriceRow, prices: PriceList, costs: Costs) -> dict[str, MachinePrice]:
    rows = prices.machines.get(wanted.instance, ())
    if not rows:
        hint = did_you_mean(wanted.instance, list(prices.machines))
        hint = hint or " (add a row, use an InstanceType of the list, or write `custom:`)"
        raise UnpricedError("instance", f"{wanted.instance!r} is not in {prices.name}{hint}")
    chosen = _by_zone(wanted, "instance", wanted.instance, rows, prices, costs)
    return {zone: _of_row(row, rows, wanted, prices, costs) for zone, row in chosen.items()}


def _accelerators(
    wanted: PriceRow, named: str, prices: PriceList, costs: Costs
) -> dict[str, MachinePrice]:
    """Return the total price of the server's accelerators in each zone.

    If the price list has a row for the wanted number of accelerators, the price comes from this
    row. Otherwise, the function multiplies the price of one accelerator by the wanted number.
    """
    name, _, text = named.partition(":")
    rows = prices.accelerators.get(name, ())
    if not rows:
        hint = did_you_mean(name, list(prices.accelerators))
        hint = hint or " (remove `accelerator:` if the price of the instance includes accelerators)"
        raise UnpricedError(
            "accelerator", f"{name!r} has no row with a separate price in {prices.name}{hint}"
        )
    count, listed = int(text or 1), {_devices(row) for row in rows}
    each = count if count in listed else 1.0
    if each not in listed:
        known = ", ".join(f"{name}:{number:g}" for number in sorted(listed))
        raise UnpricedError("accelerator", f"{prices.name} has no {named!r} (known: {known})")
    rows = [row for row in rows if _devices(row) == each]
    chosen = _by_zone(wanted, "accelerator", f"{name}:{each:g}", rows, prices, costs)
    return {
        zone: _times(_of_row(row, rows, wanted, prices, costs), round(count / each))
        for zone, row in chosen.items()
    }


def _devices(row: ListedPrice) -> float:
    """Return the number of accelerators in a row of the price list, rounded up: 1 for a row with
    0.125 of an L4."""
    return float(math.ceil(row.accelerators or 1))


def _times(one: MachinePrice, count: int) -> MachinePrice:
    if count == 1:
        return one
    return replace(
        one,
        usd_per_hour={key: usd and count * usd for key, usd in one.usd_per_hour.items()},
        accelerators=count * one.accelerators,
        source=f"{count} times the price of one accelerator in {one.source}",
    )


def _by_zone(
    wanted: PriceRow,
    key: str,
    what: str,
    rows: Sequence[ListedPrice],
    prices: PriceList,
    costs: Costs,
) -> dict[str, ListedPrice]:
    """Return one usable row of the price list for each zone of the region, or only for the
    configured zone.

    `rows` contains all rows of the machine or accelerator, and `what` is its name for messages.
    Raises UnpricedError if no row has the region and the zone, if one of the rows for the region
    and the zone is invalid, if none of these rows is usable, or if two usable rows of a zone have
    different prices or numbers of vCPUs.
    """
    here = [row for row in rows if row.region == wanted.region]
    if not here:
        known = ", ".join(dict.fromkeys(row.region for row in rows))
        raise UnpricedError(
            "region", f"{what!r} has no price in {wanted.region!r} (known regions: {known})"
        )
    if wanted.zone is not None and wanted.zone not in [row.zone for row in here]:
        known = ", ".join(dict.fromkeys(row.zone for row in here)) or "none"
        raise UnpricedError(
            "zone", f"{what!r} has no price in {wanted.zone!r} (known zones: {known})"
        )
    here = [row for row in here if wanted.zone in (None, row.zone)]
    if broken := [row for row in here if row.problem]:
        more = f"; {len(broken) - 1} more lines are unreadable" if len(broken) > 1 else ""
        problem = f"{prices.name} line {broken[0].line}: {broken[0].problem}{more}"
        raise UnpricedError(key, f"{problem} (correct or delete the line{'s' if more else ''})")
    priced = [row for row in here if _is_usable(row, costs)]
    if not priced:
        columns = " or ".join(PRICES[pricing] for pricing in usable_pricings(costs))
        lines = _lines(here)
        raise UnpricedError(
            key, f"{what!r} has no {columns} in {prices.name} {lines} (add a price)"
        )
    found: dict[str, ListedPrice] = {}
    for row in priced:
        first = found.setdefault(row.zone, row)
        if (first.prices, first.vcpus) != (row.prices, row.vcpus):
            lines = _lines([first, row])
            raise UnpricedError(
                key,
                f"{what!r} has different prices or vCPUs in {prices.name} {lines} (keep one line)",
            )
    return found


def _is_usable(row: ListedPrice, costs: Costs) -> bool:
    return any(row.prices[pricing] is not None for pricing in usable_pricings(costs))


def _of_row(
    row: ListedPrice,
    rows: Sequence[ListedPrice],
    wanted: PriceRow,
    prices: PriceList,
    costs: Costs,
) -> MachinePrice:
    """Convert a row of the price list into prices in USD. `rows` contains the rows of the same
    machine or accelerator in all regions. The function compares them to find doubtful prices."""
    worth = costs.usd_per_currency_unit or 1.0
    usd = {pricing: price and price * worth for pricing, price in row.prices.items()}
    at = "" if costs.currency == "USD" else f", in {costs.currency} at {worth:g} USD"
    return MachinePrice(
        usd_per_hour=_with_discount(usd, costs),
        currency=costs.currency,
        vcpus=row.vcpus,
        accelerators=_devices(row) if row.accelerator else 0.0,
        zone=row.zone,
        source=row.source + at,
        date=row.date or costs.priced_on,
        doubts=tuple(
            f"{prices.name} {doubt}"
            for doubt in (*doubts_of(row, rows), *_left_out(wanted, rows, costs))
        ),
    )


def _left_out(wanted: PriceRow, rows: Sequence[ListedPrice], costs: Costs) -> Iterator[str]:
    """Yield a warning if some zones of the region have no usable price. Such a zone may be cheaper
    than the zone whose price Perseus uses."""
    here = [row for row in rows if row.region == wanted.region and wanted.zone is None]
    if unpriced := [row for row in here if not _is_usable(row, costs)]:
        columns = " or ".join(PRICES[pricing] for pricing in usable_pricings(costs))
        zones = " and ".join(row.zone or "the whole region" for row in unpriced)
        yield (
            f"{_lines(unpriced)}: no {columns} is listed for {zones} (the price there may be lower)"
        )


def _custom(of: CustomMachine, costs: Costs) -> MachinePrice:
    def usd(rates: Rates | None) -> float | None:
        if rates is None:
            return None
        return of.vcpus * rates.usd_per_vcpu_hour + of.memory_gib * rates.usd_per_gib_hour

    source = f"configured rates for {of.vcpus} vCPUs and {of.memory_gib:g} GiB"
    rates = {"on_demand": usd(of.on_demand), "spot": usd(of.spot), "committed": usd(of.committed)}
    return MachinePrice(
        usd_per_hour=_with_discount(rates, costs),
        currency="USD",
        vcpus=float(of.vcpus),
        accelerators=0.0,
        zone="",
        source=f"{source} ({of.source})" if of.source else source,
        date=costs.priced_on,
        doubts=tuple(f"configured rates: {doubt}" for doubt in _unlikely(rates)),
    )


def _with_discount(usd: Mapping[str, float | None], costs: Costs) -> dict[str, float | None]:
    """Return the prices `usd`. If the committed price is unknown, compute it from the on-demand
    price and the configured discount."""
    on_demand, committed, discount = usd["on_demand"], usd["committed"], costs.committed_discount
    if committed is None and on_demand is not None and discount is not None:
        committed = on_demand * (1 - discount)
    return {**usd, "committed": committed}


def doubts_of(row: ListedPrice, rows: Sequence[ListedPrice]) -> Iterator[str]:
    """Yield the reasons why the price in `row` may be wrong. `rows` contains the rows of the same
    machine or accelerator in all regions."""
    same = [each for each in rows if (each.region, each.zone) == (row.region, row.zone)]
    if len(same) > 1:
        yield f"{_lines(same)} are for the same zone (keep only the line with the right prices)"
    for doubt in _unlikely(row.prices):
        yield f"line {row.line}: {doubt}"
    on_demand = row.prices["on_demand"]
    if on_demand is None:
        return
    elsewhere = {each.region: each.prices["on_demand"] or on_demand for each in rows}
    elsewhere.pop(row.region)
    usual = median(elsewhere.values()) if elsewhere else on_demand
    if not usual / SUSPICIOUS_REGION < on_demand < usual * SUSPICIOUS_REGION:
        yield (
            f"line {row.line}: the on-demand price is {on_demand:g} per hour, but the median price"
            f" in other regions is {usual:g}"
        )


def _unlikely(prices: Mapping[str, float | None]) -> Iterator[str]:
    """Yield the reasons why the spot price or the committed price is unlikely, compared with the
    on-demand price."""
    on_demand, spot = prices["on_demand"], prices["spot"]
    if on_demand is None:
        return
    for pricing in ("spot", "committed"):
        if (prices[pricing] or 0.0) >= on_demand:
            yield f"the {pricing} price is not below the on-demand price"
    if spot is not None and spot < SUSPICIOUS_SPOT * on_demand:
        yield f"the spot price is only {spot / on_demand:.0%} of the on-demand price"


def _lines(rows: Sequence[ListedPrice]) -> str:
    numbers = " and ".join(str(row.line) for row in rows)
    return f"lines {numbers}" if len(rows) > 1 else f"line {numbers}"
