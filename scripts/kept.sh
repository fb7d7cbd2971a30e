# What the scripts share that find a program for tests, or build it once and keep it. Sourced by them, with `usage`.
# shellcheck shell=bash

say() { echo "${0##*/}: $*" >&2; }
die() {
    say "$@"
    exit 1
}

# Sets `build`, or ends.
take_arguments() {
    build=yes
    case ${1:-} in
    '') ;;
    --find) build=no ;;
    -h | --help)
        usage
        exit
        ;;
    *)
        usage >&2
        exit 2
        ;;
    esac
}

# Where VERSION of PROGRAM is kept.
kept() { echo "${XDG_CACHE_HOME:-${HOME:?}/.cache}/fairway/$1/$2"; }

# Ends if nothing is to be built; else waits for another run that builds in FOLDER.
begin_build() {
    [[ $build == yes ]] || exit 3
    mkdir -p "$1"
    exec 9>"$1/.lock"
    flock 9
}
