"""Measure: one cell on a server of its own.

inputs:   the scenario's repository, in which torch's answers are, records of the dedicated peaks of
          its tenants and of the cells that decide on its mix or predict it, of exports where they
          predict it by the memory that models touch, the trace of arrivals, if the experiment's come
          from one, files that the experiment reads, the container's image, if it is a file
outputs:  results/<study>/raw/<cell>/, with {requests,windows,monitor}.parquet, record.json, server.log;
          of dedicated peaks with repeats results/<study>/repeats/<scenario>.<load line>.json; of all
          cells of one kind of experiment results/<study>/measured/<kind>.json
steps:    start Triton, check its answers, run the experiment, sample the host, stop Triton
"""


rule measure:
    """One cell. Nothing else runs beside a server on this host; a remote one leaves cores free."""
    input:
        unpack(lambda w: files.cell_inputs(STUDY, STUDY.cells[w.cell])),
    output:
        # One output: Snakemake's work for each file is most of the planning of a large study.
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
    """The records of all repeats of a dedicated peak, in one file: an input of shared cells."""
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
    """The list of measured cells of one kind, with hashes of their records. Outputs that depend on
    all cells have these lists as inputs, for the same reason."""
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
