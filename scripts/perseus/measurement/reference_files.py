"""Find the files with the reference responses in the model repository of a cell."""

from __future__ import annotations

from pathlib import Path

from perseus.serving.failures import ServerError
from perseus.study.runtimes import RUNTIMES
from perseus.study.tasks.measure import MeasureTask
from perseus.study.triton_models import answers_file, files_of


def reference_files(repository: Path, task: MeasureTask) -> dict[str, Path]:
    """Return the file with the reference responses of each tenant whose model the study deploys.

    Raises ServerError if a file of the model repository is missing. The workflow does not create a
    missing file again, because the workflow checks only whether the model repository exists.
    """
    loaded = RUNTIMES[task.server.runtime].model_file
    deployed = [tenant for tenant in task.tenants if tenant.name in task.deployed]
    files = [file for each in deployed for file in files_of(each.name, each.preprocessing, loaded)]
    if missing := [file for file in files if not (repository / file).is_file()]:
        raise ServerError(
            f"the model repository {repository} lacks {', '.join(missing)}. Remove the whole"
            " folder of this repository, and run Perseus again. The next run makes the repository"
            " again, and measures all cells again that use this repository."
        )
    return {each.name: repository / answers_file(each.name) for each in deployed}
