#!/bin/sh
# cancel.sh ID...: end jobs and their pods, and do not wait until they have ended.
exec kubectl delete job --ignore-not-found --wait=false "$@"
