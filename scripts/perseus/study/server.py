"""Define the section `servers` of a configuration: hardware, launcher, runtime and price of each
server."""

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
    """A server: its hardware, launcher, runtime and price."""

    name: Name = Field(description="The name of the server in this study.", examples=["cpu1"])
    device: Device = Field(
        default="cpu", description="The device that executes the networks (docs/how-to/gpu.md)."
    )
    gpus: Annotated[tuple[Gpu, ...], Field(min_length=1), Different] | None = Field(
        default=None,
        description=(
            "The GPUs that the server uses; only for `device: gpu`. Write the numbers that"
            " nvidia-smi shows, such as [0, 1]. If the environment variable CUDA_VISIBLE_DEVICES is"
            " set, write positions in its list: 0 means the first GPU in the list."
        ),
        json_schema_extra={"uniqueItems": True},
    )
    launcher: LauncherName = Field(
        default="embedded",
        description=(
            "How Perseus starts the server. `embedded` starts the Triton of the nvidia-pytriton"
            " wheel. `remote` uses a server that already runs (docs/how-to/remote-servers.md). All"
            " other launchers start Triton in a container (docs/how-to/containers.md)."
        ),
    )
    image: Image | None = Field(
        default=None,
        description=(
            "The container image, for the launchers that start a container. For docker and podman,"
            " write a name such as nvcr.io/nvidia/tritonserver:24.10-py3. For apptainer, write the"
            " path of a .sif file, or a URI such as docker://nvcr.io/nvidia/tritonserver:24.10-py3."
        ),
    )
    runtime: RuntimeName = Field(
        default="onnxruntime",
        description="The backend that executes the networks inside Triton. `openvino` needs a CPU"
        " server. `tensorrt` needs a GPU server in a container.",
    )
    cores: Cores = Field(
        description=(
            "Number of CPU cores to which Perseus pins the server. For a remote server, write the"
            " number of cores that it has. If the server runs on this machine, the machine needs at"
            " least one more core for the client."
        ),
        examples=[1],
    )
    remote: Remote | None = Field(
        default=None,
        description=(
            "Addresses, encryption and headers of a server that already runs; required for"
            " `launcher: remote`."
        ),
    )
    price: PriceRow | None = Field(
        default=None,
        description=(
            "The row of the price list (`costs.prices`) with the price of this server. Perseus"
            " computes no costs for a server without this key. Servers that a fleet (`demand`) or a"
            " `grid` uses must have a price."
        ),
        examples=[{"instance": "n1-standard-1", "region": "us-central1"}],
    )
    other_prices: Annotated[tuple[PriceRow, ...], Different] = Field(
        default=(),
        description=(
            "More rows of the price list for the same server, such as its prices in other regions"
            " or clouds. Perseus uses these prices only in the table `other_costs`. All other"
            " results use `price`."
        ),
    )

    @property
    def price_rows(self) -> tuple[PriceRow, ...]:
        """The configured rows of the price list: first `price`, then `other_prices`. A server may
        have no `price`."""
        return (*((self.price,) if self.price else ()), *self.other_prices)

    @property
    def image_file(self) -> str | None:
        """Path of the container image; None if the image is not a file on this host."""
        may_be = LAUNCHERS[self.launcher].image_schemes and "://" not in (self.image or "")
        return self.image if may_be else None

    @property
    def gpus_here(self) -> tuple[int, ...]:
        """Numbers of this host's GPUs that the server uses; empty for a CPU server or a remote
        server."""
        return () if self.remote else self.gpus or ()

    @property
    def served_gpus(self) -> tuple[int, ...]:
        """The numbers that the server itself gives to its GPUs. A server on this host sees only its
        own GPUs and numbers them from 0. A remote server uses the configured numbers."""
        gpus = self.gpus or ()
        return gpus if self.remote else tuple(range(len(gpus)))
