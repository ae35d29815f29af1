"""Write the Triton model repository of each scenario, with the expected responses of its models.

inputs:   for each deployed tenant: the exported model or its TensorRT plan, the record of the
          export, and the reference responses
outputs:  model_repository/<study>/<scenario>/: <tenant>/{config.pbtxt,1/model.*}; for a tenant that
          gets image files, also <tenant>.preprocess and <tenant>.network (<tenant> is then the
          ensemble of both); and <tenant>.reference.npz, which Triton ignores
steps:    write each configuration as a protobuf message of Triton, copy models and responses
"""


rule repository:
    """Write all models of a scenario into its folder. Snakemake first empties the folder."""
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
