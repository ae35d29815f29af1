"""Measure the cells. Each measurement starts its own server.

inputs:   the Triton repository of the scenario with the reference responses; if the load depends on
          them, the records of dedicated peaks, of earlier cells and of exports; if configured, the
          trace of arrivals, files of the experiment, and the image file of the container
outputs:  results/<study>/raw/<cell>/ with {requests,windows,monitor}.parquet, record.json and
          server.log;
          for dedicated peaks with repeats, results/<study>/repeats/<scenario>.<load line>.json;
          for each kind of experiment, results/<study>/measured/<kind>.json
steps:    start Triton, check its responses, run the experiment, sample the host, stop Triton
"""


rule measure:
    """Measure one cell. No other job runs during a measurement of a server on this host."""
    input:
        unpack(lambda w: files.cell_inputs(STUDY, cell_of(w.cell))),
    output:
        # The only output is a folder: more outputs would slow down the planning of a large study.
        directory(f"{RESULTS}/raw/{{cell}}"),
    log:
        f"{LOGS}/measure/{{cell}}.log",
    priority: of_cells(lambda cell: urgency(cell.scenario.tenants[0].model))
    conda:
        "../envs/perseus.yaml"
    threads: of_cells(slots.threads)
    resources:
        **SLOTS,
        **TIME,
        mem_mb=4000,
    params:
        task=lambda w: MEASURE_TASKS.plain(w.cell),
        code=lambda w: MEASURE_TASKS.code(w.cell),
        versions=lambda w: MEASURE_TASKS.versions(w.cell),
    message:
        "Measuring {wildcards.cell}"
    script:
        "../scripts/measure.py"


rule repeats:
    """Write the records of all repeats of a dedicated peak into one file. Shared cells read it."""
    input:
        lambda w: files.raw(STUDY, STUDY.repeats_of(w.repeated)),
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
        "Collecting the repeats of {wildcards.repeated}"
    script:
        "../scripts/repeats.py"


rule measured:
    """Write the list of measured cells of one kind of experiment, with hashes of their records.

    Jobs that depend on all cells read these lists, which makes the planning of a large study
    faster.
    """
    input:
        lambda w: files.raw_of_kind(STUDY, w.kind),
    output:
        f"{RESULTS}/measured/{{kind}}.json",
    log:
        f"{LOGS}/measured/{{kind}}.log",
    localrule: True
    conda:
        "../envs/perseus.yaml"
    params:
        code=SOURCES.fingerprint(["measured.py"]),
    message:
        "Listing measured cells: {wildcards.kind}"
    script:
        "../scripts/measured.py"
