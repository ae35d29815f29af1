"""Export: torchvision CNN -> ONNX, checked against torch.

inputs:   a state_dict file, if the model's weights are one; its images, if it has any
outputs:  results/<study>/models/<model>/{model.onnx,reference.npz,check.json}
steps:    build the network, export it, run it under ONNX Runtime, compare, keep the comparison
"""


rule export:
    """A model as ONNX, the answers that torch gave, and how close ONNX Runtime comes to them."""
    input:
        weights=lambda w: plan.weights_files(plan.model(STUDY, w.model)),
        images=lambda w: list(plan.model(STUDY, w.model).images),
        code=code("export"),
    output:
        model=f"{RESULTS}/models/{{model}}/model.onnx",
        reference=f"{RESULTS}/models/{{model}}/reference.npz",
        check=f"{RESULTS}/models/{{model}}/check.json",
    log:
        f"{LOGS}/export/{{model}}.log",
    conda:
        "../envs/perseus.yaml"
    resources:
        mem_mb=4000,
    params:
        slice=lambda w: plan.export_slice(STUDY, plan.model(STUDY, w.model)),
    message:
        "Exporting {wildcards.model} to ONNX"
    script:
        "../scripts/export.py"
