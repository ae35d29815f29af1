#!/bin/sh
# cancel.sh ID...: delete jobs and their pods, without waiting until the pods have ended.
exec kubectl delete job --ignore-not-found --wait=false "$@"
