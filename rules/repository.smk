"""Repository: the Triton model repository of each scenario, one tenant at a time.

inputs:   the exported models, or TensorRT's plans of them
outputs:  model_repository/<study>/<scenario>/<tenant>/{config.pbtxt,1/model.*}
steps:    write the configuration as Triton's protobuf message, copy the model
"""


rule repository:
    """One tenant of a scenario's Triton repository, its model as ONNX."""
    input:
        model=lambda w: plan.served_file(STUDY, w.scenario, w.tenant),
        check=lambda w: f"{RESULTS}/models/{plan.tenant(STUDY, w.scenario, w.tenant).model}/check.json",
        code=code("repository"),
    output:
        config=f"{REPOSITORY}/{{scenario}}/{{tenant}}/config.pbtxt",
        model=f"{REPOSITORY}/{{scenario}}/{{tenant}}/1/model.onnx",
    log:
        f"{LOGS}/repository/{{scenario}}/{{tenant}}.log",
    wildcard_constraints:
        scenario=scenarios_with("onnx"),
    conda:
        "../envs/perseus.yaml"
    params:
        slice=lambda w: plan.repository_slice(STUDY, w.scenario, w.tenant),
    message:
        "Adding {wildcards.tenant} to the repository of {wildcards.scenario}"
    script:
        "../scripts/repository.py"


use rule repository as repository_program with:
    output:
        config=f"{REPOSITORY}/{{scenario}}/{{tenant}}/config.pbtxt",
        model=f"{REPOSITORY}/{{scenario}}/{{tenant}}/1/model.pt2",
    wildcard_constraints:
        scenario=scenarios_with("pt2"),


use rule repository as repository_plan with:
    output:
        config=f"{REPOSITORY}/{{scenario}}/{{tenant}}/config.pbtxt",
        model=f"{REPOSITORY}/{{scenario}}/{{tenant}}/1/model.plan",
    wildcard_constraints:
        scenario=scenarios_with("plan"),
