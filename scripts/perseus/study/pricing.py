"""Compute the price of a server. If several servers share a cloud instance, each server pays a part
of the price of the instance (docs/explanation/sharing-ratio.md)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from perseus.study.machine_price import MachinePrice, UnpricedError, machine_price, usable_pricings
from perseus.study.presentation import Costs
from perseus.study.price import PriceRow
from perseus.study.price_list import PriceList
from perseus.study.server import Server
from perseus.study.tasks.tables import Price


def price_of(server: Server, wanted: PriceRow, prices: PriceList, costs: Costs) -> Price:
    """Return the price of the server according to the row of the price list that `wanted` selects.

    Raises UnpricedError if the server has no valid price.
    """
    parts = machine_price(wanted, prices, costs)
    share = _share(server, wanted, parts)
    price = Price(
        instance=wanted.instance,
        region=wanted.region,
        zone=parts[0].zone,
        accelerator=wanted.accelerator or "",
        vcpus=parts[0].vcpus,
        share=share,
        on_demand_usd_per_hour=_usd(parts, "on_demand", share),
        spot_usd_per_hour=_usd(parts, "spot", share),
        committed_usd_per_hour=_usd(parts, "committed", share),
        currency="; ".join(dict.fromkeys(part.currency for part in parts)),
        date=_date(parts),
        source="; ".join(dict.fromkeys(part.source for part in parts)),
    )
    needed = usable_pricings(costs)
    if all(price.usd_per_hour(pricing) is None for pricing in needed):
        names = " or ".join(pricing.replace("_", "-") for pricing in needed)
        raise UnpricedError("instance", f"{wanted.instance!r} has no {names} price")
    missing = [each for each in costs.pricing if price.usd_per_hour(each) is None]
    doubts = dict.fromkeys(doubt for part in parts for doubt in part.doubts)
    doubts |= {f"no {each.replace('_', '-')} price is known": None for each in missing}
    if price.date is None and costs.prices is not None:
        doubts |= {"the day on which the price was valid is unknown (set `costs.priced_on`)": None}
    return price.model_copy(update={"doubts": tuple(doubts)})


def price_messages(prices: Mapping[str, Sequence[Price]]) -> Iterator[str]:
    """Yield the warnings about prices that may be wrong: one line for each price and reason.
    `prices` contains the prices of each server."""
    for server, offers in prices.items():
        for price in offers:
            for doubt in price.doubts:
                yield f"Price of {server!r} ({price.instance} in {price.region}): {doubt}"


def _usd(parts: Sequence[MachinePrice], pricing: str, share: float) -> float | None:
    """Return `share` times the price of all `parts` (a machine and its accelerators), in USD per
    hour. The result is None if one of the parts has no price for `pricing`."""
    each = [part.usd_per_hour[pricing] for part in parts]
    known = [usd for usd in each if usd is not None]
    return share * sum(known) if len(known) == len(each) else None


def _date(parts: Sequence[MachinePrice]) -> str | None:
    """Return the earliest date of the prices of `parts` (a machine and its accelerators); None if
    one of the dates is unknown."""
    days = [part.date or "" for part in parts]
    return min(days) or None


def _share(server: Server, wanted: PriceRow, parts: Sequence[MachinePrice]) -> float:
    """Return the share (0 to 1) of the instance's price that the server pays: the configured share,
    or 1 if the server uses the whole instance.

    Raises UnpricedError if `accelerator` or `share` in `wanted` is missing or invalid, or if the
    instance has fewer cores or GPUs than the server.
    """
    vcpus, gpus = parts[0].vcpus, len(server.gpus or ())
    accelerators = sum(part.accelerators for part in parts)
    if gpus and not accelerators:
        raise UnpricedError(
            "accelerator",
            f"is missing: the server uses GPUs, but the price of {wanted.instance!r} includes no"
            " GPU (state the accelerators that you add to the instance, such as T4:1)",
        )
    if len(parts) > 1 and parts[0].accelerators:
        raise UnpricedError(
            "accelerator",
            f"the price of {wanted.instance!r} already includes accelerators (remove this key)",
        )
    if vcpus is None:
        if wanted.share is None:
            raise UnpricedError(
                "share",
                "is missing: the price list does not state the number of vCPUs of"
                f" {wanted.instance!r} (write the share that the server uses, such as `share: 1`)",
            )
        return wanted.share
    has, used, least = f"{vcpus:g} vCPUs", f"{server.cores} cores", server.cores / vcpus
    if gpus:
        has, used = f"{has} and {accelerators:g} accelerators", f"{used} and {gpus} GPUs"
        least = max(least, gpus / accelerators)
    if least > 1:
        raise UnpricedError(
            "instance",
            f"{wanted.instance!r} has {has}, but the server has {used} (use a larger instance)",
        )
    if wanted.share is None and (server.cores != vcpus or (gpus and gpus != accelerators)):
        part = f"`share: {least:.3g}` if other servers use the rest, or " if least < 1 else ""
        raise UnpricedError(
            "share",
            f"is missing: {wanted.instance!r} has {has}, but the server has {used} (write {part}"
            "`share: 1` if no other server uses the rest of the instance)",
        )
    if wanted.share is not None and wanted.share < least * 0.999:
        raise UnpricedError(
            "share",
            f"is smaller than the part that the server uses: {wanted.instance!r} has {has}, and the"
            f" server has {used}",
        )
    return 1.0 if wanted.share is None else wanted.share
