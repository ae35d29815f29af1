"""Measure: one cell on a server of its own.

inputs:   the scenario's repository, torch's answers, records of the dedicated peaks of its tenants
          and of the cells that decide on its mix or predict it, records of exports where they
          predict it by the memory that models touch, the trace of arrivals, if the experiment's come
          from one, files that the experiment reads, the container's image, if it is a file
outputs:  results/<study>/raw/<cell>/{requests,windows,monitor}.parquet, record.json, server.log; of
          dedicated peaks with repeats results/<study>/repeats/<scenario>.<experiment>.json
steps:    start Triton, check its answers, run the experiment, sample the host, stop Triton
"""


rule measure:
    """One cell. Nothing else runs beside a server on this host; a remote one leaves cores free."""
    input:
        unpack(lambda w: files.of_cell(STUDY, STUDY.cells[w.cell])),
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


rule repeats:
    """The records of all repeats of a dedicated peak, in one file that shared cells rest on."""
    input:
        lambda w: files.raw(STUDY, STUDY.repeats_of(w.repeated), "record.json"),
    output:
        f"{RESULTS}/repeats/{{repeated}}.json",
    log:
        f"{LOGS}/repeats/{{repeated}}.log",
    localrule: True
    conda:
        "../envs/perseus.yaml"
    params:
        code=SOURCES.fingerprint(["repeats.py"]),
    message:
        "Gathering the repeats of {wildcards.repeated}"
    script:
        "../scripts/repeats.py"
