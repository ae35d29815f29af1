"""Define the task: check the tables of a study."""

from __future__ import annotations

from perseus.study.base import Part


class CheckTask(Part):
    """The inputs of the check of the tables.

    `images_per_request` has the number of images in each request, by scenario and tenant, if the
    number is above 1. The check needs it because rates count requests, but costs count inferences.
    """

    images_per_request: dict[str, dict[str, int]]
