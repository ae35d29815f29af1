"""First process of a pod: run a script with sh, and pass SIGTERM on to all processes of the pod.

If Kubernetes deletes a pod, it sends SIGTERM only to the first process. After SIGTERM, this program
waits until all other processes have ended, so that a measurement can stop its server properly.
"""

import contextlib
import ctypes
import os
import signal
import subprocess
import sys

PR_SET_CHILD_SUBREAPER = 36  # linux/prctl.h: orphaned processes become children of this process
is_cancelled = False


def pass_on(*_: object) -> None:
    """Send SIGTERM to all other processes of this process group."""
    global is_cancelled
    is_cancelled = True
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    os.killpg(0, signal.SIGTERM)


ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)
signal.signal(signal.SIGTERM, pass_on)
code = subprocess.Popen(["/bin/sh", sys.argv[1]]).wait()
with contextlib.suppress(ChildProcessError):
    while is_cancelled:
        os.wait()
sys.exit(code if code >= 0 else 128 - code)
