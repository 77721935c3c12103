#!/usr/bin/env bash
# Builds Sonde and boots it in QEMU, or tests it, on a machine that has Rust and perhaps nothing else.
# Checks the shape of the arguments, provides what is missing, and hands over to tools/xtask, which does the work.
set -euo pipefail

usage() {
    cat >&2 <<'TEXT'
usage: ./run.sh [boot] [OPTIONS] [-- QEMU ARGS]   build, then boot with the serial line on stdin and stdout
       ./run.sh build                             build only
       ./run.sh test [FILTER]                     build, then pass every test whose suite::name contains FILTER
       ./run.sh soak [MINUTES] [FILTER]           build, then go through random rounds of every soak whose name contains
                                                  FILTER, for MINUTES (10) or until one fails
       ./run.sh bench [--check]                   build, then count the instructions of what is done most; with --check, fail
                                                  if a figure is above its budget
       ./run.sh new NAME [--server]               make the skeleton of a program, or of a server and its client
options:
  --smp N          CPUs (4)
  --mem MIB        memory (256)
  --cpu MODEL      CPU model (max)
  --accel tcg|kvm  emulate (tcg), or use the host's CPU if it can
  --cmdline STR    kernel command line
  --udp-port P     loopback port that reaches the guest's remote shell (7663)
  --timeout S      stop after S seconds, with status 124
  --gdb            wait for gdb, and print the command that starts it
  --icount         deterministic time: one nanosecond an instruction
The environment variable QEMU names another QEMU binary; SONDE_SEED is the seed of the first round of soak.
Status 0 means that the guest powered itself off, or that something was tested and nothing failed.
TEXT
    exit 2
}

command=boot
case ${1-} in
boot | build | test | soak | bench | new)
    command=$1
    shift
    ;;
esac
arguments=("$command" "$@")
case $command in
build) [ $# -eq 0 ] || usage ;;
new) [[ $# -ge 1 && $# -le 2 && $1 != -* && ${2---server} == --server ]] || usage ;;
soak) [ $# -le 2 ] && [[ ${1-1} =~ ^[0-9]+$ && ${2-} != -* ]] || usage ;;
test) [ $# -le 1 ] && [[ ${1-} != -* ]] || usage ;;
bench) [ $# -eq 0 ] || [[ $# -eq 1 && $1 == --check ]] || usage ;;
boot)
    while [ $# -gt 0 ]; do
        case $1 in
        --smp | --mem | --cpu | --accel | --cmdline | --udp-port | --timeout) [ $# -ge 2 ] && shift 2 || usage ;;
        --gdb | --icount) shift ;;
        --) break ;;
        *) usage ;;
        esac
    done
    ;;
esac

export SONDE_INVOKED_FROM=$PWD # relative paths among QEMU's arguments begin there
cd "$(dirname "${BASH_SOURCE[0]}")"
cache=${CARGO_TARGET_DIR:-target}/toolchain
if [[ $command == build || $command == new ]]; then
    sysroot/scripts/setup.sh "$cache"
else
    sysroot/scripts/setup.sh "$cache" qemu
fi
toolchain=$(sed -n 's/^RUSTUP_TOOLCHAIN=//p' "$cache/env")
[ -z "$toolchain" ] || export RUSTUP_TOOLCHAIN=$toolchain
exec cargo xtask "${arguments[@]}"
