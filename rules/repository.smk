"""Repository: the Triton model repository of each scenario, one tenant at a time.

inputs:   the exported models, or TensorRT's plans of them; for a tenant that gets pictures, what its
          network wants of them
outputs:  model_repository/<study>/<scenario>/<tenant>/{config.pbtxt,1/model.*}, and for a tenant that
          gets pictures the same in <tenant>.preprocess and <tenant>.network, of which it is the ensemble
steps:    write the configuration as Triton's protobuf message, copy the model
"""

# A name stands for one tenant in the whole study.
NETWORKS = any_of(tenant.network for tenant in TENANTS)


rule repository:
    """The network of one tenant of a scenario's Triton repository, as ONNX."""
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
        tenant=NETWORKS,
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
        tenant=NETWORKS,


use rule repository as repository_plan with:
    output:
        config=f"{REPOSITORY}/{{scenario}}/{{tenant}}/config.pbtxt",
        model=f"{REPOSITORY}/{{scenario}}/{{tenant}}/1/{PLAN}",
    wildcard_constraints:
        scenario=scenarios_with(PLAN),
        tenant=NETWORKS,


rule ensemble:
    """What stands before the network of a tenant that gets pictures, and the ensemble of both."""
    input:
        pictures=lambda w: files.pictures(STUDY, model_of(w.scenario, w.tenant)),
        check=lambda w: files.check(STUDY, model_of(w.scenario, w.tenant)),
    output:
        ensemble=f"{REPOSITORY}/{{scenario}}/{{tenant}}/{CONFIG}",
        version=f"{REPOSITORY}/{{scenario}}/{{tenant}}/1/{ENSEMBLE_FILE}",
        preprocess=f"{REPOSITORY}/{{scenario}}/{{tenant}}.preprocess/{CONFIG}",
        program=f"{REPOSITORY}/{{scenario}}/{{tenant}}.preprocess/1/{PREPROCESS_FILE}",
    log:
        f"{LOGS}/ensemble/{{scenario}}/{{tenant}}.log",
    wildcard_constraints:
        tenant=any_of(tenant.name for tenant in TENANTS if tenant.steps),
    conda:
        "../envs/perseus.yaml"
    params:
        task=lambda w: ensemble_task(w.scenario, w.tenant).plain(),
        code=SOURCES.fingerprint(["ensemble.py"]),
    message:
        "Adding what preprocesses for {wildcards.tenant} to the repository of {wildcards.scenario}"
    script:
        "../scripts/ensemble.py"
