#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
# Builds Mesa's afuc-asm and afuc-disasm from Debian's source package, for `cargo bench -- --peer DIR`.
# Usage: peer.sh DIR. Needs about 50 MB of downloads, 700 MB of disk space and two minutes. Packages that it needs:
#   python3-pip ninja-build flex bison pkg-config gcc g++ libarchive-dev libxml2-dev zlib1g-dev
# Meson comes from PyPI, because that of Debian 12 is too old.
set -euo pipefail
PACKAGE=mesa=25.0.7-2+deb13u1
KEYRING=/usr/share/keyrings/debian-archive-keyring.gpg
target=${1:?the directory for the two programs}
mirror=${ARCTIC_DEBIAN_MIRROR:-$(cat /etc/apt/sources.list.d/*.sources /etc/apt/sources.list 2>/dev/null |
    grep -oE '[a-z]+://[^ ]*/debian/?( |$)' | head -n 1 || true)}
[ -n "$mirror" ] || { echo "peer.sh: set ARCTIC_DEBIAN_MIRROR to the URI of a Debian mirror" >&2; exit 1; }
# Before the downloads: what is missing, by package.
missing=
for program in ninja:ninja-build flex:flex bison:bison pkg-config:pkg-config gcc:gcc g++:g++; do
    command -v "${program%:*}" > /dev/null || missing+=" ${program#*:}"
done
for library in libarchive:libarchive-dev libxml-2.0:libxml2-dev zlib:zlib1g-dev; do
    pkg-config --exists "${library%:*}" 2> /dev/null || missing+=" ${library#*:}"
done
python3 -m pip --version > /dev/null 2>&1 || missing+=" python3-pip"
[ -z "$missing" ] || { echo "peer.sh: packages are missing; install them with: apt-get install$missing" >&2; exit 1; }
mkdir -p "$target"
target=$(cd "$target" && pwd)
work=$(mktemp -d "$target/build.XXXXXX")
trap 'rm -rf "$work"' EXIT
mkdir -p "$work"/{parts,lists/partial,archives/partial}
printf 'Types: deb-src\nURIs: %s\nSuites: trixie\nComponents: main\nSigned-By: %s\n' "$mirror" "$KEYRING" > "$work/parts/mesa.sources"
options=(-o Dir::Etc::SourceList=/dev/null -o "Dir::Etc::SourceParts=$work/parts" -o "Dir::State::Lists=$work/lists"
    -o "Dir::Cache=$work" -o APT::Sandbox::User=root)
cd "$work"
echo "peer.sh: fetching $PACKAGE" >&2
apt-get "${options[@]}" -qq update
apt-get "${options[@]}" -qq source --download-only "$PACKAGE"
tar -xf mesa_25.0.7.orig.tar.xz
echo "peer.sh: building" >&2
python3 -m pip install -q --disable-pip-version-check --no-warn-script-location --target "$work/python" \
    meson==1.9.1 mako==1.3.10 pyyaml==6.0.2 packaging==25.0 setuptools==75.8.0 >&2
export PYTHONPATH="$work/python" PATH="$work/python/bin:$PATH"
meson setup build mesa-25.0.7 --buildtype release -Dtools=freedreno -Dvulkan-drivers= -Dgallium-drivers= -Dplatforms= \
    -Dglx=disabled -Degl=disabled -Dgbm=disabled -Dopengl=false -Dgles1=disabled -Dgles2=disabled -Dllvm=disabled \
    -Dshared-glapi=disabled -Dvideo-codecs= > setup.log || { cat setup.log >&2; exit 1; }
ninja -C build src/freedreno/afuc/afuc-asm src/freedreno/afuc/afuc-disasm > ninja.log || { tail -n 20 ninja.log >&2; exit 1; }
# The register database, which the programs read at their start.
mkdir -p "$target/registers"
cp -r mesa-25.0.7/src/freedreno/registers/. "$target/registers/"
cp build/src/freedreno/afuc/afuc-asm build/src/freedreno/afuc/afuc-disasm "$target/"
echo "peer.sh: $target has afuc-asm and afuc-disasm; run them with RNN_PATH=$target/registers" >&2
