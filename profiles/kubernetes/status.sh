#!/bin/sh
# status.sh ID: print the state of a job in one word, as Snakemake expects.
conditions='{range .status.conditions[?(@.status=="True")]}{.type} {end}'
if ! seen=$(kubectl get job "$1" --output="jsonpath=$conditions" 2>&1); then
  case $seen in
    *NotFound*) echo failed ;;
    *) echo running ;; # the API does not respond: Snakemake asks again
  esac
  exit
fi
case $seen in
  *Failed*) echo failed ;;
  *Complete*) echo success ;;
  *) echo running ;;
esac
