#!/bin/sh
# status.sh ID: what has become of a Slurm job, as Snakemake wants to hear it, in one word.
# Slurm forgets a job some minutes after its end (MinJobAge): by then Snakemake has asked.
state=$(squeue --noheader --states=all --jobs="$1" --format=%T 2>&1)
case $state in
  COMPLETED) echo success ;;
  PENDING | CONFIGURING | RUNNING | SIGNALING | STAGE_OUT | COMPLETING) echo running ;;
  SUSPENDED | STOPPED | RESIZING | REQUEUED | REQUEUE_HOLD) echo running ;;
  # Slurm itself does not answer, as in a restart of its controller: ask again later.
  *"Unable to contact"* | *"Socket timed out"* | *"Connection refused"*) echo running ;;
  *) echo failed ;;
esac
