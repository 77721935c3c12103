#!/usr/bin/env bash
# Builds Sonde and boots it in QEMU, or tests it, on a machine that has Rust and perhaps nothing else.
# Checks the shape of the arguments, provides what is missing, and hands over to tools/xtask, which does the work.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
source "$here/sysroot/scripts/say.sh"

usage() {
    cat <<'TEXT'
usage: ./run.sh [boot] [OPTIONS] [-- QEMU ARGS]
           build, then boot with the serial line on stdin and stdout
       ./run.sh build
           build only
       ./run.sh test [FILTER]
           build, then pass every test whose suite::name contains FILTER
       ./run.sh soak [MINUTES] [FILTER]
           build, then go through random rounds of every soak whose name
           contains FILTER, for MINUTES (10) or until one fails
       ./run.sh bench [--check]
           build, then count the instructions of what is done most; with
           --check, fail if a figure is above its budget
       ./run.sh sonde ARGUMENTS
           build the client of the remote shell and run it: it finds the machine
           that was booted last, and its key; ./run.sh sonde --help has more
       ./run.sh new NAME [--server]
           make the skeleton of a program, or of a server and its client
options:
  --smp N          CPUs, 1 to 64 (4)
  --mem MIB        memory (256)
  --cpu MODEL      CPU model, one of QEMU's (max)
  --accel tcg|kvm  emulate (tcg), or use the host's CPU if it can
  --cmdline STR    kernel command line (udpshell=5555)
  --udp-port P     loopback port that reaches the guest's remote shell (5555)
  --forward P:G    loopback port P reaches the guest's UDP port G, too
  --timeout S      stop after S seconds, with status 124
  --gdb            wait for gdb, and print the command that starts it
  --icount         deterministic time: one nanosecond an instruction
A value may also stand behind `=`: --smp=2.
The environment variable QEMU names another QEMU binary; SONDE_SEED is the seed
of the first round of soak.
Status 0 means that the guest powered itself off, or that something was tested
and nothing failed.
TEXT
}

# refuse WORDS..: says what is wrong and what is allowed, and ends.
refuse() {
    say run.sh "$*; ./run.sh --help has all of it"
    exit 2
}

# at_most N WHAT ARGUMENTS..: refuses more than N arguments.
at_most() {
    local most=$1 what=$2
    shift 2
    [ $# -le "$most" ] || refuse "\`${!#}\` is too much; $command takes $what"
}

# value_of OPTION: what an option of boot takes; nothing if it takes no value.
value_of() {
    case $1 in
    --smp) echo "N, a number of CPUs" ;;
    --mem) echo "MIB, a number of MiB" ;;
    --cpu) echo "MODEL, a CPU model of QEMU's" ;;
    --accel) echo "tcg or kvm" ;;
    --cmdline) echo "STR, the kernel's command line" ;;
    --udp-port) echo "P, the number of a port" ;;
    --forward) echo "P:G, the numbers of two ports" ;;
    --timeout) echo "S, a number of seconds" ;;
    esac
}

command=boot
case ${1-} in
boot | build | test | soak | bench | sonde | new)
    command=$1
    shift
    ;;
-h | --help | help)
    command=$1
    shift
    at_most 0 nothing "$@"
    usage
    exit 0
    ;;
esac
arguments=("$command" "$@")
case $command in
build) at_most 0 nothing "$@" ;;
new)
    at_most 2 "NAME and --server" "$@"
    [[ $# -ge 1 && $1 != -* ]] || refuse "new takes a NAME first"
    [[ ${2---server} == --server ]] || refuse "\`$2\` is not --server, the one option of new"
    ;;
soak)
    at_most 2 "MINUTES and FILTER" "$@"
    [[ ${1-1} =~ ^[0-9]+$ ]] || refuse "\`$1\` is no number of MINUTES, which soak takes before a FILTER"
    [[ ${2-} != -* ]] || refuse "\`$2\` is no FILTER, which begins with no dash"
    ;;
test)
    at_most 1 "one FILTER" "$@"
    [[ ${1-} != -* ]] || refuse "\`$1\` is no FILTER, which begins with no dash"
    ;;
bench)
    at_most 1 "--check" "$@"
    [[ $# -eq 0 || $1 == --check ]] || refuse "\`$1\` is not --check, all that bench takes"
    ;;
boot)
    while [ $# -gt 0 ]; do
        value=$(value_of "${1%%=*}")
        case $1 in
        --gdb | --icount) shift ;;
        --) break ;;
        -*)
            [ -n "$value" ] || refuse "there is no option \`$1\`; there are --smp N, --mem MIB, --cpu MODEL, --accel tcg|kvm," \
                "--cmdline STR, --udp-port P, --forward P:G, --timeout S, --gdb and --icount"
            [[ $1 == *=* || $# -ge 2 ]] || refuse "\`$1\` takes a value: $value"
            [[ $1 == *=* ]] || shift
            shift
            ;;
        *) refuse "there is no \`$1\`; the commands are boot, build, test, soak, bench, sonde and new" ;;
        esac
    done
    ;;
esac

export SONDE_INVOKED_FROM=$PWD # relative paths among QEMU's arguments begin there
cd "$here"
cache=${CARGO_TARGET_DIR:-target}/toolchain
if [[ $command == sonde && -e $cache/env ]]; then
    : # All that it takes is the toolchain's name, and it is to answer at once.
elif [[ $command == build || $command == new || $command == sonde ]]; then
    sysroot/scripts/setup.sh "$cache"
elif [[ $command == soak ]]; then
    sysroot/scripts/setup.sh "$cache" qemu c++
else
    sysroot/scripts/setup.sh "$cache" qemu
fi
toolchain=$(sed -n 's/^RUSTUP_TOOLCHAIN=//p' "$cache/env")
[ -z "$toolchain" ] || export RUSTUP_TOOLCHAIN=$toolchain
# `cargo xtask` is silent while it builds itself, which takes a while for the first time.
xtask=${CARGO_TARGET_DIR:-target}/debug/xtask
[ -e "$xtask" ] || cargo build --package xtask
# What booted the machine knows where it is, and whether it is still the newest is not asked: the client's own build is all that cargo
# checks before the client runs.
[ $command != sonde ] || exec "$xtask" "${arguments[@]}"
exec cargo xtask "${arguments[@]}"
