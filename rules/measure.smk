"""Measure: one cell on a server of its own.

inputs:   the scenario's repository, torch's answers, records of the dedicated peaks of its tenants,
          the trace of arrivals, if they come from one
outputs:  results/<study>/raw/<cell>/{requests,windows,monitor}.parquet, record.json, server.log
steps:    start Triton, check its answers, search the peak, sample the host, stop Triton
"""


rule measure:
    """One cell. Nothing else runs beside a server on this host; a remote one leaves cores free."""
    input:
        repository=lambda w: plan.repository_files(STUDY, plan.cell(STUDY, w.cell).scenario),
        references=lambda w: plan.references(STUDY, plan.cell(STUDY, w.cell).scenario),
        dedicated=lambda w: plan.records(
            STUDY, plan.dedicated_cells(STUDY, plan.cell(STUDY, w.cell))
        ),
        trace=plan.trace_files(STUDY),
        backend=lambda w: plan.backend_files(plan.cell(STUDY, w.cell).scenario.server),
        code=code("measure"),
    output:
        requests=f"{RESULTS}/raw/{{cell}}/requests.parquet",
        windows=f"{RESULTS}/raw/{{cell}}/windows.parquet",
        monitor=f"{RESULTS}/raw/{{cell}}/monitor.parquet",
        record=f"{RESULTS}/raw/{{cell}}/record.json",
        server_log=f"{RESULTS}/raw/{{cell}}/server.log",
    log:
        f"{LOGS}/measure/{{cell}}.log",
    conda:
        "../envs/perseus.yaml"
    threads: lambda w: plan.threads(plan.cell(STUDY, w.cell))
    resources:
        **SLOTS,
        mem_mb=4000,
    params:
        slice=lambda w: plan.measure_slice(STUDY, plan.cell(STUDY, w.cell)),
    message:
        "Measuring {wildcards.cell}"
    script:
        "../scripts/measure.py"
