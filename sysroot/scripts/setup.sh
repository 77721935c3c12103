#!/usr/bin/env bash
# setup.sh CACHE [qemu]: provides what building needs, and QEMU if asked for; does nothing where all is there.
#
# Writes CACHE/env, lines of KEY=VALUE:
#   RUSTUP_TOOLCHAIN   the toolchain to use, where rustup has several
#   BARE_RUSTC         the compiler for the bare target, if it is not the one above
#   BARE_SYSROOT       the private sysroot that goes with it
#   BARE_LINKER        its linker
#
# The bare target comes, in this order, from: the compiler in use; `rustup target add`; library sources beside a
# compiler; the distribution's packages. Status 1, and one command to run, where something is missing that this script may
# not install; nothing has been changed by then. SONDE_BARE_TARGET=private skips the first two, for trying the others.
set -euo pipefail

readonly TARGET=x86_64-unknown-none MINOR=95
readonly PACKAGES_BARE="rustc-web rust-web-src" PACKAGES_CC="gcc libc6-dev" PACKAGES_QEMU=qemu-system-x86
cache=$1 want=${2-}
here=$(cd "$(dirname "$0")" && pwd)

say() { echo "setup: $*" >&2; }
fail() {
    say "$*"
    exit 1
}

# --- Rust ---------------------------------------------------------------------------------------------------------

# recent RUSTC: whether it is new enough.
recent() {
    local version
    version=$("$1" -V 2>/dev/null) || return 1
    [[ $version =~ ^rustc\ 1\.([0-9]+)\. ]] && [ "${BASH_REMATCH[1]}" -ge $MINOR ]
}

# Picks an installed toolchain of rustup by hand: with rust-toolchain.toml in force, rustup refuses to run anything on a machine
# where it cannot fetch the target that the file lists.
choose_toolchain() {
    command -v rustup >/dev/null || return 0
    local installed name
    installed=$(rustup toolchain list 2>/dev/null | cut -d' ' -f1)
    for name in $(grep -Fx "${RUSTUP_TOOLCHAIN-}" <<<"$installed") $(grep '^stable' <<<"$installed") $installed; do
        export RUSTUP_TOOLCHAIN=$name
        if recent rustc; then return 0; fi
    done
    unset RUSTUP_TOOLCHAIN
}

# --- Packages -----------------------------------------------------------------------------------------------------

sudo=()
may_install() {
    [ "$(id -u)" -ne 0 ] || return 0
    sudo=(sudo -n)
    command -v sudo >/dev/null && sudo -n true 2>/dev/null
}

# provide WHAT PACKAGE..: installs, or says the command that would.
provide() {
    local what=$1
    shift
    command -v apt-get >/dev/null || fail "missing: $what; Debian's packages of it are: $*"
    if ! may_install; then
        say "missing: $what. Run this, then try again:"
        echo "sudo apt-get install --no-install-recommends $*" >&2
        exit 1
    fi
    say "installing $*"
    local install=("${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@")
    "${install[@]}" >&2 2>/dev/null || { "${sudo[@]}" apt-get update -qq >&2 && "${install[@]}" >&2; } ||
        fail "the packages could not be installed"
}

# --- The bare target ----------------------------------------------------------------------------------------------

# sources RUSTC: whether it has its own library sources beside it.
sources() { [ -f "$("$1" --print sysroot 2>/dev/null)/lib/rustlib/src/rust/library/alloc/Cargo.toml" ]; }

# has_target RUSTC: whether it has core and alloc for the target.
has_target() {
    local lib
    lib=$("$1" --print sysroot 2>/dev/null)/lib/rustlib/$TARGET/lib
    compgen -G "$lib/libcore-*.rlib" >/dev/null && compgen -G "$lib/liballoc-*.rlib" >/dev/null
}

# Whether rustup is there and has not failed before with this compiler.
rustup_may_add() {
    command -v rustup >/dev/null && [ "$(cat "$cache/rustup-failed" 2>/dev/null)" != "$compiler" ]
}

private=${SONDE_BARE_TARGET-}
compiler_with_sources() {
    local candidate
    for candidate in rustc /usr/bin/rustc; do
        if sources "$candidate" && recent "$candidate"; then
            command -v "$candidate"
            return
        fi
    done
}

# --- What is missing ----------------------------------------------------------------------------------------------

choose_toolchain
command -v cargo >/dev/null && recent rustc ||
    fail "Rust 1.$MINOR or newer is needed, with cargo; https://rustup.rs has it"
compiler=$(rustc -vV | sed -n 's/^commit-hash: //p')

missing=() packages=()
if [ "$want" = qemu ] && ! command -v "${QEMU:-qemu-system-x86_64}" >/dev/null; then
    [ -z "${QEMU-}" ] || fail "QEMU names $QEMU, which cannot be run"
    missing+=("QEMU") packages+=("$PACKAGES_QEMU")
fi
if ! command -v cc >/dev/null; then
    missing+=("a C linker") packages+=($PACKAGES_CC)
fi
bare=
if [ "$private" != private ] && has_target rustc; then
    bare=compiler
elif [ -n "$(compiler_with_sources)" ]; then
    bare=sources
elif [ "$private" = private ] || ! rustup_may_add; then
    missing+=("the target $TARGET") packages+=($PACKAGES_BARE)
fi
if [ ${#missing[@]} -gt 0 ]; then
    list=$(printf ', %s' "${missing[@]}")
    provide "${list:2}" "${packages[@]}"
fi

mkdir -p "$cache"
if command -v flock >/dev/null; then
    exec 9>"$cache/lock"
    flock 9 # one set-up at a time
fi

if [ "$bare" != compiler ] && [ "$private" != private ] && rustup_may_add; then
    say "rustup target add $TARGET"
    if timeout 120 rustup target add $TARGET >"$cache/rustup.log" 2>&1 && has_target rustc; then
        bare=compiler
    else
        say "rustup cannot add it here ($cache/rustup.log); building it from library sources instead"
        echo "$compiler" >"$cache/rustup-failed"
    fi
fi

env=(${RUSTUP_TOOLCHAIN:+"RUSTUP_TOOLCHAIN=$RUSTUP_TOOLCHAIN"})
if [ "$bare" != compiler ]; then
    rustc=$(compiler_with_sources)
    if [ -z "$rustc" ]; then
        provide "the target $TARGET" $PACKAGES_BARE
        rustc=$(compiler_with_sources)
    fi
    [ -n "$rustc" ] || fail "the distribution's compiler is older than 1.$MINOR"
    sysroot=$("$here/mk-sysroot.sh" "$rustc" "$(command -v cargo)" "$cache")
    env+=("BARE_RUSTC=$rustc" "BARE_SYSROOT=$sysroot")
    command -v rust-lld >/dev/null || env+=("BARE_LINKER=ld")
fi
content=$(printf '%s\n' "${env[@]}")
[ "$content" = "$(cat "$cache/env" 2>/dev/null)" ] || printf '%s\n' "$content" >"$cache/env"
