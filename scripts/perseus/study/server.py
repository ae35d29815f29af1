"""Define a server of a study: hardware, launcher, runtime, and the cloud instance that sets its
price."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final, Literal

from pydantic import Field

from perseus.study.base import Different, Name, Part, Text, Whole
from perseus.study.launchers import LAUNCHERS
from perseus.study.price import PriceRow
from perseus.study.remote import Remote
from perseus.study.runtimes import RUNTIMES

if TYPE_CHECKING:
    LauncherName = str
    RuntimeName = str
else:
    LauncherName, RuntimeName = Literal[tuple(LAUNCHERS)], Literal[tuple(RUNTIMES)]

Device = Literal["cpu", "gpu"]
IMAGE: Final = r"^[A-Za-z0-9./_][A-Za-z0-9./_:@+-]{0,254}$"
Image = Annotated[Text, Field(pattern=IMAGE)]
Gpu = Annotated[Whole, Field(ge=0, le=1023)]
Cores = Annotated[Whole, Field(ge=1)]


class Server(Part):
    """Hardware, launcher and runtime of a server."""

    name: Name = Field(description="The name of the server in this study.", examples=["cpu1"])
    device: Device = Field(
        default="cpu", description="The hardware that executes the networks (docs/how-to/gpu.md)."
    )
    gpus: Annotated[tuple[Gpu, ...], Field(min_length=1), Different] | None = Field(
        default=None,
        description=(
            "The GPUs of a server with `device` gpu, such as [0, 1]: their numbers in nvidia-smi."
            " If CUDA_VISIBLE_DEVICES is set, the numbers count the GPUs in this variable."
        ),
        json_schema_extra={"uniqueItems": True},
    )
    launcher: LauncherName = Field(
        default="embedded",
        description=(
            "How Perseus starts the server. `embedded` starts the Triton of the"
            " nvidia-pytriton wheel. `remote` uses a server that already runs"
            " (docs/how-to/remote-servers.md). All other launchers start a container of NVIDIA"
            " (docs/how-to/containers.md)."
        ),
    )
    image: Image | None = Field(
        default=None,
        description=(
            "The image of the container, such as nvcr.io/nvidia/tritonserver:24.10-py3; for"
            " apptainer, the path of a .sif file or"
            " docker://nvcr.io/nvidia/tritonserver:24.10-py3."
        ),
    )
    runtime: RuntimeName = Field(
        default="onnxruntime",
        description="The backend that executes the networks inside Triton. `openvino` is for CPUs,"
        " `tensorrt` for GPUs in a container.",
    )
    cores: Cores = Field(
        description=(
            "Number of CPU cores to which the server is pinned. The client needs at least one more"
            " core. For a remote server: the number of cores of the server."
        ),
        examples=[1],
    )
    remote: Remote | None = Field(
        default=None,
        description="Address and protocol settings of a server with the launcher `remote`.",
    )
    price: PriceRow | None = Field(
        default=None,
        description=(
            "The row of the price list with the price of this server. Without a price, the server"
            " has no costs. `demand` and `grid` require a price."
        ),
        examples=[{"instance": "n1-standard-1", "region": "us-central1"}],
    )
    other_prices: Annotated[tuple[PriceRow, ...], Different] = Field(
        default=(),
        description=(
            "More rows of the price list for this server, such as rows of other regions or clouds."
            " The table `other_costs` has the costs at these prices; all other results use `price`."
        ),
    )

    @property
    def price_rows(self) -> tuple[PriceRow, ...]:
        """`price`, if the server has one, and `other_prices`."""
        return (*((self.price,) if self.price else ()), *self.other_prices)

    @property
    def image_file(self) -> str | None:
        """Path of the image, if the image is a file of this host."""
        may_be = LAUNCHERS[self.launcher].image_schemes and "://" not in (self.image or "")
        return self.image if may_be else None

    @property
    def gpus_here(self) -> tuple[int, ...]:
        """Numbers of the GPUs that this host must have."""
        return () if self.remote else self.gpus or ()

    @property
    def served_gpus(self) -> tuple[int, ...]:
        """Numbers of the GPUs as the server sees them. A server that runs on this host sees its
        GPUs as 0, 1, and so on."""
        gpus = self.gpus or ()
        return gpus if self.remote else tuple(range(len(gpus)))
