"""Tests of the batches that a server receives before the measurement."""

import pytest

from perseus.measurement.first_inferences import MAX_SIZES, batch_sizes


@pytest.mark.parametrize(
    ("request_size", "largest", "batching", "sizes"),
    [
        (1, 8, False, [1]),
        (4, 8, False, [4]),
        (1, 8, True, [1, 2, 3, 4, 5, 6, 7, 8]),
        (3, 8, True, [3, 6]),
        (8, 8, True, [8]),
    ],
)
def test_the_batches_that_can_be_formed(request_size, largest, batching, sizes):
    assert batch_sizes(request_size, largest, batching) == sizes


def test_of_many_sizes_an_even_selection_with_both_ends():
    sizes = batch_sizes(1, 1024, True)
    assert len(sizes) == MAX_SIZES and sizes == sorted(set(sizes))
    assert (sizes[0], sizes[-1]) == (1, 1024)
