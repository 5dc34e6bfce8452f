# shellcheck shell=bash
# shellcheck disable=SC2016,SC2154  # a hook expands it when it runs; bats sets it
# What the tests of lib/lib-intercore.sh share. IC_DIR is where ic was built.

setup() {
  export LIB=$BATS_TEST_DIRNAME/../../lib/lib-intercore.sh
  export REAL_IC=$IC_DIR/ic
  export CALLS=$BATS_TEST_TMPDIR/calls
  export OLD=$BATS_TEST_TMPDIR/old # where legacy files lie
  export INTERCORE_LOCK_DIR=$BATS_TEST_TMPDIR/locks INTERCORE_LEGACY_DIR=$OLD
  unset INTERCORE_BIN INTERCORE_LOCK_BIN INTERCORE_DB
  bin=$BATS_TEST_TMPDIR/bin
  mkdir -p "$bin" "$OLD" "$BATS_TEST_TMPDIR/work"
  # json EXPRESSION: of the value v on stdin, in Python.
  printf '%s\n' '#!/usr/bin/python3' 'import json, sys' 'v = json.load(sys.stdin)' \
    'out = eval(sys.argv[1])' \
    'print(out if isinstance(out, str) else json.dumps(out, separators=(",", ":")))' >"$bin/json"
  chmod +x "$bin/json"
  PATH=$bin:/usr/bin:/bin
  cd "$BATS_TEST_TMPDIR/work" || return 1
  : >"$CALLS"
}

# The real program under a name, each call written down.
with_program() {
  printf '#!/bin/bash\necho "$*" >>"$CALLS"\nexec "$REAL_IC" "$@"\n' >"$bin/$1"
  chmod +x "$bin/$1"
}
with_ic() { with_program ic; }

with_database() {
  with_ic
  "$REAL_IC" init >/dev/null
}

with_broken_database() {
  with_ic
  mkdir .clavain
  echo "this is no database" >.clavain/intercore.db
}

# A hook: the library and a script, under the strictest options.
hook() { run --separate-stderr bash -euo pipefail -c 'source "$LIB"; '"$1" hook "${@:2}"; }

# expect CODE OUTPUT: of the last hook.
expect() {
  if [[ $status -ne $1 || $output != "$2" ]]; then
    printf 'exit code %s, expected %s\nstdout: %s\nstderr: %s\n' \
      "$status" "$1" "$output" "${stderr:-}"
    return 1
  fi
}
silent() { [[ -z ${stderr:-} ]] || { printf 'on stderr: %s\n' "$stderr" && return 1; }; }
loud() { [[ -n ${stderr:-} ]] || { echo "nothing on stderr" && return 1; }; }

calls() { grep -c '' "$CALLS" || true; }

age() { touch -h -d "-$2 seconds" "$1"; } # FILE SECONDS
