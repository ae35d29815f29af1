#!/bin/sh
# status.sh ID: what has become of a job, as Snakemake wants to hear it, in one word.
conditions='{range .status.conditions[?(@.status=="True")]}{.type} {end}'
if ! seen=$(kubectl get job "$1" --output="jsonpath=$conditions" 2>&1); then
  case $seen in
    *NotFound*) echo failed ;;
    *) echo running ;; # the API does not answer: ask again later
  esac
  exit
fi
case $seen in
  *Failed*) echo failed ;;
  *Complete*) echo success ;;
  *) echo running ;;
esac
