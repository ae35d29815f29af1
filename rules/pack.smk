"""Pack: all results of a study in one archive, for another machine to look at and to compare with.

inputs:   report, tables, figures, records, windows, ceilings, what was said of each exported model
outputs:  results/<study>.tar.gz
steps:    pack; requests, samples of the monitor and logs of servers stay here
"""


rule pack:
    """One archive, which is the same for the same results."""
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
