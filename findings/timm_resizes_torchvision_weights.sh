#!/usr/bin/env bash
# timm 1.0.31 resizes images differently from torchvision 0.28.0 for most weights that both load from the same file.
#
# Expected: For the same file of weights, timm's data config and torchvision's transforms give the same input.
# Behaviour: 25 of 37 pairs differ: in the size to which the image is resized, in the crop or in the interpolation. By
#   default, timm gives resnet50.tv2_in1k images of 176 x 176 pixels and torchvision 224 x 224 pixels, so timm's network
#   needs 0.62 times as many operations. RegNets are resized bicubically by timm, bilinearly by torchvision. Before you
#   compare rates or accuracies, state the preprocessing. resolve_data_config(use_test_size=True) gives 224 pixels.
# Output, Debian 12, Python 3.11:
#   resnet50.tv2_in1k: timm resize 201, crop 176, bilinear; torchvision resize 232, crop 224, bilinear
#   regnety_016.tv2_in1k: timm resize 232, crop 224, bicubic; torchvision resize 232, crop 224, bilinear
#   25 of 37 pairs differ; with use_test_size, resnet50.tv2_in1k has crop 224
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q timm==1.0.31 torch==2.13.0 torchvision==0.28.0
cd "$folder"
venv/bin/python - <<'EOS'
import torch

try:
    import torchvision
except RuntimeError:  # A torch without CUDA does not load torchvision's operators, and these two are needed.
    for operator in ("nms", "qnms"):
        torch.library.define(f"torchvision::{operator}", "(Tensor dets, Tensor scores, float iou) -> Tensor")
    import torchvision
import timm
from timm.data import resolve_data_config

models = torchvision.models
by_url = {each.url: each for name in models.list_models(models) for each in models.get_model_weights(name)}
pairs = {}
for name in timm.list_pretrained():
    config = timm.get_pretrained_cfg(name)
    if weights := by_url.get(config.url):
        crop, preset = config.input_size[-1], weights.transforms()
        of_timm = int(crop / config.crop_pct), crop, config.interpolation
        pairs[name] = of_timm, (preset.resize_size[0], preset.crop_size[0], preset.interpolation.value)
for name in ("resnet50.tv2_in1k", "regnety_016.tv2_in1k"):
    ours, theirs = ("resize {}, crop {}, {}".format(*each) for each in pairs[name])
    print(f"{name}: timm {ours}; torchvision {theirs}")
different = sum(ours != theirs for ours, theirs in pairs.values())
config = timm.get_pretrained_cfg("resnet50.tv2_in1k").to_dict()
tested = resolve_data_config(pretrained_cfg=config, use_test_size=True)["input_size"][-1]
print(f"{different} of {len(pairs)} pairs differ; with use_test_size, resnet50.tv2_in1k has crop {tested}")
assert pairs["resnet50.tv2_in1k"] == ((201, 176, "bilinear"), (232, 224, "bilinear"))
assert pairs["regnety_016.tv2_in1k"] == ((232, 224, "bicubic"), (232, 224, "bilinear"))
assert (different, len(pairs), tested) == (25, 37, 224)
EOS
