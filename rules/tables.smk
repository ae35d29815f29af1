"""Tables: all cells, with prices.

inputs:   the raw results of all cells, the client's ceilings, of surveyed models what the export found
outputs:  results/<study>/tables/<table>.{parquet,csv}, checked.json
steps:    peaks with intervals over repeats, tenants at the certified point, costs, savings;
          then check what must hold of each table and between them
"""


rule tables:
    """The tables of the study, with prices."""
    input:
        measured=files.measured(STUDY),
        ceilings=files.ceilings(STUDY),
        exports=files.surveyed_checks(STUDY),
    output:
        expand(f"{RESULTS}/tables/{{table}}.parquet", table=TABLES_OF_RESULTS),
        [
            report(f"{RESULTS}/tables/{name}.csv", category="Tables", labels={"table": name})
            for name in TABLES_OF_RESULTS
        ],
    log:
        f"{LOGS}/tables.log",
    conda:
        "../envs/perseus.yaml"
    params:
        task=planning.tables_task(STUDY).plain(),
        code=provenance.tables_code(SOURCES, "tables.py", TABLES_OF_RESULTS),
    message:
        "Making the tables"
    script:
        "../scripts/tables.py"


rule check_tables:
    """The check of the tables against their rules, which the report requires."""
    input:
        TABLE_FILES,
    output:
        files.checked_tables(STUDY),
    log:
        f"{LOGS}/check_tables.log",
    conda:
        "../envs/perseus.yaml"
    params:
        task=planning.check_task(STUDY).plain(),
        code=provenance.check_code(SOURCES),
    message:
        "Checking the tables"
    script:
        "../scripts/check_tables.py"
