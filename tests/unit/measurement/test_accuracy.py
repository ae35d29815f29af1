"""Tests of the requests that measure the accuracy on labelled images."""

from types import SimpleNamespace

import numpy as np
import pytest

from perseus.measurement import accuracy
from perseus.models.images import random_pictures
from perseus.models.labelled import Labelled
from perseus.models.pictures import Pictures, as_batch
from perseus.models.preprocess import Preprocessing


@pytest.fixture
def labelled(tmp_path):
    files = [np.fromfile(name, np.uint8) for name in random_pictures(tmp_path, 3, seed=1)]
    like = Preprocessing(64, 64, (0.5,) * 3, (0.2,) * 3, "BILINEAR")
    return Labelled(Pictures(files, like), np.array([7, 8, 9]))


@pytest.mark.parametrize("preprocessing", [None, "client", "server"])
def test_only_a_server_that_preprocesses_gets_image_files(labelled, preprocessing):
    tenant = SimpleNamespace(settings=SimpleNamespace(preprocessing=preprocessing))
    sent = accuracy._inputs(tenant, labelled, [2, 0])["input"]
    if preprocessing == "server":
        files = labelled.pictures.files
        assert np.array_equal(sent, as_batch([files[2], files[0]]))
    else:
        assert sent.shape == (2, 3, 64, 64) and np.array_equal(sent, labelled.tensors([2, 0]))
