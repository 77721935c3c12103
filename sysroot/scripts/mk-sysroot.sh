#!/usr/bin/env bash
# mk-sysroot.sh RUSTC CARGO CACHE: core, alloc and compiler_builtins for the bare target, built from the library sources that lie
# beside RUSTC. Prints the sysroot's path, which is keyed by compiler and flags: it is built once. Needs no registry.
set -euo pipefail

readonly TARGET=x86_64-unknown-none
# As in .cargo/config.toml: the profiler walks through core as it does through our own code.
readonly FLAGS="-Crelocation-model=static -Cforce-frame-pointers=yes -Cforce-unwind-tables=yes -Csymbol-mangling-version=v0"
rustc=$1 cargo=$2
mkdir -p "$3"
cache=$(cd "$3" && pwd)

commit=$("$rustc" -vV | sed -n 's/^commit-hash: //p')
key=$(printf '%s %s' "$FLAGS" "$(cat "${BASH_SOURCE[0]}")" | cksum | cut -d' ' -f1)
out=$cache/sysroot-${commit:0:10}-$key
if [ -d "$out" ]; then
    echo "$out"
    exit
fi

source=$("$rustc" --print sysroot)/lib/rustlib/src/rust/library
work=$(mktemp -d "$cache/work.XXXXXX")
trap 'rm -rf "$work"' EXIT
echo "setup: building core and alloc for $TARGET" >&2

# A cut-down library workspace: the crates we need and those whose files they include.
mkdir "$work/library"
for crate in core alloc compiler-builtins stdarch portable-simd; do
    cp -rL "$source/$crate" "$work/library/$crate"
done
rm -f "$work"/library/{compiler-builtins,stdarch}/Cargo.toml # workspaces of their own
# The C compiler is for other targets, and its crate is not beside the sources.
sed -i -e '/^cc = /d' -e 's/"dep:cc"//' "$work/library/compiler-builtins/compiler-builtins/Cargo.toml"
cat >"$work/library/Cargo.toml" <<'TOML'
[workspace]
resolver = "1"
members = ["alloc"]

[profile.release]
panic = "abort"
debug = "line-tables-only"
codegen-units = 1

# Its functions must not be merged into one object: the linker takes only those that are called.
[profile.release.package.compiler_builtins]
codegen-units = 10000
TOML

unset RUSTFLAGS CARGO_ENCODED_RUSTFLAGS CARGO_BUILD_TARGET
cd "$work/library" # away from this project's cargo configuration
RUSTC=$rustc RUSTC_BOOTSTRAP=1 __CARGO_DEFAULT_LIB_METADATA=sonde \
    CARGO_TARGET_X86_64_UNKNOWN_NONE_RUSTFLAGS="$FLAGS -Zforce-unstable-if-unmarked --remap-path-prefix=$work/library=/rustc/library" \
    "$cargo" build --quiet --release --offline --manifest-path alloc/Cargo.toml \
    --features compiler-builtins-mem --target $TARGET --target-dir "$work/target" >&2

lib=$work/sysroot/lib/rustlib/$TARGET/lib
mkdir -p "$lib"
cp "$work/target/$TARGET"/release/deps/lib{core,alloc,compiler_builtins}-*.rlib "$lib/"
mv "$work/sysroot" "$out" # whole or not at all
echo "$out"
