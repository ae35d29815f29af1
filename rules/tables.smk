"""Tables: all cells, with prices.

inputs:   the raw results of all cells, the client's ceilings, the records of exports
outputs:  results/<study>/tables/<table>.{parquet,csv}
steps:    peaks with intervals over repeats, tenants at the certified point, costs, savings
"""


rule tables:
    """The tables of the study; prices enter here."""
    input:
        records=files.raw(STUDY, CELLS, "record.json"),
        windows=files.raw(STUDY, CELLS, "windows.parquet"),
        ceilings=files.ceilings(STUDY),
        checks=files.all_checks(STUDY),
    output:
        expand(f"{RESULTS}/tables/{{table}}.parquet", table=TABLES),
        [
            report(f"{RESULTS}/tables/{name}.csv", category="Tables", labels={"table": name})
            for name in TABLES
        ],
    log:
        f"{LOGS}/tables.log",
    conda:
        "../envs/perseus.yaml"
    params:
        task=planning.tables_task(STUDY).plain(),
        code=provenance.tables_code(SOURCES),
    message:
        "Making the tables"
    script:
        "../scripts/tables.py"
