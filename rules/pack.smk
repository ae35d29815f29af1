"""Pack the results of a study into one archive, for a comparison on another machine.

inputs:   report, tables, figures, records, windows, ceilings, records of exports
outputs:  results/<study>.tar.gz
steps:    pack all inputs, without requests, samples of the monitor and logs of servers
"""


rule pack:
    """Pack the results into one archive. Archives of equal results have equal bytes."""
    input:
        f"{RESULTS}/report.html",
        TABLE_FILES,
        FIGURE_FILES,
        files.ceilings(STUDY),
        files.all_checks(STUDY),
        measured=files.measured(STUDY),
    output:
        f"{RESULTS}.tar.gz",
    log:
        f"{LOGS}/pack.log",
    conda:
        "../envs/perseus.yaml"
    params:
        code=SOURCES.fingerprint(["pack_results.py"]),
    message:
        "Packing the results"
    script:
        "../scripts/pack_results.py"
