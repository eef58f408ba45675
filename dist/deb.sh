#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
# Builds a Debian package of the programs, with manual pages, completions, service, kernel options and documents.
#
#     dist/deb.sh PROGRAM DIR
#
# PROGRAM is an `arctic` for x86-64, best the static one (docs/install.md); `eu` and `afuc` are taken from its directory. The
# package is written to DIR. Needs dpkg-deb, gzip, strip and objdump, not root.
set -eu

[ $# -eq 2 ] || { echo "usage: $0 PROGRAM DIR" >&2; exit 2; }
program=$(realpath "$1")
out=$(realpath "$2")
dist=$(realpath "$(dirname "$0")")
source=$(dirname "$dist")
version=$("$program" --version | cut -d ' ' -f 2)
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
umask 022
chmod 755 "$root"

share=$root/usr/share
doc=$share/doc/arctic
mkdir -p "$root/DEBIAN" "$root/usr/bin" "$root/usr/lib/systemd/system" "$share/arctic" "$doc/dist" \
    "$share/bash-completion/completions" "$share/fish/vendor_completions.d" "$share/zsh/vendor-completions"
"$program" man "$share/man/man1"
libraries=
for name in arctic eu afuc; do
    file=$(dirname "$program")/$name
    [ $name = arctic ] && file=$program
    if [ ! -x "$file" ]; then
        echo "$0: there is no $file: the package has no $name (cargo build --release -p arctic-$name)" >&2
        rm -f "$share/man/man1/arctic-$name.1"
        continue
    fi
    strip --strip-debug -o "$root/usr/bin/$name" "$file"
    chmod 755 "$root/usr/bin/$name"
    libraries="$libraries $(objdump -p "$file" | sed -n 's/^ *NEEDED *//p' | tr '\n' ' ')"
    objdump -T "$file" 2> /dev/null | grep -o 'GLIBC_[0-9.]*' >> "$root/symbols" || true
done
depends=
for library in $libraries; do
    case $library in
    libgcc_s.so.1) depends="libgcc-s1" ;;
    libc.so.6 | libm.so.6 | ld-linux-x86-64.so.2) ;;
    *) echo "$0: the programs need $library, and the package of it is not known" >&2; exit 1 ;;
    esac
done
if [ -s "$root/symbols" ]; then
    libc=$(sed 's/GLIBC_//' "$root/symbols" | sort -V | tail -n 1)
    depends="libc6 (>= $libc)${depends:+, $depends}"
    echo "$0: the programs are linked dynamically: the package depends on $depends" >&2
fi
rm -f "$root/symbols"
gzip --best --no-name "$share"/man/man1/*
"$program" completions bash > "$share/bash-completion/completions/arctic"
"$program" completions fish > "$share/fish/vendor_completions.d/arctic.fish"
"$program" completions zsh > "$share/zsh/vendor-completions/_arctic"
sed 's,/usr/local/bin/,/usr/bin/,' "$dist/arctic@.service" > "$root/usr/lib/systemd/system/arctic@.service"
cp "$dist/guest-kernel.config" "$share/arctic/"
# As in the source tree, so that links and the names in help texts (docs/own-kernel.md, configs/, dist/) are right.
(cd "$source" && cp --parents ./*.md docs/*.md docs/*.png docs/spec/*.md eu/README.md eu/docs/*.* afuc/README.md \
    afuc/docs/*.md afuc/firmware/*.asm configs/*.toml dist/own-guest.sh dist/guest-kernel.config "$doc")
cp "$source/LICENSE-BSD-3-Clause" "$doc/copyright"
cat "$source/LICENSE-APACHE" >> "$doc/copyright"
cat > "$root/DEBIAN/control" <<END
Package: arctic
Version: $version
Architecture: amd64
Maintainer: The Arctic maintainers
Section: devel
Priority: optional
${depends:+Depends: $depends
}Recommends: apt, debian-archive-keyring
Description: virtual Intel Data Center GPU Flex 170
 Serves a software model of the GPU with SR-IOV to QEMU and Cloud Hypervisor over
 vfio-user, boots Linux guests with it, and decodes its state. Its execution units
 are the program eu; afuc is for the microcode of Adreno command processors.
END
dpkg-deb --root-owner-group --build "$root" "$out/arctic_${version}_amd64.deb"
