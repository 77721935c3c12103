#!/usr/bin/env bash
# setup.sh CACHE [qemu] [c++]: provides what building needs, and QEMU and a C++ compiler if asked for; does nothing where all
# is there.
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
readonly PACKAGE_RUSTC=rustc-web PACKAGES_CC="gcc libc6-dev" PACKAGE_CXX=g++ PACKAGES_QEMU=qemu-system-x86
readonly PACKAGES_BARE="$PACKAGE_RUSTC rust-web-src"
cache=$1 want=" ${*:2} "
here=$(cd "$(dirname "$0")" && pwd)

source "$here/say.sh"
fail() {
    say setup "$*"
    exit 1
}

# --- Rust ---------------------------------------------------------------------------------------------------------

# new_enough VERSION: whether it is a version of Rust, of itself or of a package, that will do.
new_enough() { [[ $1 =~ ^([0-9]+:)?1\.([0-9]+)\. ]] && [ "${BASH_REMATCH[2]}" -ge $MINOR ]; }

# recent RUSTC: whether it is new enough.
recent() {
    local version
    version=$("$1" -V 2>/dev/null) && new_enough "${version#rustc }"
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

# too_old PACKAGE..: whether the compiler is among the packages and comes in no version that would do; `offered` says in which.
too_old() {
    [[ " $* " = *" $PACKAGE_RUSTC "* ]] || return 1
    offered=$(LC_ALL=C apt-cache policy $PACKAGE_RUSTC 2>/dev/null | sed -n 's/^ *Candidate: //p')
    ! new_enough "${offered:=(none)}"
}

# provide WHAT PACKAGE..: installs, or says the command that would. The lists come first: by old ones a package may be missing, or
# in a version that installs well and is of no use.
provide() {
    local what=$1 offered
    shift
    command -v apt-get >/dev/null || fail "missing: $what; Debian's packages of it are: $*"
    if ! may_install; then
        say setup "missing: $what. Run this, then try again:"
        ! too_old "$@" || say setup "($PACKAGE_RUSTC must be 1.$MINOR or newer then; by the lists of now it is $offered)"
        echo "sudo apt-get update && sudo apt-get install --no-install-recommends $*" >&2
        exit 1
    fi
    say setup "installing $*"
    local apt=("${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq)
    "${apt[@]}" update >&2 || say setup "the package lists cannot be updated; using those there are"
    ! too_old "$@" || fail "missing: $what. The distribution's $PACKAGE_RUSTC is $offered, and 1.$MINOR or newer is needed." \
        "Instead, add the target by rustup, or put a Rust with its library sources (rust-src) in PATH"
    "${apt[@]}" install -y --no-install-recommends "$@" >&2 || fail "the packages could not be installed"
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

# Whether the compiler in use is one of rustup's. Another one may be first in PATH; rustup has nothing for it.
of_rustup() {
    [ -n "${RUSTUP_TOOLCHAIN-}" ] && [ "$(rustup which rustc 2>/dev/null)" -ef "$(rustc --print sysroot)/bin/rustc" ]
}

# Whether rustup has the compiler in use, and has not failed before with it.
rustup_may_add() {
    of_rustup && [ "$(cat "$cache/rustup-failed" 2>/dev/null)" != "$compiler" ]
}

# What is missing then, by name.
bare_target() {
    local whose=
    if command -v rustup >/dev/null && ! of_rustup; then whose=", which is not rustup's"; fi
    echo "the target $TARGET for $(command -v rustc)$whose"
}

private=${SONDE_BARE_TARGET-}
compiler_with_sources() {
    local candidate
    while read -r candidate; do
        if sources "$candidate" && recent "$candidate"; then
            echo "$candidate"
            return
        fi
    done < <(type -ap rustc)
}

# --- What is missing ----------------------------------------------------------------------------------------------

choose_toolchain
command -v cargo >/dev/null && recent rustc ||
    fail "Rust 1.$MINOR or newer is needed, with cargo; https://rustup.rs has it"
compiler=$(rustc -vV | sed -n 's/^commit-hash: //p')

missing=() packages=()
if [[ $want == *" qemu "* ]] && ! command -v "${QEMU:-qemu-system-x86_64}" >/dev/null; then
    [ -z "${QEMU-}" ] || fail "QEMU names $QEMU, which cannot be run"
    missing+=("QEMU") packages+=("$PACKAGES_QEMU")
fi
if ! command -v cc >/dev/null; then
    missing+=("a C linker") packages+=($PACKAGES_CC)
fi
if [[ $want == *" c++ "* ]] && ! command -v c++ >/dev/null; then
    missing+=("a C++ compiler") packages+=("$PACKAGE_CXX")
fi
bare=
if [ "$private" != private ] && has_target rustc; then
    bare=compiler
elif [ -n "$(compiler_with_sources)" ]; then
    bare=sources
elif [ "$private" = private ] || ! rustup_may_add; then
    missing+=("$(bare_target)") packages+=($PACKAGES_BARE)
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
    say setup "rustup target add $TARGET"
    if ! timeout 120 rustup target add $TARGET >"$cache/rustup.log" 2>&1; then
        failure="rustup cannot add it here"
    elif ! has_target rustc; then
        failure="rustup says that it is there, but it is not"
    else
        bare=compiler
    fi
    if [ "$bare" != compiler ]; then
        say setup "$failure ($cache/rustup.log); building it from library sources instead"
        echo "$compiler" >"$cache/rustup-failed"
    fi
fi

env=(${RUSTUP_TOOLCHAIN:+"RUSTUP_TOOLCHAIN=$RUSTUP_TOOLCHAIN"})
if [ "$bare" != compiler ]; then
    rustc=$(compiler_with_sources)
    if [ -z "$rustc" ]; then
        provide "$(bare_target)" $PACKAGES_BARE
        rustc=$(compiler_with_sources)
    fi
    [ -n "$rustc" ] || fail "no rustc of 1.$MINOR or newer in PATH has library sources, though $PACKAGES_BARE are installed"
    sysroot=$("$here/mk-sysroot.sh" "$rustc" "$(command -v cargo)" "$cache")
    env+=("BARE_RUSTC=$rustc" "BARE_SYSROOT=$sysroot")
    command -v rust-lld >/dev/null || env+=("BARE_LINKER=ld")
fi
content=$(printf '%s\n' "${env[@]}")
[ "$content" = "$(cat "$cache/env" 2>/dev/null)" ] || printf '%s\n' "$content" >"$cache/env"
