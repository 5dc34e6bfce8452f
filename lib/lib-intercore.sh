# shellcheck shell=bash
# Bash library for shell hooks that use `ic`. Source it, also under `set -euo pipefail`:
#
#   source lib-intercore.sh 2>/dev/null || true
#
# Sourcing sets no shell option and starts no process. No function exits the script, except
# intercore_check_or_die. Each function calls `ic` at most once.
#
# Behaviour if `ic` is missing or its database is broken:
#   state, sentinel, unlock, cleanup   never stop a hook: they allow the action. They are silent
#                                      without `ic` and report a broken database on stderr. The
#                                      functions "_or_legacy" fall back to files.
#   run                                fails: 1 without `ic`, else the exit code of `ic`
#   lock                               falls back to directories that `ic` understands
#
# Variables:
#   INTERCORE_BIN         the program; if it is empty or missing, `ic` or `intercore` from PATH
#   INTERCORE_LOCK_BIN    the program for locks only
#   INTERCORE_DB          the database of the run functions; if exported, of all functions
#   INTERCORE_LOCK_DIR    the directory of the locks
#   INTERCORE_LEGACY_DIR  the directory of the files that intercore_cleanup_stale removes (/tmp)

# shellcheck disable=SC2034  # for callers
INTERCORE_WRAPPER_VERSION="1.1.0"
# The sentinel that all stop hooks of a session share, so that only one of them acts.
# shellcheck disable=SC2034
INTERCORE_STOP_DEDUP_SENTINEL="stop"

INTERCORE_BIN=${INTERCORE_BIN:-}
INTERCORE_LOCK_BIN=${INTERCORE_LOCK_BIN:-}

# ---- Finding and calling ic ----

# Sets INTERCORE_BIN; 1 if ic is not found. Searches again if the program was removed. Starts no
# process.
_intercore_find() {
  if [[ -n ${INTERCORE_BIN:-} ]] && type -P -- "$INTERCORE_BIN" >/dev/null; then return 0; fi
  INTERCORE_BIN=$(type -P ic || type -P intercore) || { INTERCORE_BIN='' && return 1; }
}

# The same for INTERCORE_LOCK_BIN.
_intercore_find_lock() {
  if [[ -n ${INTERCORE_LOCK_BIN:-} ]] && type -P -- "$INTERCORE_LOCK_BIN" >/dev/null; then
    return 0
  fi
  INTERCORE_LOCK_BIN=''
  _intercore_find || return 1
  INTERCORE_LOCK_BIN=$INTERCORE_BIN
}

# Calls ic for the run functions. INTERCORE_DB need not be exported for them.
_intercore_run() {
  _intercore_find || return 1
  if [[ -n ${INTERCORE_DB:-} ]]; then
    INTERCORE_DB=$INTERCORE_DB "$INTERCORE_BIN" "$@"
  else
    "$INTERCORE_BIN" "$@"
  fi
}

# 0 if ic exists and its database is usable. Starts a process, so no other function calls it.
intercore_available() {
  local output
  _intercore_find || return 1
  output=$("$INTERCORE_BIN" health 2>&1 >/dev/null) && return 0
  printf 'intercore: not available: %s\n' "${output:-ic health failed}" >&2
  return 1
}

# ---- Legacy markers ----
#
# A marker replaces a sentinel if there is no database. It is a directory, because mkdir is atomic,
# follows no symlink, and succeeds for one caller only. Files of older hooks count as markers too.
# The mtime of a marker is the time when it last fired. To fire a marker of time T again, a caller
# creates the directory "after-T" in it, which updates the mtime. Again, mkdir succeeds for only
# one caller.

# Prints the mtime of a file; for a symlink, of the symlink itself.
_intercore_mtime() { stat -c %Y -- "$1" 2>/dev/null || stat -f %m -- "$1" 2>/dev/null; }

# Resets the glob options of the caller. REQUIRES: runs in a subshell.
_intercore_plain_globs() {
  set +ef
  unset -v GLOBIGNORE
  shopt -u failglob dotglob nocaseglob nocasematch
  shopt -s nullglob
}

# _intercore_marker_make FILE: 0 = created, 1 = another caller created it. Also 0 if it cannot be
# created, for example because the disk is full: that must not stop a hook.
_intercore_marker_make() {
  mkdir -m 700 -- "$1" 2>/dev/null || [[ ! -e $1 && ! -L $1 ]]
}

# _intercore_marker_check FILE INTERVAL: 0 = fired now, 1 = throttled.
_intercore_marker_check() (
  _intercore_plain_globs
  file=$1 interval=$2
  if mkdir -m 700 -- "$file" 2>/dev/null; then exit 0; fi
  if [[ ! -e $file && ! -L $file ]]; then
    # Another caller is replacing it at this moment, or it cannot be created.
    _intercore_marker_make "$file"
    exit
  fi
  [[ $interval =~ ^[1-9][0-9]{0,17}$ ]] || exit 1
  # Check the kind before the age: the marker may be replaced in between.
  kind='file'
  if [[ -d $file && ! -L $file ]]; then kind='directory'; fi
  last=$(_intercore_mtime "$file") || exit 1
  # Read the clock after the mtime: otherwise a marker that fires in between has a future time.
  printf -v now '%(%s)T' -1
  # A future time means that the clock was set back; treat the marker as old.
  if ((last <= now && now - last < interval)); then exit 1; fi
  if [[ $kind == file ]]; then
    # A file of an older hook, or a symlink. One caller removes it. Its replacement is a directory,
    # which unlink does not remove.
    if unlink -- "$file" 2>/dev/null; then
      _intercore_marker_make "$file"
      exit
    fi
    # Another caller removed it first (1), or it cannot be removed, which must not stop a hook (0).
    [[ -L $file || (-e $file && ! -d $file) ]]
    exit
  fi
  _intercore_marker_make "$file/after-$last" || exit 1
  for old in "$file"/after-*; do
    if [[ $old != "$file/after-$last" ]]; then rmdir -- "$old" 2>/dev/null; fi
  done
  exit 0
)

# Removes markers. Deletes only entries that this library creates.
_intercore_marker_remove() (
  _intercore_plain_globs
  for file in "$@"; do
    if [[ -d $file && ! -L $file ]]; then
      for entry in "$file"/after-*; do rmdir -- "$entry" 2>/dev/null; done
      rmdir -- "$file" 2>/dev/null
    else
      rm -f -- "$file" 2>/dev/null
    fi
  done
  exit 0
)

# _intercore_marker_remove_matching PATTERN: removes the matching markers; their names may contain
# spaces. Needed even if ic succeeded: an old marker would count again if ic became unavailable.
# Starts no process if nothing matches.
_intercore_marker_remove_matching() {
  if [[ -z ${1:-} ]] || ! compgen -G "$1" >/dev/null; then return 0; fi
  _intercore_marker_remove_expanded "$1"
}
_intercore_marker_remove_expanded() (
  _intercore_plain_globs
  IFS=
  # shellcheck disable=SC2086  # expand the pattern, do not split it
  set -- ${1:-}
  _intercore_marker_remove "$@"
)

# ---- State ----

# intercore_state_set KEY SCOPE JSON: always 0; errors go to stderr.
intercore_state_set() {
  _intercore_find || return 0
  # Use a pipe, because bash may write a here-string to a file.
  printf '%s\n' "${3:-}" 2>/dev/null | "$INTERCORE_BIN" state set -- "${1:-}" "${2:-}" >/dev/null ||
    return 0
}

# intercore_state_get KEY SCOPE: prints the value, or nothing. Always 0.
intercore_state_get() {
  _intercore_find || return 0
  "$INTERCORE_BIN" state get -- "${1:-}" "${2:-}" || return 0
}

# intercore_state_get_or_legacy KEY SCOPE FILE: for keys whose writers are being moved to the
# database. Prints the value in the database, or else the content of the file. If the database
# fails, a line on stderr warns that the file may be out of date. Always 0.
intercore_state_get_or_legacy() {
  local value code=0
  if _intercore_find; then
    value=$("$INTERCORE_BIN" state get -- "${1:-}" "${2:-}") || code=$?
    if ((code == 0)); then
      printf '%s\n' "$value"
      return 0
    fi
  fi
  # Ignore files of other users: they can guess names in /tmp.
  [[ -n ${3:-} && -f $3 && ! -L $3 && -O $3 && -r $3 ]] || return 0
  if ((code >= 2)); then
    printf 'intercore: %s of %s comes from the file %s and may be out of date\n' \
      "${1:-}" "${2:-}" "$3" >&2
  fi
  value=$(<"$3") || return 0
  if [[ -n $value ]]; then printf '%s\n' "$value"; fi
}

# intercore_state_delete_all KEY GLOB: deletes the key in every scope; prints "deleted" for each.
# Always 0.
intercore_state_delete_all() {
  local output='' lines='' count
  if _intercore_find; then output=$("$INTERCORE_BIN" state delete-all -- "${1:-}") || output=''; fi
  if [[ $output =~ ^([1-9][0-9]{0,8})" deleted"$ ]]; then
    for ((count = BASH_REMATCH[1]; count > 0; count--)); do lines+=$'deleted\n'; done
    printf '%s' "$lines" || true
  fi
  _intercore_marker_remove_matching "${2:-}"
}

# ---- Sentinels ----

# intercore_sentinel_check NAME SCOPE INTERVAL: 0 = allowed, 1 = throttled, 2 and above = ic failed.
intercore_sentinel_check() {
  _intercore_find || return 0
  "$INTERCORE_BIN" sentinel check --interval="${3:-}" -- "${1:-}" "${2:-}" >/dev/null
}

# intercore_sentinel_check_or_legacy NAME SCOPE INTERVAL FILE: 0 = allowed, 1 = throttled. If ic
# fails, the marker FILE decides.
intercore_sentinel_check_or_legacy() {
  local code=0
  if _intercore_find; then
    "$INTERCORE_BIN" sentinel check --interval="${3:-}" -- "${1:-}" "${2:-}" >/dev/null || code=$?
    if ((code <= 1)); then return "$code"; fi
  fi
  [[ -n ${4:-} ]] || return 0
  _intercore_marker_check "$4" "${3:-0}"
}

# intercore_check_or_die NAME SCOPE INTERVAL FILE: exits the calling script with 0 if throttled.
intercore_check_or_die() {
  intercore_sentinel_check_or_legacy "$@" || exit 0
}

# intercore_sentinel_reset_or_legacy NAME SCOPE GLOB: allows the next check. Always 0.
intercore_sentinel_reset_or_legacy() {
  if _intercore_find; then
    "$INTERCORE_BIN" sentinel reset -- "${1:-}" "${2:-}" >/dev/null || true
  fi
  _intercore_marker_remove_matching "${3:-}"
}

# intercore_sentinel_reset_all NAME GLOB: the same in every scope.
intercore_sentinel_reset_all() {
  if _intercore_find; then "$INTERCORE_BIN" sentinel reset-all -- "${1:-}" >/dev/null || true; fi
  _intercore_marker_remove_matching "${2:-}"
}

# Removes stop markers, and sentinels except those of interval 0, that fired more than an hour ago.
# Always 0.
intercore_cleanup_stale() {
  local file
  if _intercore_find; then "$INTERCORE_BIN" sentinel prune --older-than=1h >/dev/null || true; fi
  if ! compgen -G "${INTERCORE_LEGACY_DIR:-/tmp}/clavain-stop-*" >/dev/null; then return 0; fi
  while IFS= read -r -d '' file; do
    _intercore_marker_remove "$file"
  done < <(find "${INTERCORE_LEGACY_DIR:-/tmp}" -maxdepth 1 -name 'clavain-stop-*' -mmin +60 \
    -user "$UID" -print0 2>/dev/null)
  return 0
}

# ---- Runs: 1 without ic, else its exit code ----

intercore_run_current() { _intercore_run run current --project="${1:-$PWD}"; } # [PROJECT]
intercore_run_phase() { _intercore_run run phase -- "${1:-}"; }                # RUN

# RUN TYPE [NAME] [DISPATCH]: prints the agent's id
intercore_run_agent_add() {
  local flags=(--type="${2:-}")
  if [[ -n ${3:-} ]]; then flags+=(--name="$3"); fi
  if [[ -n ${4:-} ]]; then flags+=(--dispatch-id="$4"); fi
  _intercore_run run agent add "${flags[@]}" -- "${1:-}" 2>/dev/null
}

# RUN PHASE PATH [TYPE]: prints the artifact's id
intercore_run_artifact_add() {
  local flags=(--phase="${2:-}" --path="${3:-}")
  if [[ -n ${4:-} ]]; then flags+=(--type="$4"); fi
  _intercore_run run artifact add "${flags[@]}" -- "${1:-}" 2>/dev/null
}

# RUN PHASE REASON [ACTOR]
intercore_run_skip() {
  local flags=(--reason="${3:-}")
  if [[ -n ${4:-} ]]; then flags+=(--actor="$4"); fi
  _intercore_run run skip "${flags[@]}" -- "${1:-}" "${2:-}"
}

intercore_run_tokens() { _intercore_run --json run tokens -- "${1:-}"; } # RUN
intercore_run_budget() { _intercore_run --json run budget -- "${1:-}"; } # RUN: 1 = exceeded

# RUN PHASE [REASON]
intercore_run_rollback() {
  local flags=(--to-phase="${2:-}")
  if [[ -n ${3:-} ]]; then flags+=(--reason="$3"); fi
  _intercore_run run rollback "${flags[@]}" -- "${1:-}"
}

# RUN PHASE: prints the effect of a rollback without doing it
intercore_run_rollback_dry() {
  _intercore_run run rollback --to-phase="${2:-}" --dry-run -- "${1:-}"
}

# RUN [PHASE]: lists the files of the phases, to revert them by hand
intercore_run_code_rollback() {
  local flags=(--layer=code)
  if [[ -n ${2:-} ]]; then flags+=(--phase="$2"); fi
  _intercore_run --json run rollback "${flags[@]}" -- "${1:-}"
}

# RUN [PRIORITY]: 1 = blocked, or the run has ended
intercore_run_advance() { _intercore_run --json run advance --priority="${2:-0}" -- "${1:-}"; }

# add|update RUN PHASE COMMAND [ARGS] [MODE] [PRIORITY]
_intercore_run_action_write() {
  local flags=(--phase="${3:-}" --command="${4:-}")
  if [[ -n ${5:-} ]]; then flags+=(--args="$5"); fi
  if [[ -n ${6:-} ]]; then flags+=(--mode="$6"); fi
  if [[ -n ${7:-} ]]; then flags+=(--priority="$7"); fi
  _intercore_run --json run action "$1" "${flags[@]}" -- "${2:-}"
}

# RUN PHASE COMMAND [ARGS] [MODE] [PRIORITY], ARGS as JSON: 1 = the action exists already
intercore_run_action_add() { _intercore_run_action_write add "$@"; }
# RUN PHASE COMMAND [ARGS] [MODE] [PRIORITY]: 1 = no such action
intercore_run_action_update() { _intercore_run_action_write update "$@"; }

# RUN [PHASE]
intercore_run_action_list() {
  local flags=()
  if [[ -n ${2:-} ]]; then flags+=(--phase="$2"); fi
  _intercore_run --json run action list ${flags[@]+"${flags[@]}"} -- "${1:-}"
}

# RUN PHASE COMMAND: 1 = no such action
intercore_run_action_delete() {
  _intercore_run --json run action delete --phase="${2:-}" --command="${3:-}" -- "${1:-}"
}

# ---- Locks ----
#
# The owner of a lock is the calling script: $$, also in its subshells. If ic is missing or fails,
# the library creates the same directories with mkdir; both respect the locks of the other.

# Prints the host name up to the first dot. Starts no process if /proc exists.
_intercore_host() {
  local host=''
  if [[ -r /proc/sys/kernel/hostname ]]; then
    IFS= read -r host </proc/sys/kernel/hostname || true
  fi
  if [[ -z $host ]]; then host=$(uname -n 2>/dev/null) || host=localhost; fi
  host=${host%%.*}
  printf '%s' "${host//[^A-Za-z0-9_-]/_}"
}

# _intercore_lock_call WORDS: prints the messages of ic only if ic failed. A lock that another owner
# holds is not a failure.
_intercore_lock_call() {
  local output code=0
  _intercore_find_lock || return 2
  output=$("$INTERCORE_LOCK_BIN" lock "$@" 2>&1 >/dev/null) || code=$?
  if ((code >= 2)) && [[ -n $output ]]; then printf '%s\n' "$output" >&2; fi
  return "$code"
}

# Converts "2s", "500ms", "1.5m" or "1h" to milliseconds. Prints 1000 for any other text.
_intercore_milliseconds() {
  local number unit=1000 fraction
  if [[ ! ${1:-} =~ ^([0-9]{1,9})(\.([0-9]{1,3})[0-9]*)?(ms|s|m|h)$ ]]; then
    if [[ ${1:-} == 0 ]]; then printf 0; else printf 1000; fi
    return 0
  fi
  number=${BASH_REMATCH[1]} fraction=${BASH_REMATCH[3]}000
  case ${BASH_REMATCH[4]} in
    ms) unit=1 ;;
    m) unit=60000 ;;
    h) unit=3600000 ;;
  esac
  printf '%d' "$((10#$number * unit + 10#${fraction:0:3} * unit / 1000))"
}

# Prints the base directory of all locks. 1 if it is not ours, if the path contains a symlink, or if
# another user (except root) created its parent in a world-writable directory.
_intercore_lock_base() {
  local base=${INTERCORE_LOCK_DIR:-/tmp/intercore/locks} parent
  base=${base%/} parent=${base%/*}
  if [[ $base == /* && ! -d $base ]]; then
    (umask 077 && mkdir -p -- "$base") 2>/dev/null || true
  fi
  if [[ $base != /* || ! -d $base || -L $base || -L $parent || ! -O $base ]] ||
    { [[ -k ${parent%/*} && ! -O $parent ]] &&
      [[ $(stat -c %u -- "$parent" 2>/dev/null || stat -f %u -- "$parent" 2>/dev/null) != 0 ]]; }
  then
    printf 'intercore: lock: %s is no directory of yours; set INTERCORE_LOCK_DIR\n' "$base" >&2
    return 1
  fi
  printf '%s' "$base"
}

# Prints the directory of a lock and creates its parent; 1 if that is impossible.
_intercore_lock_directory() {
  local base word
  for word in "${1:-}" "${2:-}"; do
    case $word in
      '' | . | *..* | */* | *\\*)
        printf "intercore: lock: '%s' is no name of a lock\n" "$word" >&2
        return 1
        ;;
    esac
  done
  base=$(_intercore_lock_base) || return 1
  mkdir -m 700 -- "$base/$1" 2>/dev/null || [[ -d $base/$1 && ! -L $base/$1 ]] || return 1
  printf '%s/%s/%s' "$base" "$1" "$2"
}

# Writes owner.json atomically.
_intercore_lock_sign() {
  local directory=$1 host=$2 created stat='' fields start=''
  printf -v created '%(%s)T' -1
  if [[ -r /proc/$$/stat ]]; then IFS= read -r -d '' stat <"/proc/$$/stat" || true; fi
  if [[ -n $stat ]]; then
    IFS=' ' read -r -a fields <<<"${stat##*) }" || true
    if [[ ${fields[19]:-} =~ ^[0-9]+$ ]]; then start=",\"start\":${fields[19]}"; fi
  fi
  (
    umask 077
    printf '{"pid":%d,"host":"%s","owner":"%d:%s","created":%d%s}' \
      "$$" "$host" "$$" "$host" "$created" "$start" >"$directory/owner.json.$$" &&
      mv -f -- "$directory/owner.json.$$" "$directory/owner.json"
  ) 2>/dev/null
}

# Acquires a lock without ic. Arguments: directory, host, milliseconds to wait. 1 = not acquired.
_intercore_lock_by_mkdir() {
  local directory=$1 host=$2 tries=$(($3 / 100 + 1))
  while true; do
    if mkdir -m 700 -- "$directory" 2>/dev/null; then
      if _intercore_lock_sign "$directory" "$host"; then return 0; fi
      # owner.json could not be written. This script created the directory, so it may remove it.
      rm -f -- "$directory/owner.json.$$" "$directory/owner.json" 2>/dev/null || true
      rmdir -- "$directory" 2>/dev/null || true
    fi
    tries=$((tries - 1))
    if ((tries <= 0)); then return 1; fi
    sleep 0.1
  done
}

# 0 if owner.json in the directory names that owner.
_intercore_lock_is_of() {
  local text=''
  [[ -f $1/owner.json && ! -L $1/owner.json ]] || return 1
  text=$(<"$1/owner.json") || return 1
  [[ $text == *"\"owner\":\"$2\""* ]]
}

# intercore_lock NAME SCOPE [TIMEOUT=1s]: 0 = acquired, 1 = another owner holds it.
intercore_lock() {
  local host directory code=0
  host=$(_intercore_host)
  _intercore_lock_call acquire --timeout="${3:-1s}" --owner="$$:$host" -- "${1:-}" "${2:-}" ||
    code=$?
  if ((code <= 1)); then return "$code"; fi
  directory=$(_intercore_lock_directory "${1:-}" "${2:-}") || return 1
  _intercore_lock_by_mkdir "$directory" "$host" "$(_intercore_milliseconds "${3:-1s}")"
}

# intercore_unlock NAME SCOPE: releases a lock of this script. Always 0.
intercore_unlock() {
  local host directory code=0
  host=$(_intercore_host)
  _intercore_lock_call release --owner="$$:$host" -- "${1:-}" "${2:-}" || code=$?
  if ((code <= 1)); then return 0; fi
  directory=$(_intercore_lock_directory "${1:-}" "${2:-}" 2>/dev/null) || return 0
  if _intercore_lock_is_of "$directory" "$$:$host"; then
    rm -f -- "$directory/owner.json" 2>/dev/null || true
    rmdir -- "$directory" 2>/dev/null || true
  fi
  return 0
}

# 0 if nobody holds the lock: it has no owner, or its process on this machine has ended.
_intercore_lock_is_dead() {
  local text='' pid
  if [[ -f $1/owner.json && ! -L $1/owner.json ]]; then text=$(<"$1/owner.json") || return 1; fi
  [[ $text =~ \"pid\":([0-9]+).*\"host\":\"([^\"]*)\" ]] || return 0
  pid=${BASH_REMATCH[1]}
  # An empty host means this machine.
  [[ -z ${BASH_REMATCH[2]} || ${BASH_REMATCH[2]%%.*} == "$2" ]] || return 1
  [[ ! -d /proc/$pid ]] && ! kill -0 "$pid" 2>/dev/null
}

_intercore_lock_clean_by_find() (
  _intercore_plain_globs
  host=$(_intercore_host) seconds=$(($(_intercore_milliseconds "$1") / 1000))
  base=$(_intercore_lock_base) || exit 0
  printf -v now '%(%s)T' -1
  shopt -s dotglob
  for directory in "$base"/*/*/; do
    directory=${directory%/}
    if [[ ${directory##*/} == ..* ]]; then continue; fi # a temporary directory of ic
    if [[ -L $directory || -L ${directory%/*} ]]; then continue; fi
    last=$(_intercore_mtime "$directory") || continue
    if ((now - last < seconds)) || ! _intercore_lock_is_dead "$directory" "$host"; then continue; fi
    rm -f -- "$directory"/owner.json* 2>/dev/null
    rmdir -- "$directory" 2>/dev/null
  done
  exit 0
)

# intercore_lock_clean [AGE=5s]: removes locks whose holder has ended. Always 0.
intercore_lock_clean() {
  local code=0
  _intercore_lock_call clean --older-than="${1:-5s}" || code=$?
  if ((code <= 1)); then return 0; fi
  _intercore_lock_clean_by_find "${1:-5s}" || return 0
}
