#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
# Builds a Debian package of the program, with its manual pages, completions, service and kernel options.
#
#     dist/deb.sh PROGRAM DIR
#
# PROGRAM is an `arctic` for x86-64, best the static one (docs/install.md); the package is written to DIR. Needs dpkg-deb, gzip
# and strip, not root.
set -eu

[ $# -eq 2 ] || { echo "usage: $0 PROGRAM DIR" >&2; exit 2; }
program=$(realpath "$1")
out=$(realpath "$2")
dist=$(realpath "$(dirname "$0")")
version=$("$program" --version | cut -d ' ' -f 2)
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
umask 022
chmod 755 "$root"

share=$root/usr/share
mkdir -p "$root/DEBIAN" "$root/usr/bin" "$root/usr/lib/systemd/system" "$share/doc/arctic" "$share/arctic" \
    "$share/bash-completion/completions" "$share/fish/vendor_completions.d" "$share/zsh/vendor-completions"
strip --strip-debug -o "$root/usr/bin/arctic" "$program"
chmod 755 "$root/usr/bin/arctic"
"$program" man "$share/man/man1"
gzip --best --no-name "$share"/man/man1/*
"$program" completions bash > "$share/bash-completion/completions/arctic"
"$program" completions fish > "$share/fish/vendor_completions.d/arctic.fish"
"$program" completions zsh > "$share/zsh/vendor-completions/_arctic"
sed 's,/usr/local/bin/,/usr/bin/,' "$dist/arctic@.service" > "$root/usr/lib/systemd/system/arctic@.service"
cp "$dist/guest-kernel.config" "$share/arctic/"
cp "$dist/../LICENSE-BSD-3-Clause" "$share/doc/arctic/copyright"
cat "$dist/../LICENSE-APACHE" >> "$share/doc/arctic/copyright"
cat > "$root/DEBIAN/control" <<END
Package: arctic
Version: $version
Architecture: amd64
Maintainer: The Arctic maintainers
Section: devel
Priority: optional
Recommends: apt, debian-archive-keyring
Description: virtual Intel Data Center GPU Flex 170
 Serves a software model of the GPU with SR-IOV to QEMU and Cloud Hypervisor over
 vfio-user, boots Linux guests with it, and decodes its state.
END
dpkg-deb --root-owner-group --build "$root" "$out/arctic_${version}_amd64.deb"
