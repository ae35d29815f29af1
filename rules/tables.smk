"""Tables: all cells in four tables, with prices.

inputs:   the raw results of all cells, the client's ceilings
outputs:  results/<study>/tables/{peaks,tenants,costs,savings,ceilings}.{parquet,csv}
steps:    peaks with intervals over repeats, tenants at the certified point, costs, savings
"""


rule tables:
    """The tables of the study; prices enter here."""
    input:
        records=plan.records(STUDY, plan.cells(STUDY)),
        windows=[f"{RESULTS}/raw/{cell.id}/windows.parquet" for cell in plan.cells(STUDY)],
        ceilings=[f"{RESULTS}/ceilings/{name}.json" for name in plan.servers(STUDY)],
        code=code("tables"),
    output:
        TABLES,
    log:
        f"{LOGS}/tables.log",
    conda:
        "../envs/perseus.yaml"
    params:
        slice=plan.tables_slice(STUDY),
    message:
        "Making the tables"
    script:
        "../scripts/tables.py"
