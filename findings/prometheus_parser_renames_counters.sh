#!/usr/bin/env bash
# The parser of prometheus-client 0.26.0 renames the counters of Triton.
#
# Expected: text_string_to_metric_families() returns the names that are in the text, for example nv_inference_count.
# Behaviour: The parser appends `_total` to the name of each counter that lacks this ending. A lookup of
#   nv_inference_count finds nothing, and a program that passes the samples on writes names that Triton and its
#   dashboards do not have. If the text has no line `# TYPE`, or if the type is gauge, the parser keeps the name. To
#   look up a counter of Triton, append `_total`, or compare the name of the family.
# Output, Debian 12, Python 3.11:
#   family nv_inference_count: samples nv_inference_count_total; without "# TYPE": nv_inference_count
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q prometheus-client==0.26.0
cd "$folder"
venv/bin/python - <<'EOS'
from prometheus_client.parser import text_string_to_metric_families

sample = 'nv_inference_count{model="resnet50",version="1"} 5\n'


def names(text):
    (family,) = text_string_to_metric_families(text)
    return family.name, ", ".join(sample.name for sample in family.samples)


family, typed = names("# TYPE nv_inference_count counter\n" + sample)
_, untyped = names(sample)
print(f'family {family}: samples {typed}; without "# TYPE": {untyped}')
assert (family, typed, untyped) == ("nv_inference_count", "nv_inference_count_total", "nv_inference_count")
EOS
