"""Define the task: check the tables of a study."""

from __future__ import annotations

from perseus.study.base import Part


class CheckTask(Part):
    """Settings of the check of the tables.

    `images_per_request` has the number of images in each request for each scenario and tenant, if
    the number is above 1. The check needs this number, because rates are in requests/s, but costs
    are per image.
    """

    images_per_request: dict[str, dict[str, int]]
