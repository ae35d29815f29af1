"""Every answer that the load will ask for is held against torch's before anything is measured."""

import numpy as np
import pytest
from measure_tasks import measure_task, tenant

from perseus.measurement import verify
from perseus.measurement.tenant_under_test import tenants_on
from perseus.serving.running_server import RunningServer


@pytest.mark.parametrize("wrong_image", [0, 1, 2, 3])
@pytest.mark.parametrize("batch_size", [1, 2, 4])
def test_a_wrong_answer_to_any_image_of_the_load_is_noticed(
    tmp_path, monkeypatch, wrong_image, batch_size
):
    images = np.arange(4, dtype=np.float32).reshape(4, 1, 1, 1)
    np.savez(tmp_path / "reference.npz", input=images, output=images.reshape(4, 1))
    task = measure_task(tenant("a", max_batch_size=batch_size, request_batch_size=batch_size))
    nobody = RunningServer("", "", "", None)
    tenants = tenants_on(nobody, task, {"a": tmp_path / "reference.npz"})

    def answers(wrong):
        def answer(tenant, parts):
            flat = [batch.reshape(len(batch), 1) for batch in tenant.batches(parts)]
            return [np.where(batch == wrong, batch + 1, batch) for batch in flat]

        return answer

    monkeypatch.setattr(verify, "_answers", answers(None))
    assert verify.verify(tenants) == {"a": 0}
    monkeypatch.setattr(verify, "_answers", answers(wrong_image))
    with pytest.raises(verify.VerificationError, match="differ from the original network's"):
        verify.verify(tenants)
