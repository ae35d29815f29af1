#!/bin/sh
# status.sh ID: print the state of a Slurm job in one word, as Snakemake expects.
# Slurm forgets a job some minutes after its end (MinJobAge), but Snakemake asks before.
state=$(squeue --noheader --states=all --jobs="$1" --format=%T 2>&1)
case $state in
  COMPLETED) echo success ;;
  PENDING | CONFIGURING | RUNNING | SIGNALING | STAGE_OUT | COMPLETING) echo running ;;
  SUSPENDED | STOPPED | RESIZING | REQUEUED | REQUEUE_HOLD) echo running ;;
  # Slurm does not respond, for example while its controller restarts: Snakemake asks again.
  *"Unable to contact"* | *"Socket timed out"* | *"Connection refused"*) echo running ;;
  *) echo failed ;;
esac
