"""Ceiling: what the client itself can offer on this host.

inputs:   the shapes of the requests, from the export of the models
outputs:  results/<study>/ceilings/<server>.json
steps:    serve a model that answers at once, raise the load until the client gives out
"""


rule ceiling:
    """The client's ceiling beside one server. Nothing else runs meanwhile."""
    input:
        checks=lambda w: plan.checks(STUDY, plan.servers(STUDY)[w.server]),
        backend="scripts/backends/null/model.py",
        code=code("ceiling"),
    output:
        f"{RESULTS}/ceilings/{{server}}.json",
    log:
        f"{LOGS}/ceilings/{{server}}.log",
    conda:
        "../envs/perseus.yaml"
    # More than any machine has: Snakemake lowers it to all the cores that it was given.
    threads: 100000
    resources:
        local_server=1,
        mem_mb=4000,
    params:
        slice=lambda w: plan.ceiling_slice(STUDY, plan.servers(STUDY)[w.server]),
    message:
        "Measuring the client's ceiling beside {wildcards.server}"
    script:
        "../scripts/ceiling.py"
