"""Build TensorRT plans on the machine that serves them.

inputs:   a model as ONNX, in the served precision
outputs:  results/<study>/plans/<server>/<tenant>/{model.plan,plan.json}
steps:    build with trtexec for the batch sizes of the tenant, record versions, GPU and hashes
"""


rule tensorrt:
    """Build the plan of one tenant. No measurement runs meanwhile, because the job uses the GPU."""
    input:
        model=lambda w: files.onnx(STUDY, f"{w.server}.{w.tenant}", w.tenant),
        check=lambda w: files.check(STUDY, model_of(f"{w.server}.{w.tenant}", w.tenant)),
        image=lambda w: files.image(STUDY.servers[w.server]),
    output:
        model=f"{RESULTS}/plans/{{server}}/{{tenant}}/model.plan",
        record=f"{RESULTS}/plans/{{server}}/{{tenant}}/plan.json",
    log:
        f"{LOGS}/tensorrt/{{server}}/{{tenant}}.log",
    conda:
        "../envs/perseus.yaml"
    threads: slots.ALL_THREADS
    resources:
        local_server=1,
        mem_mb=8000,
    params:
        task=lambda w: planning.tensorrt_task(STUDY, w.server, w.tenant).plain(),
        code=SOURCES.fingerprint(["tensorrt_plan.py"]),
        image=lambda w: contents(files.image(STUDY.servers[w.server])),
    message:
        "Building the TensorRT plan of {wildcards.tenant} for {wildcards.server}"
    script:
        "../scripts/tensorrt_plan.py"
