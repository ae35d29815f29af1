"""To import it is to look for the plugins of Snakemake, among all packages that are installed."""

from snakemake.cli import get_argument_parser

get_argument_parser()
