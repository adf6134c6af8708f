#!/bin/sh
# Makes src/generated.rs anew from ../include/*.h. Needs libclang (LIBCLANG_PATH if it is not found).
#   sys/abi/regenerate.sh           overwrite the checked-in bindings
#   sys/abi/regenerate.sh --check   only compare; fails if they are out of date
set -eu
cd "$(dirname "$0")"
new=$(mktemp)
trap 'rm -f "$new"' EXIT
env -u UTOFU_INCLUDE UTOFU_ABI_COPY="$new" cargo check --quiet -p utofu-sys --features bindgen
{
    echo '// Made by bindgen from sys/include; do not edit: run sys/abi/regenerate.sh instead.'
    echo
    cat "$new"
} | rustfmt --edition 2024 >"$new.fmt"
mv "$new.fmt" "$new"
if [ "${1-}" = --check ]; then
    diff -u src/generated.rs "$new"
else
    cp "$new" src/generated.rs
fi
