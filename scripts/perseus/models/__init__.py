"""Convert neural networks into files that an inference server can load.

The input is an architecture with its weights, or an ONNX file of the user. The outputs are ONNX
files, programs of torch.export, TensorRT plans and Triton model repositories.
"""
