"""Define the task: check the tables of a study."""

from __future__ import annotations

from perseus.study.base import Part


class CheckTask(Part):
    """Settings of the check of the tables.

    `images_per_request` has the number of images in each request, by scenario and tenant.
    `images_per_request` has only tenants with two or more images in each request. The check needs
    the number of images per request, because rates are in requests/s, but costs are per image.
    """

    images_per_request: dict[str, dict[str, int]]
