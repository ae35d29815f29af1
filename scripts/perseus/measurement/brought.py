"""What a cell finds in the repository of its scenario."""

from __future__ import annotations

from pathlib import Path

from perseus.serving.failures import ServerError
from perseus.study.runtimes import RUNTIMES
from perseus.study.tasks.measure import MeasureTask
from perseus.study.triton_models import answers_file, files_of


def references_in(repository: Path, task: MeasureTask) -> dict[str, Path]:
    """The files of torch's answers, by tenant that is brought to the server.

    Raises ServerError where a file of such a tenant is missing: the workflow looks at the folder
    alone, and would not make it again.
    """
    loaded = RUNTIMES[task.server.runtime].model_file
    brought = [tenant for tenant in task.tenants if tenant.name in task.brought]
    files = [file for each in brought for file in files_of(each.name, each.preprocessing, loaded)]
    if missing := [file for file in files if not (repository / file).is_file()]:
        raise ServerError(
            f"{repository} has not {', '.join(missing)}: remove that folder, and the next run makes"
            " it anew, and measures all cells of that scenario."
        )
    return {each.name: repository / answers_file(each.name) for each in brought}
