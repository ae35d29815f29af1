"""Repository: the Triton model repository of each scenario, with what its models are to answer.

inputs:   for each tenant that is brought to the server its exported model, or TensorRT's plan of it,
          the record of the export, and torch's answers: to images, or to pictures where it gets some
outputs:  model_repository/<study>/<scenario>/: <tenant>/{config.pbtxt,1/model.*}, for a tenant that
          gets pictures the same in <tenant>.preprocess and <tenant>.network, of which it is the
          ensemble; and <tenant>.reference.npz, which Triton does not look at
steps:    write each configuration as Triton's protobuf message, copy model and answers
"""


rule repository:
    """All models of a scenario's server. Snakemake empties the folder before it makes it again."""
    input:
        unpack(lambda w: files.repository_inputs(STUDY, STUDY.scenarios[w.scenario])),
    output:
        directory(f"{REPOSITORY}/{{scenario}}"),
    log:
        f"{LOGS}/repository/{{scenario}}.log",
    wildcard_constraints:
        scenario=rf"{any_of(STUDY.servers)}\.[A-Za-z0-9_.~-]+",
    priority: lambda w: urgency(STUDY.scenarios[w.scenario].tenants[0].model)
    conda:
        "../envs/perseus.yaml"
    params:
        task=lambda w: repository_task(w.scenario).plain(),
        code=lambda w: provenance.repository_code(SOURCES, repository_task(w.scenario)),
    message:
        "Writing the repository of {wildcards.scenario}"
    script:
        "../scripts/repository.py"
