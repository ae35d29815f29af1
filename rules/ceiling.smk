"""Measure the client ceiling: the highest rate at which the client of this host sends on schedule.

inputs:   the shapes of the requests (from the exports of models), the trace of arrivals (if any)
outputs:  results/<study>/ceilings/<server>.json
steps:    serve a model that does no work, raise the load until the client sends late
"""


rule ceiling:
    """Measure the client ceiling for the client of one server. No other job runs meanwhile."""
    input:
        checks=lambda w: files.checks(STUDY, w.server),
        trace=files.trace(STUDY),
    output:
        f"{RESULTS}/ceilings/{{server}}.json",
    log:
        f"{LOGS}/ceilings/{{server}}.log",
    conda:
        "../envs/perseus.yaml"
    threads: slots.ALL_THREADS
    resources:
        local_server=1,
        mem_mb=4000,
    params:
        task=lambda w: ceiling_task(w.server).plain(),
        code=lambda w: provenance.ceiling_code(SOURCES, ceiling_task(w.server)),
        versions=lambda w: {
            **provenance.ceiling_versions(ceiling_task(w.server)),
            **contents(files.trace(STUDY)),
        },
    message:
        "Measuring the client ceiling beside {wildcards.server}"
    script:
        "../scripts/ceiling.py"
