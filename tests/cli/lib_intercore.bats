#!/usr/bin/env bats
# lib/lib-intercore.sh with the real ic, sourced as hooks source it. IC_DIR is where ic was built.
# shellcheck disable=SC2016,SC2154  # a hook expands it when it runs; bats sets it, or the helpers

bats_require_minimum_version 1.5.0

readonly ALL_FUNCTIONS="intercore_available intercore_state_set intercore_state_get
  intercore_state_get_or_legacy intercore_state_delete_all intercore_sentinel_check
  intercore_sentinel_check_or_legacy intercore_check_or_die intercore_sentinel_reset_or_legacy
  intercore_sentinel_reset_all intercore_cleanup_stale intercore_run_current intercore_run_phase
  intercore_run_agent_add intercore_run_artifact_add intercore_run_skip intercore_run_tokens
  intercore_run_budget intercore_run_rollback intercore_run_rollback_dry
  intercore_run_code_rollback intercore_run_advance intercore_run_action_add
  intercore_run_action_list intercore_run_action_update intercore_run_action_delete
  intercore_lock intercore_unlock intercore_lock_clean"

load lib_intercore_helpers.sh

# ---- Being sourced ----

@test "sourcing prints nothing, calls nothing and leaves every option as it was" {
  with_database
  run --separate-stderr bash -c '
    before=$(set -o; shopt; trap; umask)
    source "$LIB"
    after=$(set -o; shopt; trap; umask)
    [[ $before == "$after" ]]'
  expect 0 ""
  silent
  [ "$(calls)" -eq 0 ]
}

@test "no function changes an option, whatever it was" {
  with_database
  local options
  for options in "set -euo pipefail; shopt -s nullglob dotglob" "set -f; shopt -s failglob"; do
    run --separate-stderr bash -c "$options"'
      source "$LIB"
      state() { set -o; shopt; trap; umask; declare -p IFS; pwd; }
      before=$(state)
      for f in '"${ALL_FUNCTIONS//$'\n'/ }"'; do
        [[ $f != intercore_check_or_die ]] || continue
        # It may say no, but it must have run: 126 and above is a shell that could not.
        $f a b 0 "$OLD/x" >/dev/null 2>&1 || (($? < 126)) || echo "$f: $?"
        INTERCORE_BIN=/bin/false $f a b 0 "$OLD/y*" >/dev/null 2>&1 || (($? < 126)) || echo "$f"
      done
      after=$(state)
      [[ $before == "$after" ]] && echo same'
    expect 0 "same"
  done
}

@test "every name it makes begins with intercore" {
  run bash -c '
    before=$(compgen -v; compgen -A function)
    source "$LIB"
    intercore_lock a b || echo "not locked"
    intercore_sentinel_check_or_legacy a b 5 "$OLD/x" || echo "not allowed"
    comm -13 <(sort <<<"$before") <(sort <<<"$(compgen -v; compgen -A function)") |
      grep -viE "^_?intercore_|^before$|^BASH_|^PIPESTATUS$|^_$"'
  expect 1 ""
}

@test "it tells its version and the sentinel that stop hooks share, and can be sourced twice" {
  hook 'source "$LIB"; echo "$INTERCORE_WRAPPER_VERSION $INTERCORE_STOP_DEDUP_SENTINEL"
    : "$INTERCORE_BIN$INTERCORE_LOCK_BIN"'
  expect 0 "1.1.0 stop"
}

@test "every function survives being called with nothing" {
  with_database
  hook 'for f in '"${ALL_FUNCTIONS//$'\n'/ }"'; do
      if [[ $f != intercore_check_or_die ]]; then $f >/dev/null 2>&1 || (($? < 126)); fi
    done
    echo alive'
  expect 0 "alive"
}

@test "the program has both names where it is built, and the library lies beside it" {
  cmp "$LIB" "$IC_DIR/lib-intercore.sh"
  [ "$("$IC_DIR/intercore" version)" = "$("$IC_DIR/ic" version)" ]
}

@test "both names of the program are found, ic first, and one that is gone is looked for again" {
  with_program intercore
  hook 'intercore_lock a b && echo "${INTERCORE_BIN##*/}"'
  expect 0 "intercore"
  with_ic
  hook 'intercore_lock c b && echo "${INTERCORE_BIN##*/}"'
  expect 0 "ic"
  hook 'INTERCORE_BIN=$OLD/gone; intercore_lock d b && echo "${INTERCORE_BIN##*/}"'
  expect 0 "ic"
  hook 'ic() { echo a function; }; intercore_lock e b && echo "${INTERCORE_BIN##*/}"'
  expect 0 "ic"
}

# ---- Without ic, and with a broken database ----

@test "without ic nothing stops a hook but runs, and nothing is said" {
  local line
  while read -r line; do
    hook 'code=0; '"${line#* }"' || code=$?; echo "$code"'
    expect 0 "${line%% *}"
    silent
  done <<'TABLE'
1 intercore_available
0 intercore_state_set k s "{}"
0 intercore_state_get k s
0 intercore_state_get_or_legacy k s "$OLD/none"
0 intercore_state_delete_all k "$OLD/k-*"
0 intercore_sentinel_check n s 0
0 intercore_sentinel_check n s 0
0 intercore_sentinel_check_or_legacy n s 0 "$OLD/n"
1 intercore_sentinel_check_or_legacy n s 0 "$OLD/n"
0 intercore_sentinel_reset_or_legacy n s "$OLD/n*"
0 intercore_sentinel_check_or_legacy n s 0 "$OLD/n"
0 intercore_sentinel_reset_all n "$OLD/n*"
0 intercore_cleanup_stale
1 intercore_run_current
1 intercore_run_phase r
1 intercore_run_agent_add r claude
1 intercore_run_artifact_add r p f
1 intercore_run_skip r p why
1 intercore_run_tokens r
1 intercore_run_budget r
1 intercore_run_rollback r p
1 intercore_run_rollback_dry r p
1 intercore_run_code_rollback r
1 intercore_run_advance r
1 intercore_run_action_add r p c
1 intercore_run_action_list r
1 intercore_run_action_update r p c
1 intercore_run_action_delete r p c
0 intercore_lock n s
0 intercore_unlock n s
0 intercore_lock_clean
TABLE
}

@test "a broken database is told of, and stops no hook but runs" {
  with_broken_database
  local line
  while read -r line; do
    hook 'code=0; '"${line#* }"' || code=$?; echo "$code"'
    expect 0 "${line%% *}"
    loud
  done <<'TABLE'
1 intercore_available
0 intercore_state_set k s "{}"
0 intercore_state_get k s
0 intercore_state_delete_all k "$OLD/k-*"
2 intercore_sentinel_check n s 0
0 intercore_sentinel_check_or_legacy n s 0 "$OLD/n"
1 intercore_sentinel_check_or_legacy n s 0 "$OLD/n"
0 intercore_sentinel_reset_or_legacy n s "$OLD/n*"
0 intercore_sentinel_check_or_legacy n s 0 "$OLD/n"
0 intercore_sentinel_reset_all n "$OLD/n*"
0 intercore_sentinel_check_or_legacy n s 0 "$OLD/n"
0 intercore_cleanup_stale
2 intercore_run_current
2 intercore_run_phase r
2 intercore_run_skip r p why
2 intercore_run_tokens r
2 intercore_run_budget r
2 intercore_run_rollback r p
2 intercore_run_advance r
2 intercore_run_action_list r
TABLE
}

@test "adding agents and artifacts to a broken database fails without a word" {
  with_broken_database
  hook 'code=0; intercore_run_agent_add r claude || code=$?; echo "$code"'
  expect 0 2
  silent
  hook 'code=0; intercore_run_artifact_add r p f || code=$?; echo "$code"'
  expect 0 2
  silent
}

@test "locks need no database, however broken" {
  with_broken_database
  hook 'intercore_lock n s && [[ -f $INTERCORE_LOCK_DIR/n/s/owner.json ]] && intercore_unlock n s'
  expect 0 ""
  silent
}

# ---- State ----

@test "state is kept and found in silence" {
  with_database
  hook 'intercore_state_set dispatch s1 "{\"phase\": \"a b\"}"
    intercore_state_set dispatch --odd- "[1]"
    intercore_state_get dispatch s1
    intercore_state_get dispatch --odd-
    intercore_state_get dispatch nowhere'
  expect 0 $'{"phase": "a b"}\n[1]'
  silent
}

@test "a large value goes through, and no file is written for it" {
  with_database
  hook 'value=$(printf "%0200000d" 0 | tr 0 7); value="[\"${value:0:90000}\",\"${value:0:90000}\"]"
    TMPDIR=$OLD intercore_state_set big s "$value"
    [[ $(intercore_state_get big s) == "$value" ]]'
  expect 0 ""
  [ -z "$(ls "$OLD")" ]
}

@test "a value that is refused is told of and does not stop the hook" {
  with_database
  hook 'intercore_state_set k s "{not json"; echo on'
  expect 0 "on"
  loud
}

@test "all scopes of a key are forgotten at once" {
  with_database
  : >"$OLD/k-1"
  hook 'intercore_state_set k s1 1; intercore_state_set k s2 2; intercore_state_set other s1 3
    intercore_state_delete_all k "$OLD/k-*"
    intercore_state_get k s1; intercore_state_get k s2; intercore_state_get other s1
    intercore_state_delete_all k "$OLD/k-*"'
  expect 0 $'deleted\ndeleted\n3' # a line for each, and none when there are none
  silent
  [ ! -e "$OLD/k-1" ] # nor is it found again in a file
}

@test "while a key moves, the database wins over the file" {
  with_database
  echo '{"from":"file"}' >"$OLD/value.json"
  hook 'intercore_state_get_or_legacy k s "$OLD/value.json"'
  expect 0 '{"from":"file"}'
  silent
  hook 'intercore_state_set k s "{\"from\":\"database\"}"
    intercore_state_get_or_legacy k s "$OLD/value.json"'
  expect 0 '{"from":"database"}'
  silent
  hook 'intercore_state_get_or_legacy none s "$OLD/none.json"'
  expect 0 ""
  silent
}

@test "a file that stands in for a broken database is called out of date" {
  with_broken_database
  echo '{"from":"file"}' >"$OLD/value.json"
  hook 'intercore_state_get_or_legacy k s "$OLD/value.json"'
  expect 0 '{"from":"file"}'
  [[ $stderr == *"may be out of date"* ]]
}

@test "without ic the file is all there is" {
  echo '{"from":"file"}' >"$OLD/value.json"
  hook 'intercore_state_get_or_legacy k s "$OLD/value.json"'
  expect 0 '{"from":"file"}'
  silent
}

@test "a link in place of the file is not followed" {
  echo secret >"$OLD/secret"
  ln -s "$OLD/secret" "$OLD/value.json"
  hook 'intercore_state_get_or_legacy k s "$OLD/value.json"'
  expect 0 ""
}

# ---- Sentinels ----

@test "a sentinel allows, throttles and is reset" {
  with_database
  hook 'code=0
    intercore_sentinel_check n s 0 || code=$?; printf "%s " "$code"; code=0
    intercore_sentinel_check n s 0 || code=$?; printf "%s " "$code"; code=0
    intercore_sentinel_reset_or_legacy n s "$OLD/n*"
    intercore_sentinel_check n s 300 || code=$?; printf "%s " "$code"; code=0
    intercore_sentinel_check n s 300 || code=$?; printf "%s " "$code"; code=0
    intercore_sentinel_check n s soon || code=$?; printf "%s" "$code"'
  expect 0 "0 1 0 1 3"
}

@test "the database decides and no marker is made as long as it can" {
  with_database
  hook 'intercore_sentinel_check_or_legacy n s 0 "$OLD/n" && echo first
    intercore_sentinel_check_or_legacy n s 0 "$OLD/n" || echo "then $?"'
  expect 0 $'first\nthen 1'
  silent
  [ -z "$(ls "$OLD")" ]
  : >"$OLD/m"
  hook 'intercore_sentinel_check_or_legacy m s 0 "$OLD/m"' # an old file says nothing
  expect 0 ""
}

@test "markers from a time without ic do not outlive what ic is told" {
  hook 'intercore_sentinel_check_or_legacy n s 0 "$OLD/n-s"
    intercore_sentinel_check_or_legacy m s 0 "$OLD/m-s"
    intercore_sentinel_check_or_legacy stop s 0 "$OLD/clavain-stop-s"'
  : >"$OLD/k-file"
  age "$OLD/clavain-stop-s" 4000
  with_database
  hook 'intercore_sentinel_reset_or_legacy n s "$OLD/n-*"; intercore_sentinel_reset_all m "$OLD/m-*"
    intercore_state_delete_all k "$OLD/k-*"; intercore_cleanup_stale'
  expect 0 ""
  silent
  [ -z "$(ls "$OLD")" ]
}

@test "all scopes of a sentinel are reset at once" {
  with_database
  hook 'intercore_sentinel_check n s1 0; intercore_sentinel_check n s2 0
    intercore_sentinel_reset_all n "$OLD/n*"
    intercore_sentinel_check n s1 0; intercore_sentinel_check n s2 0; echo both'
  expect 0 "both"
  silent
}

@test "check_or_die ends the script that is throttled, with 0" {
  with_database
  hook 'intercore_check_or_die n s 0 "$OLD/n"; echo acted'
  expect 0 "acted"
  hook 'intercore_check_or_die n s 0 "$OLD/n"; echo acted'
  expect 0 ""
  silent
}

@test "check_or_die does the same without ic" {
  hook 'intercore_check_or_die n s 0 "$OLD/n"; echo acted'
  expect 0 "acted"
  hook 'intercore_check_or_die n s 0 "$OLD/n"; echo acted'
  expect 0 ""
}

@test "cleaning up leaves what is to happen once" {
  with_database
  hook 'intercore_sentinel_check once s 0; intercore_sentinel_check often s 1'
  sqlite "UPDATE sentinels SET last_fired = last_fired - 100000"
  hook 'intercore_cleanup_stale; ic sentinel list | cut -f1'
  expect 0 "once"
  silent
}

# SQL on the database, as another program would run it.
sqlite() {
  python3 - "$1" <<'PYTHON'
import sqlite3, sys
file = sqlite3.connect(".clavain/intercore.db")
file.execute(sys.argv[1])
file.commit()
PYTHON
}

# ---- Runs ----

with_run() {
  with_database
  run_id=$("$REAL_IC" run create --goal=test --bead=b1)
  export run_id
  : >"$CALLS"
}

@test "the current run, its phase, and no run at all" {
  with_run
  hook '[[ $(intercore_run_current) == "$run_id" ]]
    [[ $(intercore_run_current "$PWD") == "$run_id" ]]
    intercore_run_phase "$run_id"; intercore_run_current /elsewhere || echo "none $?"'
  expect 0 $'brainstorm\nnone 1'
}

@test "agents and artifacts are added, and nothing is said of a run that is not there" {
  with_run
  echo text >file.md
  hook 'intercore_run_agent_add "$run_id" claude "a name"; intercore_run_agent_add "$run_id" codex
    intercore_run_artifact_add "$run_id" brainstorm file.md
    intercore_run_artifact_add "$run_id" brainstorm other.md plan'
  [ "$status" -eq 0 ]
  [ "${#lines[@]}" -eq 4 ]
  [[ $("$REAL_IC" run agent list "$run_id") == *$'claude\tactive\ta name'* ]]
  [[ $("$REAL_IC" run artifact list "$run_id") == *$'\tbrainstorm\tplan\tother.md'* ]]
  hook 'intercore_run_agent_add nosuch claude'
  expect 1 ""
  silent
}

@test "a run is advanced, skipped and rolled back" {
  with_run
  hook 'intercore_run_skip "$run_id" strategized "not needed" me >/dev/null
    intercore_run_advance "$run_id" | json "v[\"to_phase\"]"
    intercore_run_advance "$run_id" 4 | json "v[\"to_phase\"]"
    intercore_run_rollback_dry "$run_id" brainstorm | json "v[\"dry_run\"]"
    intercore_run_phase "$run_id"
    intercore_run_rollback "$run_id" brainstorm "again" | json "v[\"reason\"]"
    intercore_run_phase "$run_id"
    intercore_run_code_rollback "$run_id" | json "len(v)"
    intercore_run_code_rollback "$run_id" planned | json "len(v)"'
  expect 0 $'brainstorm-reviewed\nplanned\ntrue\nplanned\nagain\nbrainstorm\n0\n0'
  hook 'intercore_run_skip "$run_id" nosuch "why"'
  [ "$status" -eq 1 ]
  loud
}

@test "tokens and budget of a run are JSON" {
  with_run
  hook 'intercore_run_tokens "$run_id" | json "v[\"total_tokens\"]"
    intercore_run_budget "$run_id" | json "v[\"message\"]"'
  expect 0 $'0\nno budget set'
}

@test "actions of a phase are added, listed, changed and deleted" {
  with_run
  hook 'row="[v[0][k] for k in (\"command\", \"mode\", \"priority\", \"args\")]"
    intercore_run_action_add "$run_id" planned /work "[\"a b\"]" auto 5 | json "\"id\" in v"
    intercore_run_action_add "$run_id" planned /work 2>/dev/null || echo "again $?"
    intercore_run_action_list "$run_id" planned | json "$row"
    intercore_run_action_update "$run_id" planned /work "[]" interactive 1 >/dev/null
    intercore_run_action_list "$run_id" | json "$row"
    intercore_run_action_delete "$run_id" planned /work >/dev/null
    intercore_run_action_delete "$run_id" planned /work 2>/dev/null || echo "gone $?"
    intercore_run_action_list "$run_id" | json "len(v)"'
  expect 0 $'true\nagain 1\n["/work","auto",5,["a b"]]\n["/work","interactive",1,[]]\ngone 1\n0'
}

@test "the database of a run may be named by a variable that is not exported" {
  with_run
  mkdir ../elsewhere
  hook 'project=$PWD; cd ../elsewhere; INTERCORE_DB=$project/.clavain/intercore.db
    intercore_run_current "$project"; intercore_run_phase "$run_id"'
  expect 0 "$run_id"$'\nbrainstorm'
}

# ---- What a call costs ----

@test "every function calls ic once, and none asks for its health first" {
  with_run
  local line
  while read -r line; do
    : >"$CALLS"
    hook "$line"' || (($? < 126))'
    [ "$status" -eq 0 ]
    if [[ $(calls) -ne 1 ]]; then
      printf '%s called ic %s times:\n%s\n' "$line" "$(calls)" "$(<"$CALLS")"
      return 1
    fi
    if [[ $line != intercore_available* ]] && grep -q health "$CALLS"; then return 1; fi
  done <<'TABLE'
intercore_available
intercore_state_set k s "{}"
intercore_state_get k s
intercore_state_get_or_legacy k s "$OLD/none"
intercore_state_get_or_legacy none s "$OLD/none"
intercore_state_delete_all k "$OLD/k-*"
intercore_sentinel_check n s 0
intercore_sentinel_check_or_legacy n s 0 "$OLD/n"
intercore_check_or_die m s 0 "$OLD/n"
intercore_sentinel_reset_or_legacy n s "$OLD/n*"
intercore_sentinel_reset_all n "$OLD/n*"
intercore_cleanup_stale
intercore_run_current
intercore_run_phase "$run_id"
intercore_run_agent_add "$run_id" claude
intercore_run_artifact_add "$run_id" p f
intercore_run_skip "$run_id" strategized why
intercore_run_tokens "$run_id"
intercore_run_budget "$run_id"
intercore_run_rollback "$run_id" p
intercore_run_rollback_dry "$run_id" p
intercore_run_code_rollback "$run_id"
intercore_run_action_add "$run_id" p c
intercore_run_action_list "$run_id"
intercore_run_action_update "$run_id" p c
intercore_run_action_delete "$run_id" p c
intercore_run_advance "$run_id"
intercore_lock n s
intercore_unlock n s
intercore_lock_clean
TABLE
}

@test "this file knows every function of the library" {
  hook 'compgen -A function intercore_ | sort'
  expect 0 "$(tr -s ' \n' '\n' <<<"$ALL_FUNCTIONS" | sort)"
}

# ---- docs/leaving-temp-files.md ----

# Runs each example of the document, and holds what it prints against the text block after it.
@test "the examples of docs/leaving-temp-files.md do what they say" {
  rm -f "$bin"/*
  ln -s "$REAL_IC" "$bin/ic"
  export SESSION=s1 TMPDIR=$OLD
  local line kind='' script='' expected='' count=0 directory
  while IFS= read -r line; do
    case $line in
      '```bash') kind=bash script='' ;;
      '```text') kind=text expected='' ;;
      '```')
        if [[ $kind == text ]]; then
          count=$((count + 1))
          directory=$BATS_TEST_TMPDIR/example-$count
          mkdir "$directory"
          cd "$directory"
          "$REAL_IC" init >/dev/null
          run --separate-stderr bash -euo pipefail -c "$script"
          expect 0 "${expected%$'\n'}" || { printf 'the example:\n%s\n' "$script" && return 1; }
          silent
          script=
        fi
        kind=
        ;;
      *)
        if [[ $kind == bash ]]; then script+=$line$'\n'; fi
        if [[ $kind == text ]]; then expected+=$line$'\n'; fi
        ;;
    esac
  done <"$BATS_TEST_DIRNAME/../../docs/leaving-temp-files.md"
  [ "$count" -ge 8 ]
  [ "$count" -eq "$(grep -c '^```bash$' "$BATS_TEST_DIRNAME/../../docs/leaving-temp-files.md")" ]
}
