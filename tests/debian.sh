#!/usr/bin/env bash
# What a person who is not root does on a fresh Debian: `make environment`, the study `smoke`, and tests of
# the server. Needs root for debootstrap and chroot. FOLDER keeps the Debian and the packages, some GB.
#
# tests/debian.sh 12|13 [FOLDER]
set -euo pipefail
cd "$(dirname "$0")/.."
declare -A suites=([12]=bookworm [13]=trixie) pythons=([12]=3.11 [13]=3.13)
debian=$(realpath --canonicalize-missing "${2:-build/debian$1}")
clone=/home/someone/perseus

if [[ ! -d $debian/home/someone ]]; then
  mkdir -p "$debian"
  debootstrap --variant=minbase --include="make,python3-venv,libpython${pythons[$1]},ca-certificates" \
    "${suites[$1]}" "$debian"
  chroot "$debian" useradd --create-home someone
fi
# It reaches the network as this machine does.
cp -L /etc/resolv.conf /etc/hosts "$debian/etc"
cp -L /etc/ssl/certs/ca-certificates.crt "$debian/etc/ssl/certs"
mkdir -p "$debian$clone"
find "$debian$clone" -mindepth 1 -maxdepth 1 ! -name .venv -exec rm -rf {} +
git archive HEAD | tar --extract --directory="$debian$clone"
chroot "$debian" chown -R --no-dereference someone: "$clone"

# The mounts end with the processes, and all processes with the shell, which stays root for that: who becomes
# another user is not told of the death of its parent.
unshare --mount --pid --fork --kill-child bash -euo pipefail -c '
  mount -t proc proc "$1/proc"
  mount --rbind /dev "$1/dev"
  mount --rbind /sys "$1/sys"
  # As after a login, with the variables that lead pip to the package indexes.
  mapfile -t pip < <(env | grep ^PIP_ | grep -v ^PIP_FIND_LINKS=)
  chroot --userspec=someone: "$1" /usr/bin/env -i "${pip[@]}" \
    HOME=/home/someone PATH=/usr/bin:/bin bash -euo pipefail -c "
      cd $2
      time make environment
      # The study runs as on a machine of a company: a proxy that does not lead to this machine, and an
      # account without a home, whose files only their owner may read.
      closed=http://127.0.0.1:9
      time (umask 077; env --unset=HOME LANG=C http_proxy=\$closed https_proxy=\$closed HTTP_PROXY=\$closed \
        HTTPS_PROXY=\$closed make all CONFIGFILE=config/studies/smoke.yaml)
      test -s results/smoke/report.html
      source .venv/bin/activate
      python -m pytest -m \"not alone\" tests/e2e/test_server.py tests/e2e/test_tensors.py \
        tests/unit/serving tests/unit/models tests/unit/results
    "
' bash "$debian" "$clone"
