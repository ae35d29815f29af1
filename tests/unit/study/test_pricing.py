"""Tests of server prices from any cloud's catalogue or from configured rates.

Perseus reports wrong, missing and doubtful prices.
"""

from __future__ import annotations

import datetime
import re
import time

import pytest
from unit.study.test_read import BASE, ROOT, cells, merged

from perseus.study import planning
from perseus.study.machine_price import doubts_of
from perseus.study.price_list import read_price_list
from perseus.study.problems import ConfigError
from perseus.study.read import read_study

# The first line of each cloud's file in skypilot-catalog, and some of its rows.
AWS = """\
InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,GpuInfo,Price,SpotPrice,Region,\
AvailabilityZone,Arch
a1.medium,,,1.0,2.0,,0.0255,0.025500,us-east-1,use1-az2,arm64
a1.medium,,,1.0,2.0,,0.0255,0.025400,us-east-2,use2-az1,arm64
a1.large,,,2.0,4.0,,0.051,0.038500,us-east-2,use2-az1,arm64
a1.large,,,2.0,4.0,,0.051,0.019000,us-east-2,use2-az2,arm64
g4dn.xlarge,T4,1.0,4.0,16.0,"{'Gpus': [{'Name': 'T4', 'Count': 1}]}",0.526,0.2158,us-east-1,\
use1-az1,x86_64
g6f.large,L4,0.125,2.0,8.0,,0.2,0.1,us-east-1,use1-az1,x86_64
"""
GCP = """\
InstanceType,vCPUs,MemoryGiB,AcceleratorName,AcceleratorCount,GpuInfo,Region,AvailabilityZone,\
Price,SpotPrice
n1-standard-4,4.0,15.0,,,,us-central1,us-central1-a,0.19,0.05223
n1-standard-4,4.0,15.0,,,,us-central1,us-central1-b,0.19,0.05223
n1-standard-4,4.0,15.0,,,,asia-east1,asia-east1-a,0.22,0.03563
a2-highgpu-1g,12.0,85.0,,,,us-central1,us-central1-a,0.73948,0.36975
,,,T4,1,"{'Gpus': [{'MemoryInfo': {'SizeInMiB': 16384}}]}",us-central1,us-central1-b,0.35,0.175
,,,A100,1,,us-central1,us-central1-a,2.93391,1.4341
,,,P100,1,,us-central1,us-central1-c,1.46,0.7034
,,,P4,1,,us-central1,us-central1-a,0.6,0.2236
,,,H100,8,,us-central1,us-central1-a,33.60609,23.9408
,,,H100,8,,us-east4,us-east4-a,78.37241,17.8848
"""
AZURE = """\
InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,GpuInfo,Price,SpotPrice,Region,\
Generation
Standard_A1_v2,,,1.0,2,,0.043,0.00473,eastus,V1
Standard_B1ms,,,1.0,2,,0.0207,,eastus,"V1,V2"
"""
LAMBDA = """\
InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,Price,Region,GpuInfo,SpotPrice
cpu_4x_general,,,4.0,16.0,0.2,us-east-1,,
gpu_8x_v100,V100,8.0,92.0,448.0,6.32,us-east-1,"{'Gpus': [{'Name': 'V100', 'Count': 8.0}]}",
"""
DAY = "2026-09-01"
NO_DAY = "the day on which the price was valid is unknown (set `costs.priced_on`)"


@pytest.fixture
def study(tmp_path):
    """Return a function that reads a study whose only server has a price from this catalogue."""

    def read(catalogue, price, *, costs=None, **server):
        (tmp_path / "list.csv").write_text(catalogue)
        change = {
            "servers": [{**BASE["servers"][0], **server, "price": price}],
            "costs": {"prices": "list.csv"} | ({"priced_on": DAY} if costs is None else costs),
        }
        made = merged(BASE, change)
        return read_study(made, prices=ROOT / "config" / "prices.csv", folder=tmp_path)

    return read


@pytest.fixture
def price(study):
    return lambda *arguments, **more: study(*arguments, **more).prices["cpu1"]


@pytest.fixture
def refused(study):
    """Return a function that returns all problems of a study that Perseus refuses."""

    def problems(*arguments, **more):
        with pytest.raises(ConfigError) as caught:
            study(*arguments, **more)
        return list(caught.value.problems)

    return problems


def at(instance, region, **more):
    return {"instance": instance, "region": region, **more}


def own(**rates):
    """Return rates of a machine with one vCPU, in USD per hour."""
    each = {"on_demand": 0.1, **rates}
    return {"vcpus": 1, **{key: {"usd_per_vcpu_hour": usd} for key, usd in each.items()}}


# Catalogues in their original form


@pytest.mark.parametrize(
    ("catalogue", "row", "cores", "on_demand", "spot", "zone"),
    [
        (AWS, at("a1.medium", "us-east-2"), 1, 0.0255, 0.0254, "use2-az1"),
        (GCP, at("n1-standard-4", "asia-east1"), 4, 0.22, 0.03563, "asia-east1-a"),
        (AZURE, at("Standard_A1_v2", "eastus"), 1, 0.043, 0.00473, ""),
        (LAMBDA, at("cpu_4x_general", "us-east-1"), 4, 0.2, None, ""),
    ],
    ids=["aws", "gcp", "azure", "lambda"],
)
def test_the_catalogue_of_any_cloud_is_read_as_it_is(
    price, catalogue, row, cores, on_demand, spot, zone
):
    found = price(catalogue, row, cores=cores)
    assert (found.on_demand_usd_per_hour, found.spot_usd_per_hour) == (on_demand, spot)
    assert (found.zone, found.vcpus, found.share) == (zone, cores, 1)
    assert (found.currency, found.date, found.source) == ("USD", "2026-09-01", "list.csv")


def test_of_several_zones_the_cheapest_is_taken_unless_one_is_named(price):
    row = at("a1.large", "us-east-2")
    assert price(AWS, row, cores=2).spot_usd_per_hour == 0.019
    assert price(AWS, row, cores=2).zone == "use2-az2"
    named = price(AWS, {**row, "zone": "use2-az1"}, cores=2)
    assert (named.spot_usd_per_hour, named.zone) == (0.0385, "use2-az1")


GPU = {"device": "gpu", "gpus": [0], "runtime": "pytorch", "cores": 4}


def test_accelerators_that_are_priced_apart_are_added(price):
    row = at("n1-standard-4", "us-central1")
    one = price(GCP, {**row, "accelerator": "T4"}, **GPU)
    assert one.on_demand_usd_per_hour == pytest.approx(0.19 + 0.35)
    assert one.spot_usd_per_hour == pytest.approx(0.05223 + 0.175)
    # the zone with both machine and accelerator
    assert (one.zone, one.accelerator) == ("us-central1-b", "T4")
    two = price(GCP, {**row, "accelerator": "T4:2"}, **(GPU | {"gpus": [0, 1]}))
    assert two.on_demand_usd_per_hour == pytest.approx(0.19 + 2 * 0.35)
    assert two.source == "list.csv; 2 times the price of one accelerator in list.csv"
    whole = at("a2-highgpu-1g", "us-central1", accelerator="A100:1")
    assert price(GCP, whole, **(GPU | {"cores": 12})).on_demand_usd_per_hour == pytest.approx(
        0.73948 + 2.93391
    )


def test_the_zone_is_that_where_machine_and_accelerator_together_cost_least(price):
    catalogue = (
        "InstanceType,AcceleratorName,AcceleratorCount,Region,AvailabilityZone,vCPUs,MemoryGiB,"
        "Price,SpotPrice\n"
        "big,,,here,a,4,1,0.10,0.01\n"
        "big,,,here,b,4,1,0.11,0.05\n"
        ",T4,1,here,a,,,0.50,0.01\n"
        ",T4,1,here,b,,,0.35,0.05\n"
    )
    found = price(catalogue, at("big", "here", accelerator="T4"), **GPU)
    assert (found.zone, found.on_demand_usd_per_hour) == ("b", pytest.approx(0.46))


def test_accelerators_in_the_row_of_the_instance_are_in_its_price(price, refused):
    row = at("g4dn.xlarge", "us-east-1")
    assert price(AWS, row, **GPU).on_demand_usd_per_hour == 0.526
    part = price(AWS, at("g6f.large", "us-east-1"), **(GPU | {"cores": 2}))
    assert part.on_demand_usd_per_hour == 0.2  # a server sees an eighth of a GPU as one GPU
    catalogue = AWS + ",T4,1,,,,0.35,0.1,us-east-1,use1-az1,\n"
    assert refused(catalogue, {**row, "accelerator": "T4"}, **GPU) == [
        "servers[0].price.accelerator: the price of 'g4dn.xlarge' already includes"
        " accelerators (remove this key)"
    ]


def test_gpus_that_nobody_pays_for_are_refused(refused):
    (problem,) = refused(GCP, at("n1-standard-4", "us-central1"), **GPU)
    assert problem.startswith("servers[0].price.accelerator: is missing: the server uses GPUs")
    (problem,) = refused(GCP, at("n1-standard-4", "us-central1", accelerator="T4:1"),
                         **(GPU | {"gpus": [0, 1]}))  # fmt: skip
    assert "has 4 vCPUs and 1 accelerators, but the server has 4 cores and 2 GPUs" in problem


def test_own_rates_of_vcpus_and_memory(price):
    """The servers of the 2020 study: 6 vCPUs, 12 GB, one or two P4, in April 2019."""
    custom = {
        "vcpus": 6,
        "memory_gib": 12,
        "on_demand": {"usd_per_vcpu_hour": 0.033174, "usd_per_gib_hour": 0.004446},
        "source": "cloud.google.com, April 2019",
    }
    row = at("custom-6-12", "us-central1", custom=custom)
    cpu = price(GCP, row, cores=6)
    assert cpu.on_demand_usd_per_hour == pytest.approx(0.252396)
    assert cpu.source == "configured rates for 6 vCPUs and 12 GiB (cloud.google.com, April 2019)"
    assert cpu.doubts == ("no spot price is known",)
    gpu = price(GCP, {**row, "accelerator": "P4:2"}, **(GPU | {"gpus": [0, 1], "cores": 6}))
    assert gpu.on_demand_usd_per_hour == pytest.approx(0.252396 + 2 * 0.6)
    custom["spot"] = {"usd_per_vcpu_hour": 0.007}
    spot = price(GCP, {**row, "accelerator": "P4"}, **(GPU | {"cores": 6})).spot_usd_per_hour
    assert spot == pytest.approx(6 * 0.007 + 0.2236)


def test_what_one_of_two_parts_does_not_say_nobody_knows(price):
    """If only one part has a spot price or a date, the total has none."""
    listed = (
        "InstanceType,AcceleratorName,AcceleratorCount,Region,vCPUs,Price,SpotPrice,Date\n"
        "big,,,here,4,1,0.4,{machine}\n,T4,1,here,,2,{spot},{accelerator}\n"
    )
    row = at("big", "here", accelerator="T4")

    def found(spot, machine, accelerator):
        text = listed.format(spot=spot, machine=machine, accelerator=accelerator)
        made = price(text, row, **GPU, costs={})
        assert made.on_demand_usd_per_hour == 3
        return made.spot_usd_per_hour, made.date

    assert found("", "2026-01-01", "") == (None, None)
    assert found(0.5, "", "2026-01-01") == (pytest.approx(0.9), None)
    assert found(0.5, "2026-02-01", "2026-01-01") == (pytest.approx(0.9), "2026-01-01")


# Tests of the share of a cloud instance that a server uses


def test_the_share_of_an_instance_is_stated(price, refused):
    row = at("n1-standard-4", "us-central1")
    (problem,) = refused(GCP, row)
    assert problem == (
        "servers[0].price.share: is missing: 'n1-standard-4' has 4 vCPUs, but the server has"
        " 1 cores (write `share: 0.25` if other servers use the rest, or `share: 1` if no other"
        " server uses the rest of the instance)"
    )
    quarter = price(GCP, {**row, "share": 0.25})
    assert quarter.on_demand_usd_per_hour == pytest.approx(0.19 / 4)
    assert quarter.spot_usd_per_hour == pytest.approx(0.05223 / 4)
    assert (quarter.share, quarter.vcpus) == (0.25, 4)
    assert price(GCP, {**row, "share": 1}).on_demand_usd_per_hour == 0.19
    third = {**row, "share": 0.333}  # a rounded third, as people write it
    text = "share: is smaller than the part that the server uses: 'n1-standard-4' has 4"
    assert text in refused(GCP, third, cores=2)[0]


def test_more_cores_than_an_instance_has_are_refused(refused):
    (problem,) = refused(GCP, at("n1-standard-4", "us-central1", share=1), cores=8)
    assert problem == (
        "servers[0].price.instance: 'n1-standard-4' has 4 vCPUs, but the server has 8 cores"
        " (use a larger instance)"
    )


def test_the_share_of_its_accelerators_is_stated_too(price, refused):
    row, used = at("gpu_8x_v100", "us-east-1"), GPU | {"cores": 10}
    (problem,) = refused(LAMBDA, row, **used)
    assert "has 92 vCPUs and 8 accelerators" in problem and "share: 0.125" in problem
    eighth = price(LAMBDA, {**row, "share": 0.125}, **used)
    assert eighth.on_demand_usd_per_hour == pytest.approx(6.32 / 8)
    assert refused(LAMBDA, {**row, "share": 0.11}, **used)


def test_a_list_without_vcpus_says_nothing_of_the_share(price, refused):
    catalogue = "InstanceType,Region,Price\nbig,here,2\n"
    assert refused(catalogue, at("big", "here")) == [
        "servers[0].price.share: is missing: the price list does not state the number"
        " of vCPUs of 'big' (write the share that the server uses, such as `share: 1`)"
    ]
    assert price(catalogue, at("big", "here", share=0.5)).on_demand_usd_per_hour == 1


# Tests of committed prices, currencies and dates of prices


def test_a_commitment_costs_what_is_listed_or_less_by_the_stated_discount(price):
    row = at("cpu_4x_general", "us-east-1")
    committed = {"pricing": ["committed"], "priced_on": DAY}
    nothing = price(LAMBDA, row, cores=4, costs=committed)
    assert nothing.usd_per_hour("committed") is None
    assert nothing.doubts == ("no committed price is known",)
    stated = price(LAMBDA, row, cores=4, costs={**committed, "committed_discount": 0.37})
    assert stated.usd_per_hour("committed") == pytest.approx(0.2 * 0.63)
    listed = "InstanceType,Region,vCPUs,Price,CommittedPrice\nbig,here,4,2,1.5\n"
    known = price(listed, at("big", "here"), cores=4, costs={"committed_discount": 0.37})
    assert known.usd_per_hour("committed") == 1.5


def test_another_currency_is_converted_at_the_stated_rate(price):
    costs = {"currency": "EUR", "usd_per_currency_unit": 1.1}
    found = price(LAMBDA, at("cpu_4x_general", "us-east-1"), cores=4, costs=costs)
    assert found.on_demand_usd_per_hour == pytest.approx(0.22)
    assert (found.currency, found.source) == ("EUR", "list.csv, in EUR at 1.1 USD")


def test_own_rates_are_in_usd_whatever_the_list_is_in(price):
    costs = {"currency": "EUR", "usd_per_currency_unit": 1.1}
    row = at("mine", "us-central1", custom=own())
    found = price(GCP, row, costs=costs)
    assert (found.on_demand_usd_per_hour, found.currency) == (0.1, "USD")
    with_gpu = price(GCP, {**row, "accelerator": "P4"}, costs=costs, **GPU | {"cores": 1})
    assert with_gpu.on_demand_usd_per_hour == pytest.approx(0.1 + 1.1 * 0.6)
    assert with_gpu.currency == "USD; EUR"


def test_the_day_is_that_of_the_row_or_of_the_list(price, study):
    listed = "InstanceType,Region,vCPUs,Price,SpotPrice,Date\nbig,here,1,2,1,2025-12-31\n"
    assert price(listed, at("big", "here")).date == "2025-12-31"
    without = listed.replace("2025-12-31", "")
    assert price(without, at("big", "here")).date == DAY
    found = study(without, at("big", "here"), costs={})
    assert (found.prices["cpu1"].date, found.prices["cpu1"].doubts) == (None, (NO_DAY,))
    assert list(found.price_messages()) == [f"Price of 'cpu1' (big in here): {NO_DAY}"]


def test_a_day_without_quotes_is_a_day(price):
    """YAML reads such a value as a date."""
    costs = {"priced_on": datetime.date(2026, 9, 1)}
    assert price(LAMBDA, at("cpu_4x_general", "us-east-1"), cores=4, costs=costs).date == DAY


# Missing, duplicate and doubtful rows


WRONG = (
    "InstanceType,Region,vCPUs,Price,SpotPrice,Date\n"
    "a,here,1,-1,,\n"
    "b,here,1,cheap,,\n"
    "c,here,1,1,inf,\n"
    "d,here,many,1,,\n"
    "f,here,1,1,,2026-13-01\n"
    "g,here,1,1,0.5,\n"
)


def test_all_rows_that_servers_name_and_that_are_wrong_are_named_at_once(refused):
    named = [at(instance, "here") for instance in "bcdf"]
    assert refused(WRONG, at("a", "here"), other_prices=named) == [
        "servers[0].price.instance: list.csv line 2: Price must not be -1 (correct or delete the"
        " line)",
        "servers[0].other_prices[0].instance: list.csv line 3: Price 'cheap' is not a number"
        " (correct or delete the line)",
        "servers[0].other_prices[1].instance: list.csv line 4: SpotPrice must not be inf"
        " (correct or delete the line)",
        "servers[0].other_prices[2].instance: list.csv line 5: vCPUs 'many' is not a number"
        " (correct or delete the line)",
        "servers[0].other_prices[3].instance: list.csv line 6: Date '2026-13-01' is not a date"
        " such as 2026-09-01 (correct or delete the line)",
    ]


def test_wrong_rows_that_no_server_names_do_not_refuse_the_list(price):
    assert price(WRONG, at("g", "here"), costs={}).on_demand_usd_per_hour == 1


@pytest.mark.parametrize("word", ["NA", "nan", "N/A", "null", "None", "-"])
def test_words_for_a_missing_number_are_no_number(price, refused, word):
    listed = "InstanceType,Region,vCPUs,Price,SpotPrice,Date\na,here,1,2,{0},{0}\nb,here,1,{0},1,\n"
    found = price(listed.format(word), at("a", "here"))
    assert (found.on_demand_usd_per_hour, found.spot_usd_per_hour) == (2, None)
    assert refused(listed.format(word), at("b", "here")) == [
        "servers[0].price.instance: 'b' has no Price in list.csv line 3 (add a price)"
    ]


def test_a_row_with_a_spot_price_only_prices_spot_servers(price, refused):
    listed = (
        "InstanceType,AcceleratorName,AcceleratorCount,Region,AvailabilityZone,vCPUs,Price,"
        "SpotPrice\n"
        "big,,,here,1,4,,0.3\nbig,,,here,2,4,1,0.4\n,T4,1,here,1,,2,0.2\n,T4,1,here,2,,2,0.2\n"
    )
    spot = {"pricing": ["spot"], "priced_on": DAY}
    found = price(listed, at("big", "here"), cores=4, costs=spot)
    assert (found.on_demand_usd_per_hour, found.spot_usd_per_hour) == (None, 0.3)
    assert (found.zone, found.doubts) == ("1", ())
    with_gpu = price(listed, at("big", "here", accelerator="T4"), costs=spot, **GPU)
    assert with_gpu.on_demand_usd_per_hour is None
    assert with_gpu.spot_usd_per_hour == pytest.approx(0.5)
    assert price(listed, at("big", "here"), cores=4).zone == "2"
    none = "InstanceType,Region,vCPUs,Price,SpotPrice\na,here,1,,\n"
    assert refused(none, at("a", "here"), costs=spot) == [
        "servers[0].price.instance: 'a' has no Price or SpotPrice in list.csv line 2 (add a price)"
    ]


def test_spaces_around_commas_mean_nothing(price):
    listed = "InstanceType, Region, vCPUs, Price, Date\n  \n# note\nbig , here , 4, 2, 2026-09-01\n"
    found = price(listed, at("big", "here"), cores=4)
    assert (found.on_demand_usd_per_hour, found.date) == (2, "2026-09-01")


def test_rows_of_another_length_refuse_the_list_and_are_cut_short(refused):
    catalogue = "InstanceType,Region,vCPUs,Price\n" + "a,here,1\n" * 50
    found = refused(catalogue, at("a", "here"))
    assert len(found) == 21 and found[-1] == "list.csv: 30 more lines with this problem"
    assert found[0] == (
        "list.csv line 2: has 3 fields, but the header has 4 (correct or delete the line)"
    )


@pytest.mark.parametrize(
    ("catalogue", "message"),
    [
        ("", "list.csv: has no column InstanceType, Region, Price (it needs"),
        ("InstanceType,vCPUs\na,1\n", "list.csv: has no column Region, Price (it needs"),
        ("\0", "list.csv: "),
    ],
)
def test_a_file_that_is_no_price_list_is_refused(refused, catalogue, message):
    (problem,) = refused(catalogue, at("a", "here"))
    assert problem.startswith(message)


def test_a_file_that_is_not_there_is_named(refused):
    (problem,) = refused("", at("a", "here"), costs={"prices": "none.csv"})
    assert problem.startswith("none.csv: No such file or directory (`costs.prices` must be")


def test_a_price_that_is_missing_is_said(refused, price):
    catalogue = "InstanceType,Region,AvailabilityZone,vCPUs,Price,SpotPrice\n"
    catalogue += "a,here,1,1,,0.2\na,here,2,1,0,\na,there,1,1,0.5,\n"
    assert refused(catalogue, at("a", "here")) == [
        "servers[0].price.instance: 'a' has no Price in list.csv lines 2 and 3 (add a price)"
    ]
    assert price(catalogue, at("a", "there")).doubts == ("no spot price is known",)
    cheapest = price(catalogue + "a,here,3,1,0.9,0.5\n", at("a", "here"))
    assert cheapest.on_demand_usd_per_hour == 0.9
    assert cheapest.doubts == (
        "list.csv lines 2 and 3: no Price is listed for 1 and 2 (the price there may be lower)",
    )
    of_zone = price(catalogue + "a,here,3,1,0.9,0.5\n", {**at("a", "here"), "zone": "3"})
    assert of_zone.doubts == ()


def test_rows_that_contradict_each_other_are_refused_and_the_same_twice_is_said(refused, price):
    catalogue = "InstanceType,Region,vCPUs,Price,SpotPrice\na,here,1,1,0.5\n"
    assert refused(catalogue + "b,here,1,1,1\na,here,1,2,0.5\n", at("a", "here")) == [
        "servers[0].price.instance: 'a' has different prices or vCPUs in list.csv lines 2 and 4"
        " (keep one line)"
    ]
    found = price(catalogue + "a,here,1,1,0.5\n", at("a", "here"))
    assert found.doubts == (
        "list.csv lines 2 and 3 are for the same zone (keep only the line with the right prices)",
    )
    assert found.on_demand_usd_per_hour == 1


@pytest.mark.parametrize(
    ("catalogue", "row", "more", "doubt"),
    [
        (AWS, at("a1.medium", "us-east-1"), {},
         "list.csv line 2: the spot price is not below the on-demand price"),
        (AZURE, at("Standard_A1_v2", "eastus"), {},
         "list.csv line 2: the spot price is only 11% of the on-demand price"),
        (GCP, at("n1-standard-4", "us-central1", accelerator="H100:8", share=1), GPU,
         "list.csv line 10: the on-demand price is 33.6061 per hour, but the median"
         " price in other regions is 78.3724"),
        (GCP, at("mine", "here", custom=own(spot=0.2)), {},
         "configured rates: the spot price is not below the on-demand price"),
        (GCP, at("mine", "here", custom=own(spot=0.01)), {},
         "configured rates: the spot price is only 10% of the on-demand price"),
        (GCP, at("mine", "here", custom=own(committed=0.1)), {},
         "configured rates: the committed price is not below the on-demand price"),
        (GCP, at("n1-standard-4", "us-central1", accelerator="P100"), GPU,
         "list.csv lists P100 only in zones without n1-standard-4, so Perseus adds the prices of"
         " two zones"),
    ],
    ids=["spot above", "spot at a ninth", "cheap region", "own spot above", "own spot at a tenth",
         "own commitment", "other zone"],
)  # fmt: skip
def test_what_is_doubtful_is_said_and_kept(study, catalogue, row, more, doubt):
    found = study(catalogue, row, **more)
    assert doubt in found.prices["cpu1"].doubts
    assert any(line.endswith(doubt) for line in found.price_messages())
    assert planning.tables_task(found).prices["cpu1"].doubts == found.prices["cpu1"].doubts


def test_nothing_in_our_own_list_is_doubtful():
    ours = read_price_list(ROOT / "config" / "prices.csv", "prices.csv")
    groups = [*ours.machines.values(), *ours.accelerators.values()]
    assert [text for rows in groups for row in rows for text in doubts_of(row, rows)] == []


def test_our_own_list_says_of_which_catalogue_it_is():
    """Each row has the version and the commit of its catalogue. No row has a date."""
    ours = read_price_list(ROOT / "config" / "prices.csv", "prices.csv")
    version = re.compile(r"skypilot-catalog catalogs/v\d+/[a-z]+/vms\.csv @ [0-9a-f]{40}")
    assert all(version.fullmatch(row.source) for row in ours.rows)
    assert {row.date for row in ours.rows} == {None}


def test_notes_and_empty_lines_of_a_list_are_left_out(price):
    catalogue = LAMBDA.replace("\n", "\n\n# ours\n")
    assert price(catalogue, at("cpu_4x_general", "us-east-1"), cores=4).vcpus == 4


def test_so_are_those_before_the_columns(price, refused):
    catalogue = "# ours, of today\n\n" + LAMBDA
    assert price(catalogue, at("cpu_4x_general", "us-east-1"), cores=4).vcpus == 4
    (message,) = refused(catalogue + "a\n", at("cpu_4x_general", "us-east-1"), cores=4)
    assert message.startswith("list.csv line 6: has 1 fields, but the header has 9")


def test_the_usual_prices_of_clouds_are_not_doubted(price):
    assert price(GCP, at("n1-standard-4", "us-central1"), cores=4).doubts == ()
    assert price(AWS, at("a1.large", "us-east-2"), cores=2).doubts == ()


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (at("n1-standart-4", "us-central1"),
         "instance: 'n1-standart-4' is not in list.csv (did you mean 'n1-standard-4'?)"),
        (at("m5.large", "us-central1"), "instance: 'm5.large' is not in list.csv (add a row"),
        (at("n1-standard-4", "mars"),
         "region: 'n1-standard-4' has no price in 'mars' (known regions: us-central1, asia-east1)"),
        (at("n1-standard-4", "us-central1", zone="z"),
         "zone: 'n1-standard-4' has no price in 'z' (known zones: us-central1-a,"
         " us-central1-b)"),
        (at("n1-standard-4", "us-central1", accelerator="T40"),
         "accelerator: 'T40' has no row with a separate price in list.csv (did you mean 'T4'?)"),
        (at("n1-standard-4", "us-central1", accelerator="H100:4"),
         "accelerator: list.csv has no 'H100:4' (known: H100:8)"),
        (at("n1-standard-4", "asia-east1", accelerator="T4"),
         "region: 'T4:1' has no price in 'asia-east1' (known regions: us-central1)"),
        (at("n1-standard-4", "us-central1", accelerator="T4:0"), "accelerator: 'T4:0' is not"),
        (at("n1-standard-4", "us-central1", share=0), "share: must be > 0, not 0"),
        (at("n1-standard-4", "us-central1", share=2), "share: must be <= 1, not 2"),
        (at("n1-standard-4", "us-central1", custom={"vcpus": 0}),
         "custom.vcpus: must be >= 1, not 0"),
        (at("n1-standard-4", "us-central1", custom={"vcpus": 4, "on_demand": {}}),
         "custom.on_demand.usd_per_vcpu_hour: is missing (Price of one vCPU, in USD per hour.)"),
        (at("own", "here", custom={"vcpus": 4, "on_demand": {"usd_per_vcpu_hour": 0}}),
         "custom.on_demand.usd_per_vcpu_hour: must be > 0, not 0"),
    ],
)  # fmt: skip
def test_what_is_not_in_the_list_or_cannot_be_is_refused_with_what_can(refused, row, message):
    found = refused(GCP, row, cores=4)
    assert any(line.startswith(f"servers[0].price.{message}") for line in found), found


@pytest.mark.parametrize(
    ("costs", "message"),
    [
        ({"currency": "EUR"}, "usd_per_currency_unit: is missing: `currency` is EUR"),
        ({"currency": "Euro"}, "currency: 'Euro' is not"),
        ({"usd_per_currency_unit": 1.1}, "usd_per_currency_unit: must be 1 or left out, since"),
        ({"currency": "EUR", "usd_per_currency_unit": 0}, "usd_per_currency_unit: must be > 0"),
        ({"priced_on": "yesterday"}, "priced_on: 'yesterday' is not"),
        ({"priced_on": "2026-02-30"}, "priced_on: there is no day 2026-02-30"),
        ({"committed_discount": 1}, "committed_discount: must be < 1, not 1"),
        ({"committed_discount": "37%"}, "committed_discount: must be a number"),
        ({"usd_per_kwh": "dear"}, "usd_per_kwh: must be a number"),
        ({"pricing": ["reserved"]}, "pricing[0]: 'reserved' is not known"),
        ({"prices": 3}, "prices: must be a string"),
    ],
)
def test_what_cannot_be_of_costs_is_refused(refused, costs, message):
    found = refused(LAMBDA, at("cpu_4x_general", "us-east-1"), cores=4, costs=costs)
    assert any(line.startswith(f"costs.{message}") for line in found), found


# Other prices and their effect


def test_other_prices_of_a_server_are_checked_and_reach_the_tables_only(study, refused):
    row, elsewhere = at("n1-standard-4", "us-central1"), at("n1-standard-4", "asia-east1")
    one = study(GCP, row, cores=4)
    both = study(GCP, row, cores=4, other_prices=[elsewhere])
    (other,) = planning.tables_task(both).other_prices["cpu1"]
    assert (other.region, other.on_demand_usd_per_hour) == ("asia-east1", 0.22)
    assert planning.tables_task(both).prices == planning.tables_task(one).prices
    for a, b in zip(cells(one), cells(both), strict=True):
        assert planning.measure_task(one, a) == planning.measure_task(both, b)
    (problem,) = refused(GCP, row, cores=4, other_prices=[{**elsewhere, "region": "mars"}])
    assert problem.startswith("servers[0].other_prices[0].region: ")
    assert "servers[0].other_prices: has" in refused(GCP, row, other_prices=[row, row])[0]


def test_every_price_of_a_large_catalogue_is_read_in_a_second(price):
    rows = "".join(
        f"m{i}.large,2.0,8.0,,,,region-{i % 30},zone,0.{i + 10},0.01\n" for i in range(40_000)
    )
    catalogue = GCP + rows
    began_s = time.process_time()
    assert price(catalogue, at("m7.large", "region-7"), cores=2).on_demand_usd_per_hour == 0.17
    assert time.process_time() - began_s < 2
