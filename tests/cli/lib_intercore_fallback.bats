#!/usr/bin/env bats
# lib/lib-intercore.sh where ic is missing or fails: markers and locks, also beside those of ic.
# shellcheck disable=SC2016,SC2154  # a hook expands it when it runs; bats sets it, or the helpers

bats_require_minimum_version 1.5.0
load lib_intercore_helpers.sh

# ---- Markers, when there is no database ----

check() { hook 'intercore_sentinel_check_or_legacy n s "$1" "$OLD/n m"' "$1"; }

@test "a marker is a directory, and fires once when the interval is 0" {
  check 0
  expect 0 ""
  [ -d "$OLD/n m" ]
  [ "$(stat -c %a "$OLD/n m")" = 700 ]
  check 0
  expect 1 ""
  age "$OLD/n m" 100000
  check 0
  expect 1 ""
}

@test "a marker fires again when the interval is over, and not before" {
  check 60
  expect 0 ""
  check 60
  expect 1 ""
  age "$OLD/n m" 50
  check 60
  expect 1 ""
  local round
  for round in 1 2 3; do
    age "$OLD/n m" $((60 * (round + 1)))
    check 60
    expect 0 ""
    check 60
    expect 1 ""
  done
  [ "$(find "$OLD/n m" -mindepth 1 | wc -l)" -eq 1 ] # and they do not pile up
}

@test "the file of an older hook counts as a marker" {
  : >"$OLD/n m"
  check 0
  expect 1 ""
  check 60
  expect 1 ""
  age "$OLD/n m" 61
  check 60
  expect 0 ""
  [ -d "$OLD/n m" ]
}

@test "a link in place of a marker is never followed" {
  mkdir "$OLD/theirs"
  local target
  for target in "$OLD/theirs/file" "$OLD/theirs"; do
    ln -s "$target" "$OLD/n m"
    check 0
    expect 1 ""
    age "$OLD/n m" 100
    check 60
    expect 0 ""
    [ -z "$(ls "$OLD/theirs")" ]
    [ ! -L "$OLD/n m" ]
    rmdir "$OLD/n m"
  done
}

@test "a marker that cannot be made does not stop the hook" {
  hook 'intercore_sentinel_check_or_legacy n s 0 "$OLD/no/such/place"'
  expect 0 ""
  silent
  local long
  printf -v long '%0300d' 0
  hook 'intercore_sentinel_check_or_legacy n s "$2" "$OLD/$1"' "$long" 0 # no name is that long
  expect 0 ""
  silent
  hook 'intercore_sentinel_check_or_legacy n s "$2" "$OLD/$1"' "$long" 60
  expect 0 ""
  silent
}

# refuses PROGRAM: it fails whatever it is asked, as on a full disk or on what others own.
refuses() {
  printf '#!/bin/bash\nexit 1\n' >"$bin/$1"
  chmod +x "$bin/$1"
}

@test "on a full disk a marker goes on to throttle and stops no hook when its time is over" {
  mkdir "$OLD/n m"
  refuses mkdir
  check 0
  expect 1 ""
  check 60
  expect 1 ""
  age "$OLD/n m" 61
  check 60 # cannot be fired again
  expect 0 ""
  rmdir "$OLD/n m"
  check 60 # cannot be made
  expect 0 ""
  : >"$OLD/n m"
  age "$OLD/n m" 61
  check 60 # can be removed, and then not made
  expect 0 ""
  [ ! -e "$OLD/n m" ]
  silent
}

@test "a marker of somebody else that is old and cannot be removed stops no hook" {
  refuses unlink
  local kind
  for kind in file link; do
    if [[ $kind == file ]]; then : >"$OLD/n m"; else ln -s nowhere "$OLD/n m"; fi
    check 60
    expect 1 ""
    age "$OLD/n m" 61
    check 60
    expect 0 ""
    silent
    check 0 # once is once
    expect 1 ""
    rm "$OLD/n m"
  done
}

@test "of many who ask at once one goes on, whether the marker is new, old or of an older hook" {
  local kind
  for kind in new old file new old file; do
    rm -rf "$OLD/n m"
    case $kind in
      old) mkdir "$OLD/n m" && age "$OLD/n m" 100 ;;
      file) : >"$OLD/n m" && age "$OLD/n m" 100 ;;
    esac
    hook 'for i in {1..16}; do
        { intercore_sentinel_check_or_legacy n s 60 "$OLD/n m" && echo won; } &
      done
      wait'
    expect 0 "won"
  done
}

@test "a reset removes the markers that match, whatever their names and the options are" {
  local options
  for options in ":" "set -f" "shopt -s failglob" "shopt -s nullglob" "IFS=n" \
    "shopt -s nocaseglob nocasematch" "shopt -s dotglob" 'GLOBIGNORE="*n*"'; do
    : >"$OLD/N 4" # another name
    mkdir -p "$OLD/n 1" "$OLD/n 1/after-5" "$OLD/n-2"
    : >"$OLD/n 3"
    : >"$OLD/other"
    mkdir -p "$OLD/n-full" && : >"$OLD/n-full/theirs"
    hook "$options"'; intercore_sentinel_reset_or_legacy n s "$OLD/n*"
      intercore_sentinel_reset_all n "$OLD/none*"; intercore_state_delete_all k ""'
    expect 0 ""
    silent
    [ "$(LC_ALL=C ls "$OLD")" = $'N 4\nn-full\nother' ] # what somebody put into a directory stays
  done
}

@test "without ic old stop markers are cleared away, and no others" {
  mkdir "$OLD/clavain-stop-old" "$OLD/clavain-stop-old/after-3" "$OLD/clavain-stop-new" \
    "$OLD/clavain-other"
  : >"$OLD/clavain-stop-file"
  age "$OLD/clavain-stop-old" 4000
  age "$OLD/clavain-stop-file" 4000
  age "$OLD/clavain-other" 4000
  hook 'shopt -s failglob; intercore_cleanup_stale'
  expect 0 ""
  silent
  [ "$(ls "$OLD")" = $'clavain-other\nclavain-stop-new' ]
}

# ---- Locks ----

@test "a lock is held by the script until it is given back" {
  with_ic
  hook 'intercore_lock n s; ic lock list | cut -f1-3
    (intercore_lock n s 0) || echo "held $?"
    intercore_unlock n s; ic lock list'
  local owner='[0-9]+:'
  [[ $output =~ ^n[[:blank:]]s[[:blank:]]$owner$(hostname -s)[[:space:]]"held 1"$ ]]
  silent
}

@test "nobody gives back the lock of another" {
  with_ic
  "$REAL_IC" lock acquire n s --owner="$$:$(hostname -s)"
  hook 'intercore_unlock n s; intercore_lock n s 50ms || echo "held $?"'
  expect 0 "held 1"
  silent
}

# An ic that fails, whatever it is asked.
with_failing_ic() {
  printf '#!/bin/bash\necho "$*" >>"$CALLS"\necho "ic: broken" >&2\nexit 2\n' >"$bin/ic"
  chmod +x "$bin/ic"
}

@test "when ic fails its locks are made by mkdir, and ic understands them" {
  with_failing_ic
  hook 'intercore_lock n s
    "$REAL_IC" lock list --json |
      json "[v[0][\"name\"], v[0][\"scope\"], v[0][\"alive\"], v[0][\"pid\"] == $$]"
    "$REAL_IC" lock acquire n s --owner=other --timeout=0 2>/dev/null || echo "ic $?"
    stat -c "%a %n" "$INTERCORE_LOCK_DIR/n/s" "$INTERCORE_LOCK_DIR/n/s/owner.json" |
      sed "s|$INTERCORE_LOCK_DIR/||"
    json "list(v)" <"$INTERCORE_LOCK_DIR/n/s/owner.json"
    (intercore_lock n s 0 2>/dev/null) || echo "mkdir $?"
    intercore_unlock n s
    "$REAL_IC" lock acquire n s --owner=other && echo free'
  expect 0 '["n","s",true,true]
ic 1
700 n/s
600 n/s/owner.json
["pid","host","owner","created","start"]
mkdir 1
free'
  [[ $stderr == *"ic: broken"* ]]
}

@test "a lock that cannot be signed is not left behind" {
  with_failing_ic
  refuses mv # as on a full disk: there is a file, but not the one that counts
  hook 'intercore_lock n s 50ms 2>/dev/null || echo "not got $?"; ls -A "$INTERCORE_LOCK_DIR/n"'
  expect 0 "not got 1"
}

@test "a lock without ic is signed the same whatever IFS is" {
  local ifs
  for ifs in $' \t\n' $'\n\t' "" ":" 0123456789 "abcdefghijklmnopqrstuvwxyz"; do
    hook 'stat=$(</proc/$$/stat); read -r -a fields <<<"${stat##*) }"; before=$IFS; IFS=$1
      intercore_lock n s 1500ms
      IFS=$before
      json "[v[\"start\"] == ${fields[19]}, v[\"pid\"] == $$, v[\"host\"] == \"$(hostname -s)\"]" \
        <"$INTERCORE_LOCK_DIR/n/s/owner.json"
      IFS=$1
      intercore_unlock n s
      [[ ! -e $INTERCORE_LOCK_DIR/n/s ]] && echo free' "$ifs"
    expect 0 $'[true,true,true]\nfree'
    silent
  done
}

@test "a lock that ic made is respected by mkdir, and given back without ic" {
  with_ic
  hook 'intercore_lock n s; INTERCORE_LOCK_BIN="" INTERCORE_BIN=""; PATH=/usr/bin:/bin
    (intercore_lock n s 200ms) || echo "held $?"
    intercore_unlock n s; ls "$INTERCORE_LOCK_DIR/n"'
  expect 0 "held 1"
}

@test "the lock of a process that is gone looks gone to ic also when mkdir made it" {
  hook 'intercore_lock n s' # without ic; the script ends
  expect 0 ""
  [ "$("$REAL_IC" lock clean --older-than=0)" = "1 cleaned" ]
}

@test "without ic a lock excludes many" {
  echo 0 >count
  hook 'for i in {1..12}; do
      bash -euc "source \"\$LIB\"; intercore_lock n s 60s; mkdir inside; read -r n <count
        echo \$((n + 1)) >count; rmdir inside; intercore_unlock n s" &
    done
    wait; cat count'
  expect 0 12
  silent
}

@test "names that lead out of the place of locks are refused without ic, too" {
  local name
  for name in "" . .. ../x a/b 'a\b' a..b; do
    hook 'intercore_lock "$1" s' "$name"
    expect 1 ""
    loud
    hook 'intercore_lock n "$1"' "$name"
    expect 1 ""
    hook 'intercore_unlock "$1" s' "$name"
    expect 0 ""
  done
  [ ! -e "$INTERCORE_LOCK_DIR/s" ]
}

@test "a place of locks behind a link is refused without ic, too" {
  mkdir theirs
  ln -s "$PWD/theirs" "$INTERCORE_LOCK_DIR"
  hook 'intercore_lock n s'
  expect 1 ""
  [[ $stderr == *INTERCORE_LOCK_DIR* ]]
  [ -z "$(ls theirs)" ]
}

@test "locks of processes that are gone are cleaned, with ic and without" {
  local way
  for way in with without; do
    if [[ $way == with ]]; then with_ic; else rm -f "$bin/ic"; fi
    mkdir -p "$INTERCORE_LOCK_DIR"/n/{dead,.dotted,nohost,alive,elsewhere,ghost,young,OTHER}
    sleep 60 &
    local alive=$!
    owner dead 2147483646 "$(hostname -s)"
    owner .dotted 2147483646 "$(hostname -s)"
    owner nohost 2147483646 ""
    owner OTHER 2147483646 "$(hostname -s)"
    : >"$INTERCORE_LOCK_DIR/n/OTHER/OWNER.JSON.kept" # no lock has that
    age "$INTERCORE_LOCK_DIR/n/OTHER" 100
    owner alive "$alive" "$(hostname -s)"
    owner elsewhere 2147483646 elsewhere
    age "$INTERCORE_LOCK_DIR/n/ghost" 100
    hook 'shopt -s failglob nocaseglob; intercore_lock_clean
      LC_ALL=C ls -A "$INTERCORE_LOCK_DIR/n"'
    kill "$alive"
    expect 0 $'OTHER\nalive\nelsewhere\nyoung'
    [ -e "$INTERCORE_LOCK_DIR/n/OTHER/OWNER.JSON.kept" ]
    silent
  done
}

# owner SCOPE PID HOST: a lock that was made long ago.
owner() {
  printf '{"pid":%d,"host":"%s","owner":"%d:%s","created":1700000000}' "$2" "$3" "$2" "$3" \
    >"$INTERCORE_LOCK_DIR/n/$1/owner.json"
  age "$INTERCORE_LOCK_DIR/n/$1" 100
}

@test "times are read as ic reads them" {
  hook 'for t in 0 1s 500ms 1.5s 2m 1h 0.25s 1.0005s soon ""; do
      printf "%s " "$(_intercore_milliseconds "$t")"
    done'
  expect 0 "0 1000 500 1500 120000 3600000 250 1000 1000 1000 "
}
