"""Perseus: find the servers that serve CNNs within their SLAs, dedicated or shared, and their cost.

config -> export -> repository -> measure -> tables -> figures -> report

A study is one configuration file. Its results are in results/<study>/.
"""

from snakemake.utils import min_version

min_version("9.27")


include: "rules/common.smk"
include: "rules/before.smk"
include: "rules/after.smk"


# The first rule is the default target, except in a workflow that uses this workflow as a module.
rule all:
    """Measure the study, and make its report with all tables and figures."""
    input:
        f"{RESULTS}/report.html",
        TABLE_FILES,
        FIGURE_FILES,
        TRACKED,
    message:
        f"Study {STUDY.name} is complete"


include: "rules/export.smk"
include: "rules/tensorrt.smk"
include: "rules/repository.smk"
include: "rules/measure.smk"
include: "rules/ceiling.smk"
include: "rules/predictions.smk"
include: "rules/tables.smk"
include: "rules/figures.smk"
include: "rules/report.smk"
include: "rules/track.smk"
include: "rules/pack.smk"
include: "rules/compare.smk"


rule plan:
    """Plan the fleet, the cheapest servers that carry the demand of the study: make the tables and
    the figure of the fleet."""
    input:
        lambda w: plan_files(),
    message:
        "The plan of the fleet is complete"


rule measurements:
    """Measure all cells, without making tables or figures."""
    input:
        lambda w: files.raw(STUDY, CELLS),


require_cacheable(workflow.workflow_settings.cache or ())


onstart:
    if workflow.local_exec:  # on a cluster, each job checks its own machine
        require_machine(workflow.dag.needrun_jobs())
        # With a limit on jobs per second, Snakemake 9.27.1 plans every second, once for each job
        # that has finished. After a hundred jobs, the planning uses half a core of the measured
        # server.
        workflow.scheduler.job_rate_limiter = None
    require_own_files(workflow.dag.needrun_jobs())
    require_figures(workflow.dag.needrun_jobs())
    require_track(workflow.dag.needrun_jobs())
    # On a cluster, jobs of a killed run may still measure, and need their progress files.
    if IS_ALONE and IS_ON_THIS_MACHINE:
        from perseus.measurement.progress.file import delete_progress_files

        delete_progress_files(Path(LOGS).parent)
    # Delete the error messages of earlier runs, since `onerror` prints all messages that it finds.
    for path in errors_of_jobs():
        path.unlink(missing_ok=True)
    if is_of_study():
        for grid in STUDY.grids[:MAX_GRIDS_LISTED]:
            print("\n".join(grid.messages()))
        if len(STUDY.grids) > MAX_GRIDS_LISTED:
            print(
                f"Only {MAX_GRIDS_LISTED} of the study's {len(STUDY.grids)} grids are listed."
            )
        for line in (*STUDY.price_messages(), *STUDY.trace_messages(Path.cwd())):
            print(line)
        print_cells_to_measure(workflow.dag.needrun_jobs())


onsuccess:
    from perseus.report import terminal

    atexit.unregister(disk_space.report_if_full)
    if COMPARED:
        print(f"\nThe comparison: {COMPARED.out}/comparison.html")
        print(f"The summary for a pull request: {COMPARED.out}/summary.md")
    if is_of_study():
        made = rules_of_run()
        if {"predictions", "tables"} <= made:
            print("", *terminal.lines(Path(RESULTS, "tables"), sys.stdout.encoding), sep="\n")
        print("")
        if "report" in made:
            print(f"The report of study {STUDY.name!r}: {RESULTS}/report.html")
        if "figure" in made:
            print(f"Figures: {RESULTS}/figures/")
        if "tables" in made:
            print(f"Tables: {RESULTS}/tables/")
        print_failed_cells()


onerror:
    again = "Run the same command again: Perseus keeps all finished measurements."
    if INTERRUPTION.happened:
        print(f"Interrupted. {again}", file=sys.stderr)
        return
    for path in errors_of_jobs():
        print(path.read_text(encoding="utf-8"), file=sys.stderr)
    print(f"A job failed; its log is under {' or '.join(logs_of_run())}/.", file=sys.stderr)
    if is_of_study():
        print(again, file=sys.stderr)
