"""Convert networks into files for a server.

The input is an architecture and its weights, or a file of the user. The output is ONNX files,
programs of torch.export, TensorRT plans and Triton repositories.
"""
