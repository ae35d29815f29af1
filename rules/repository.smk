"""Repository: the Triton model repository of each scenario, one tenant at a time.

inputs:   the exported models, or TensorRT's plans of them
outputs:  model_repository/<study>/<scenario>/<tenant>/{config.pbtxt,1/model.*}
steps:    write the configuration as Triton's protobuf message, copy the model
"""


rule repository:
    """One tenant of a scenario's Triton repository, its model as ONNX."""
    input:
        model=lambda w: files.served(STUDY, w.scenario, w.tenant),
        check=lambda w: files.check(STUDY, model_of(w.scenario, w.tenant)),
    output:
        config=f"{REPOSITORY}/{{scenario}}/{{tenant}}/config.pbtxt",
        model=f"{REPOSITORY}/{{scenario}}/{{tenant}}/1/{ONNX}",
    log:
        f"{LOGS}/repository/{{scenario}}/{{tenant}}.log",
    wildcard_constraints:
        scenario=scenarios_with(ONNX),
    conda:
        "../envs/perseus.yaml"
    params:
        task=lambda w: repository_task(w.scenario, w.tenant).plain(),
        code=lambda w: provenance.repository_code(SOURCES, repository_task(w.scenario, w.tenant)),
    message:
        "Adding {wildcards.tenant} to the repository of {wildcards.scenario}"
    script:
        "../scripts/repository.py"


use rule repository as repository_program with:
    output:
        config=f"{REPOSITORY}/{{scenario}}/{{tenant}}/config.pbtxt",
        model=f"{REPOSITORY}/{{scenario}}/{{tenant}}/1/{PROGRAM}",
    wildcard_constraints:
        scenario=scenarios_with(PROGRAM),


use rule repository as repository_plan with:
    output:
        config=f"{REPOSITORY}/{{scenario}}/{{tenant}}/config.pbtxt",
        model=f"{REPOSITORY}/{{scenario}}/{{tenant}}/1/{PLAN}",
    wildcard_constraints:
        scenario=scenarios_with(PLAN),
