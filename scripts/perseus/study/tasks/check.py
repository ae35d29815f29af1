"""The task of checking the tables of a study."""

from __future__ import annotations

from perseus.study.base import Part


class CheckTask(Part):
    """`images_per_request` is by scenario and tenant, of those that ask for more than one at once:
    rates are in requests, costs in inferences."""

    images_per_request: dict[str, dict[str, int]]
