#!/bin/sh
# cancel.sh ID...: end jobs with their pods, without waiting for them.
exec kubectl delete job --ignore-not-found --wait=false "$@"
