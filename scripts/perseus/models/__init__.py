"""Convert networks into files for a server.

The input is an architecture with its weights, or an ONNX file of the user. The output is ONNX
files, programs of torch.export, TensorRT plans and Triton model repositories.
"""
