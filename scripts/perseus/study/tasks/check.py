"""Define the task: check the tables of a study."""

from __future__ import annotations

from perseus.study.base import Part


class CheckTask(Part):
    """The inputs of the check of the tables.

    `images_per_request` has the number of images by scenario and tenant, for requests of more than
    one image. Rates count requests, and costs count inferences.
    """

    images_per_request: dict[str, dict[str, int]]
