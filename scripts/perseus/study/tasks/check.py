"""Define the task of the job that checks the tables of a study."""

from __future__ import annotations

from perseus.study.base import Part


class CheckTask(Part):
    """Settings of the job that checks the tables.

    `images_per_request` contains the number of images in each request, by scenario and tenant, for
    tenants with two or more images in each request. The check needs this number, because rates are
    in requests/s, but costs are per image.
    """

    images_per_request: dict[str, dict[str, int]]
