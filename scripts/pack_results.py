"""Pack the results of a study into one archive."""

from pathlib import Path

from perseus.host.job import job
from perseus.results import archive
from perseus.results.measured import folders
from perseus.study.raw_files import RECORD

with job(snakemake.log[0]) as say:
    path = Path(snakemake.output[0])
    folder = path.with_name(path.name.removesuffix(".tar.gz"))
    measured = folders(snakemake.input.measured)
    raw = [cell / name for cell in measured for name in (RECORD, "windows.parquet")]
    files = [*map(Path, snakemake.input), *raw]
    archive.write(path, folder.name, {file.relative_to(folder).as_posix(): file for file in files})
    say(f"{path}: {path.stat().st_size / 2**20:.1f} MiB, {len(files)} files")
