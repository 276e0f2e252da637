#!/usr/bin/env bash
# Checks before minutes are spent that this machine can build and run what the caller wants: Go, git, room on the disk, a
# cache folder that can be written, and with argument "gcc" a C compiler. It prints one line and fails, or prints what begins.
set -euo pipefail
cd "$(dirname "$0")/.."

fail() {
  printf 'trellis: %s\n' "$1" >&2
  exit 1
}

[[ $OSTYPE == linux* ]] || fail "Trellis runs its control planes on Linux only"

wanted=$(awk '$1 == "go" {print $2}' go.mod)
command -v git > /dev/null || fail "git is not installed: install git 2.30 or newer"
command -v go > /dev/null || fail "go is not installed: install Go $wanted or newer from https://go.dev/dl"
# Go before 1.21 can't fetch a newer release by itself; with GOTOOLCHAIN=local no Go does.
local_go=$(cd / && GOTOOLCHAIN=local go env GOVERSION 2> /dev/null || true)
local_go=${local_go#go}
oldest=1.21
[ "${GOTOOLCHAIN:-$(cd / && go env GOTOOLCHAIN)}" = local ] && oldest=$wanted
if [ "$(printf '%s\n' "$oldest" "${local_go:-0}" | sort -V | head -n 1)" != "$oldest" ]; then
  fail "Go ${local_go:-of unknown version} is too old: install Go $wanted or newer from https://go.dev/dl"
fi
for need in "$@"; do
  command -v "$need" > /dev/null || fail "$need is not installed: install it, the race detector of the tests needs it"
done

cache=${TRELLIS_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/trellis}
builds=$(go env GOCACHE)
for folder in "$cache" "$builds" "${TMPDIR:-/tmp}"; do
  mkdir -p "$folder" 2> /dev/null && probe=$(mktemp "$folder/.ready-XXXXXX" 2> /dev/null) ||
    fail "folder $folder can't be written: make it writable, or name another one (TRELLIS_CACHE, GOCACHE, TMPDIR)"
  rm -f "$probe"
done
# In MiB. A first build takes about 6 GiB in the caches, later ones little. The temporary folder holds single programs.
room=8192
[ -d "$cache/controlplanes" ] && room=2048
for folder in "$cache" "$builds" "${TMPDIR:-/tmp}"; do
  needed=$room
  [ "$folder" = "${TMPDIR:-/tmp}" ] && needed=2048
  free=$(df -Pm "$folder" | awk 'NR == 2 {print $4}')
  [ "$free" -ge "$needed" ] || fail "the disk of $folder has $free MiB free, $needed are needed: free some, or name another folder (TRELLIS_CACHE, GOCACHE, TMPDIR)"
done
echo "building missing programs (the first time, this takes minutes) ..."
