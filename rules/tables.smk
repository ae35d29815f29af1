"""Make the tables of a study from all cells and prices.

inputs:   the raw results of all cells, the client ceilings, the exports of models in a catalogue
outputs:  results/<study>/tables/<table>.{parquet,csv}, checked.json
steps:    compute peaks with intervals over repeats, latencies at the certified rate, costs and
          savings; then check the conditions on each table and between tables
"""


rule tables:
    """Make the tables of the study, including costs."""
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
    """Check that all tables meet their conditions. If the check fails, Perseus writes no report."""
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
