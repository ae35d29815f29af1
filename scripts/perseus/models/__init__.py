"""From a torchvision CNN to what a server loads.

In: an architecture and its weights. Out: ONNX files, programs, plans and Triton repositories.
"""
