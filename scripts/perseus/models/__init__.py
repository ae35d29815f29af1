"""Convert a torchvision CNN into files for a server.

In: an architecture and its weights. Out: ONNX files, programs, plans and Triton repositories.
"""
