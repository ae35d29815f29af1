"""Task: check the tables of a study."""

from __future__ import annotations

from perseus.study.base import Part


class CheckTask(Part):
    """`images_per_request` is by scenario and tenant, for requests of more than one image: rates
    count requests, costs count inferences."""

    images_per_request: dict[str, dict[str, int]]
