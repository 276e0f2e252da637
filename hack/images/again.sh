#!/usr/bin/env bash
# Builds the images of the commit in another folder, with an empty build cache, and compares the digests.
set -euo pipefail
digests=$(realpath "$1")
version=$2
platforms=$3
if [ -n "$(git status --porcelain)" ]; then
  echo "the checkout has changes: commit them first" >&2
  exit 1
fi
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
git clone --quiet "$(git rev-parse --show-toplevel)" "$folder/checkout"
git -C "$folder/checkout" checkout --quiet --detach "$(git rev-parse HEAD)"
cd "$folder/checkout"
GOCACHE="$folder/cache" go run ./hack/images -out "$folder/images" -version "$version" -platforms "$platforms" >"$folder/log"
diff "$digests" "$folder/images/digests.txt"
echo "the same digests from another folder and an empty build cache"
