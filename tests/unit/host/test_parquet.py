"""Tests of tables as CSV and Parquet files."""

import math

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from perseus.host import parquet
from perseus.host.parquet import FLAG, REAL, TEXT, WHOLE, column

SCHEMA = pa.schema(
    [
        column("reason", TEXT, "", "in words"),
        column("rate_rps", REAL, "requests/s", "a rate"),
        column("requests", WHOLE, "", "a count"),
        column("shared", FLAG, "", "or not"),
    ]
)
ROWS = [
    ("", 2 / 3, 10**9, True),
    ('it said "no", twice', 123456789.0, None, False),
    ("one line\nand another", 1e-7, 0, None),
    (None, math.nan, 1, None),
]


@pytest.fixture
def made():
    return parquet.table([dict(zip(SCHEMA.names, row, strict=True)) for row in ROWS], SCHEMA)


@pytest.fixture
def files(made, tmp_path):
    parquet.write(made, tmp_path / "rows.parquet", tmp_path / "rows.csv")
    return tmp_path


def test_parquet_has_every_digit_and_null_for_what_is_not_known(files):
    read = pq.read_table(files / "rows.parquet").to_pylist()
    assert read[0]["rate_rps"] == 2 / 3
    assert read[3] == {"reason": None, "rate_rps": None, "requests": 1, "shared": None}


def test_csv_is_for_people_six_digits_and_nothing_where_nothing_is_known(files):
    assert (files / "rows.csv").read_bytes().decode() == (
        "reason,rate_rps,requests,shared\n"
        ",0.666667,1000000000,True\n"
        '"it said ""no"", twice",1.23457e+08,,False\n'
        '"one line\nand another",1e-07,0,\n'
        ",,1,\n"
    )


def test_csv_reads_back_as_the_same_table_to_six_digits(files, made):
    read = pd.read_csv(files / "rows.csv", dtype={"requests": "Int64"}, keep_default_na=False,
                       na_values={"rate_rps": "", "requests": "", "shared": ""})  # fmt: skip
    assert read["rate_rps"].to_list()[:3] == pytest.approx([2 / 3, 123456789.0, 1e-7], rel=1e-5)
    assert read["requests"].to_list()[0] == 10**9
    assert read["reason"].to_list()[1:3] == made["reason"].to_pylist()[1:3]


def test_a_row_with_other_columns_is_refused():
    with pytest.raises(KeyError, match=r"unknown columns: \['rate_rps'\]"):
        parquet.table([{"reason": "", "requests": 1, "shared": True}], SCHEMA)
