"""Repository: the Triton model repository of each scenario, one tenant at a time.

inputs:   the exported models
outputs:  model_repository/<study>/<scenario>/<tenant>/{config.pbtxt,1/model.onnx}
steps:    write the configuration as Triton's protobuf message, copy the model
"""


rule repository:
    """One tenant of a scenario's Triton repository."""
    input:
        model=lambda w: f"{RESULTS}/models/{plan.tenant(STUDY, w.scenario, w.tenant).model}/model.onnx",
        check=lambda w: f"{RESULTS}/models/{plan.tenant(STUDY, w.scenario, w.tenant).model}/check.json",
        code=code("repository"),
    output:
        config=f"{REPOSITORY}/{{scenario}}/{{tenant}}/config.pbtxt",
        model=f"{REPOSITORY}/{{scenario}}/{{tenant}}/1/model.onnx",
    log:
        f"{LOGS}/repository/{{scenario}}/{{tenant}}.log",
    conda:
        "../envs/perseus.yaml"
    params:
        slice=lambda w: plan.repository_slice(STUDY, w.scenario, w.tenant),
    message:
        "Adding {wildcards.tenant} to the repository of {wildcards.scenario}"
    script:
        "../scripts/repository.py"
