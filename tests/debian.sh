#!/usr/bin/env bash
# On a fresh Debian, run `make environment`, the study `smoke` and tests of the server as a user who is not
# root. The script needs root for debootstrap and chroot. FOLDER keeps the Debian and its packages: some GB.
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
# The new system uses the network settings of this machine.
cp -L /etc/resolv.conf /etc/hosts "$debian/etc"
cp -L /etc/ssl/certs/ca-certificates.crt "$debian/etc/ssl/certs"
mkdir -p "$debian$clone"
find "$debian$clone" -mindepth 1 -maxdepth 1 ! -name .venv -exec rm -rf {} +
git archive HEAD | tar --extract --directory="$debian$clone"
chroot "$debian" chown -R --no-dereference someone: "$clone"

# All mounts and processes end with this shell. The shell stays root, because the kernel does not signal the
# death of a parent to a process that changes its user.
unshare --mount --pid --fork --kill-child bash -euo pipefail -c '
  mount -t proc proc "$1/proc"
  mount --rbind /dev "$1/dev"
  mount --rbind /sys "$1/sys"
  # The environment of a login, with the variables that name the package indexes of pip.
  mapfile -t pip < <(env | grep ^PIP_ | grep -v ^PIP_FIND_LINKS=)
  chroot --userspec=someone: "$1" /usr/bin/env -i "${pip[@]}" \
    HOME=/home/someone PATH=/usr/bin:/bin bash -euo pipefail -c "
      cd $2
      time make environment
      # The study runs as on many company machines: with a proxy that does not reach this machine, without a
      # home folder, and with files that only their owner can read.
      closed=http://127.0.0.1:9
      time (umask 077; env --unset=HOME LANG=C http_proxy=\$closed https_proxy=\$closed HTTP_PROXY=\$closed \
        HTTPS_PROXY=\$closed make all CONFIGFILE=config/studies/smoke.yaml)
      test -s results/smoke/report.html
      time make development
      source .venv/bin/activate
      python -m pytest -m \"not alone\" tests/e2e/test_server.py tests/e2e/test_tensors.py \
        tests/unit/serving tests/unit/models tests/unit/results
    "
' bash "$debian" "$clone"
