"""TensorRT: plans, built on the machine that serves them.

inputs:   a model as ONNX, in the precision that it is served in
outputs:  results/<study>/plans/<server>/<tenant>/{model.plan,plan.json}
steps:    build with trtexec for the tenant's batch sizes, record version, GPU, driver and hashes
"""


rule tensorrt:
    """The plan of one tenant. It uses the GPU, so nothing is measured meanwhile."""
    input:
        model=lambda w: plan.onnx_file(STUDY, plan.model_of(STUDY, w.server, w.tenant)),
        check=lambda w: f"{RESULTS}/models/{plan.model_of(STUDY, w.server, w.tenant)}/check.json",
        code=code("tensorrt_plan"),
    output:
        model=f"{RESULTS}/plans/{{server}}/{{tenant}}/model.plan",
        record=f"{RESULTS}/plans/{{server}}/{{tenant}}/plan.json",
    log:
        f"{LOGS}/tensorrt/{{server}}/{{tenant}}.log",
    conda:
        "../envs/perseus.yaml"
    threads: 100000
    resources:
        local_server=1,
        mem_mb=8000,
    params:
        slice=lambda w: plan.tensorrt_slice(STUDY, w.server, w.tenant),
    message:
        "Building TensorRT's plan of {wildcards.tenant} for {wildcards.server}"
    script:
        "../scripts/tensorrt_plan.py"
