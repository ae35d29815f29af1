#!/usr/bin/env bash
# What a person does on a fresh Debian 13, who is not root: `make environment`, the study `smoke`, and
# tests of the server. Needs root for debootstrap and chroot; FOLDER (build/debian13) keeps the Debian
# and what was installed, some GB.
#
# tests/debian13.sh [FOLDER]
set -euo pipefail
cd "$(dirname "$0")/.."
debian=$(realpath "${1:-build/debian13}")
clone=/home/someone/perseus

if [[ ! -d $debian/home/someone ]]; then
  mkdir -p "$debian"
  debootstrap --variant=minbase --include=make,python3-venv,libpython3.13,ca-certificates \
    trixie "$debian"
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
  # As after a login, with what tells pip where to look.
  mapfile -t pip < <(env | grep ^PIP_)
  chroot --userspec=someone: "$1" /usr/bin/env -i "${pip[@]}" \
    HOME=/home/someone PATH=/usr/bin:/bin bash -euo pipefail -c "
      cd $2
      make environment
      source .venv/bin/activate
      snakemake --cores 4 all --configfile config/studies/smoke.yaml
      test -s results/smoke/report.html
      python -m pytest -m \"not alone\" tests/e2e/test_server.py tests/e2e/test_tensors.py \
        tests/unit/serving tests/unit/models tests/unit/results
    "
' bash "$debian" "$clone"
