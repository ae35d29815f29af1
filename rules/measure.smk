"""Measure: one cell on a server of its own.

inputs:   the scenario's repository, torch's answers, records of the dedicated peaks of its tenants
          and of the cells that decide on its mix, the trace of arrivals, if they come from one,
          files that the experiment reads, the container's image, if it is a file
outputs:  results/<study>/raw/<cell>/{requests,windows,monitor}.parquet, record.json, server.log
steps:    start Triton, check its answers, run the experiment, sample the host, stop Triton
"""


rule measure:
    """One cell. Nothing else runs beside a server on this host; a remote one leaves cores free."""
    input:
        repository=lambda w: files.repository_files(STUDY, STUDY.cells[w.cell].scenario),
        references=lambda w: files.references(STUDY, STUDY.cells[w.cell].scenario),
        dedicated=lambda w: files.raw(
            STUDY, STUDY.dedicated_cells(STUDY.cells[w.cell]), "record.json"
        ),
        earlier=lambda w: files.raw(STUDY, STUDY.earlier_cells(STUDY.cells[w.cell]), "record.json"),
        trace=files.trace(STUDY),
        files=lambda w: files.of_experiment(STUDY.cells[w.cell]),
        image=lambda w: files.image(STUDY.cells[w.cell].scenario.server),
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
    threads: lambda w: slots.threads(STUDY.cells[w.cell])
    resources:
        **SLOTS,
        **TIME,
        mem_mb=4000,
    params:
        task=lambda w: measure_task(w.cell).plain(),
        code=lambda w: provenance.measure_code(SOURCES, measure_task(w.cell)),
        versions=lambda w: provenance.measure_versions(measure_task(w.cell)),
    message:
        "Measuring {wildcards.cell}"
    script:
        "../scripts/measure.py"
