"""A model of MLServer that returns twice the first ten numbers of each image."""

import numpy as np
from mlserver import MLModel
from mlserver.codecs import NumpyCodec
from mlserver.types import InferenceRequest, InferenceResponse


class Scores(MLModel):
    """A model without weights."""

    async def load(self) -> bool:
        return True

    async def predict(self, payload: InferenceRequest) -> InferenceResponse:
        images = NumpyCodec.decode_input(payload.inputs[0])
        scores = 2 * images.reshape(len(images), -1)[:, :10].astype(np.float32)
        output = NumpyCodec.encode_output("scores", scores)
        return InferenceResponse(model_name=self.name, outputs=[output])
