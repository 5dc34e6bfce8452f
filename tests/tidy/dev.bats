#!/usr/bin/env bats
# ./dev in a folder of its own, where every tool it calls is a stand-in that writes down its
# arguments: packages, configuration and the choice of tests are seen without installing a thing.
# shellcheck disable=SC2016  # what a stand-in does is expanded when it runs

setup() {
  tree=$BATS_TEST_TMPDIR/tree
  tools=$BATS_TEST_TMPDIR/tools
  calls=$BATS_TEST_TMPDIR/calls
  mkdir -p "$tree" "$tools"
  : >"$calls"
  cp "$BATS_TEST_DIRNAME/../../dev" "$tree/dev"
  printf '[run]  # a\ncompiler  # why\nlibrary\n[test]\ntester\n[dev]\nlinter\n' \
    >"$tree/packages.txt"
  echo '{}' >"$tree/CMakePresets.json"
  local tool
  for tool in awk bash cat chmod cp curl dirname env find git grep id mkdir nproc paste readlink \
    rm sed seq sleep sort tail touch tr true xargs; do
    ln -s "$(command -v "$tool")" "$tools/$tool"
  done
  stand_in dpkg-query 'for p in compiler library tester linter; do echo "$p installed"; done'
  stand_in apt-get ''
  stand_in apt-cache 'exit 100'
  stand_in sudo 'exec "$@"'
  stand_in cmake 'if [[ $1 == --preset ]]; then mkdir -p "build/$2"; touch "build/$2/build.ninja"
    [[ $* == *TESTS=OFF* ]] && echo INTERLOCK_TESTS:BOOL=OFF >"build/$2/CMakeCache.txt"
    [[ $* == *TESTS=ON* ]] && echo INTERLOCK_TESTS:BOOL=ON >"build/$2/CMakeCache.txt"; fi; true'
  stand_in ctest 'echo "100% tests passed, 0 tests failed out of 3"'
}

# stand_in NAME BODY: a tool that writes down its call, then runs the body.
stand_in() {
  rm -f "$tools/$1"
  printf '#!%s\necho "%s $*" >>"%s"\n%s\n' "$(command -v bash)" "$1" "$calls" "$2" >"$tools/$1"
  chmod +x "$tools/$1"
}

dev() { run env -i HOME="$HOME" PATH="$tools" "$tree/dev" "$@"; }

called() { grep -qxF -- "$1" "$calls"; }
never_called() { if grep -- "$1" "$calls"; then return 1; fi; }

@test "help names every command" {
  dev help
  [ "$status" -eq 0 ]
  local command
  for command in run test build bench fuzz lint format help; do
    [[ $output == *"  $command"* ]]
  done
}

@test "an unknown command, preset or flag is refused with exit code 2" {
  dev frobnicate
  [ "$status" -eq 2 ]
  dev test --preset fast
  [ "$status" -eq 2 ]
  dev test --fast
  [ "$status" -eq 2 ]
  dev test --preset
  [ "$status" -eq 2 ]
  dev run --port 1
  [ "$status" -eq 2 ]
  dev lint --chnaged
  [ "$status" -eq 2 ]
  [ ! -s "$calls" ]
}

@test "nothing is installed when nothing is missing" {
  dev test
  [ "$status" -eq 0 ]
  never_called apt-get
}

@test "only the missing packages of the sections in need are installed" {
  stand_in dpkg-query 'echo "library installed"; echo "tester config-files"; exit 1'
  stand_in id 'echo 0'
  dev test
  [ "$status" -eq 0 ]
  called 'apt-get update'
  called 'apt-get install --yes --no-install-recommends compiler tester'
  [[ $output == *'[1/4] packages … installing compiler tester … ok'* ]]
}

@test "of alternatives the first that apt knows is installed, and only when none of them is" {
  printf '[run]\nplain\nnew-lib | old-lib  # one will do\n[test]\n' >"$tree/packages.txt"
  stand_in id 'echo 0'
  stand_in dpkg-query 'echo "plain installed"; exit 1'
  stand_in apt-cache '[[ $2 == old-lib ]]'
  dev build
  [ "$status" -eq 0 ]
  called 'apt-get install --yes --no-install-recommends old-lib'
  stand_in apt-cache 'exit 0'
  dev build
  called 'apt-get install --yes --no-install-recommends new-lib'
  stand_in apt-cache 'exit 100'
  : >"$calls"
  dev build
  called 'apt-get install --yes --no-install-recommends new-lib'
  [[ $(<"$calls") == *'apt-get update'*'apt-cache show new-lib'* ]] # it asks about today's list
  stand_in dpkg-query 'echo "plain installed"; echo "old-lib installed"; exit 1'
  : >"$calls"
  dev build
  [ "$status" -eq 0 ]
  never_called apt-get
  stand_in dpkg-query 'exit 1'
  rm "$tools/apt-get"
  dev build
  [[ $output == *'plain new-lib or old-lib'* ]]
}

@test "every name of the real list is found in it" {
  cp "$BATS_TEST_DIRNAME/../../packages.txt" "$tree/packages.txt"
  stand_in id 'echo 0'
  stand_in dpkg-query 'exit 1'
  stand_in apt-cache '[[ $2 != *1.83* ]]'
  dev build
  [ "$status" -eq 0 ]
  grep -q '^apt-get install .* g++ cmake .* libboost1.81-dev libboost-json1.81-dev ' "$calls"
  never_called debootstrap
}

@test "test debian13 installs debootstrap alone and goes with nothing else" {
  printf '[run]\ncompiler\n[debian13]\nbootstrapper\n' >"$tree/packages.txt"
  stand_in id 'echo 0'
  stand_in dpkg-query 'exit 1'
  mkdir "$tree/tests"
  printf '#!%s\necho "in Debian 13"\nexit 5\n' "$(command -v bash)" >"$tree/tests/debian13.sh"
  chmod +x "$tree/tests/debian13.sh"
  dev test debian13
  [ "$status" -eq 5 ]
  [ "${lines[-1]}" = 'in Debian 13' ]
  called 'apt-get install --yes --no-install-recommends bootstrapper'
  never_called cmake
  : >"$calls"
  dev test debian13 glob
  [ "$status" -eq 2 ]
  dev test debian13 --preset dev
  [ "$status" -eq 2 ]
  [ ! -s "$calls" ]
}

@test "a user with sudo installs through it" {
  stand_in dpkg-query 'exit 1'
  stand_in id 'echo 1000'
  dev build
  [ "$status" -eq 0 ]
  called 'sudo apt-get update'
  grep -q '^sudo env DEBIAN_FRONTEND=noninteractive apt-get install' "$calls"
}

@test "without root and sudo it says what root must do" {
  stand_in dpkg-query 'exit 1'
  stand_in id 'echo 1000'
  rm "$tools/sudo"
  dev build
  [ "$status" -eq 1 ]
  [[ $output == *'apt-get install --no-install-recommends compiler library tester'* ]]
  never_called apt-get
}

@test "a list of packages that cannot be read ends the command" {
  stand_in dpkg-query 'exit 2'
  dev build
  [ "$status" -eq 1 ]
  [[ $output == *'dpkg-query cannot tell'* ]]
  never_called 'apt-get'
}

@test "without apt it says exactly what to install" {
  stand_in dpkg-query 'exit 1'
  rm "$tools/apt-get"
  dev build
  [ "$status" -eq 1 ]
  [[ $output == *'compiler library tester'* ]]
  rm "$tools/dpkg-query"
  dev build
  [ "$status" -eq 1 ]
  [[ $output == *'compiler library tester'* ]]
  run env -i PATH="$tools" INTERLOCK_PACKAGES=skip "$tree/dev" build
  [ "$status" -eq 0 ]
}

@test "a failed installation shows apt's own words" {
  stand_in dpkg-query 'exit 1'
  stand_in id 'echo 0'
  stand_in apt-get 'echo "E: no such package" >&2; exit 100'
  dev build
  [ "$status" -eq 1 ]
  [[ $output == *'E: no such package'* ]]
}

@test "configuring happens once, and again when the presets change" {
  dev test
  dev test
  [ "$(grep -c '^cmake --preset release -DINTERLOCK_TESTS=ON' "$calls")" -eq 1 ]
  touch -d '+1 hour' "$tree/CMakePresets.json"
  dev test
  [ "$(grep -c '^cmake --preset release -DINTERLOCK_TESTS=ON' "$calls")" -eq 2 ]
}

@test "run configures without tests, test adds them, run keeps them" {
  mkdir -p "$tree/build/release/bin"
  ln -s "$tools/true" "$tree/build/release/bin/intermute"
  dev run
  called 'cmake --preset release -DINTERLOCK_TESTS=OFF'
  dev test
  called 'cmake --preset release -DINTERLOCK_TESTS=ON'
  : >"$calls"
  dev run
  never_called '^cmake --preset'
}

@test "a failed build ends the command before the tests" {
  stand_in cmake 'if [[ $1 == --build ]]; then exit 1; fi; mkdir -p "build/$2"'
  dev test
  [ "$status" -eq 1 ]
  never_called ctest
}

@test "labels choose whole names, and no test at all is a failure" {
  dev test glob db --preset asan
  [ "$status" -eq 0 ]
  grep -q '^cmake --build --preset asan .* --target tests_glob tests_db$' "$calls"
  grep -q '^ctest --preset asan .*--no-tests=error --label-regex ^(glob|db)\$$' "$calls"
}

@test "--cycles reaches the test of crashes, and no other" {
  stand_in ctest 'echo "cycles ${IL_CYCLES:-unset}"'
  dev test crash --cycles=300
  [ "$status" -eq 0 ]
  [[ $output == *'cycles 300'* ]]
  grep -q '^ctest --preset release .*--verbose --label-regex ^(crash)\$$' "$calls"
  dev test crash --cycles 7
  [[ $output == *'cycles 7'* ]]
  dev test crash
  [[ $output == *'cycles unset'* ]]
  : >"$calls"
  dev test --cycles 7
  [ "$status" -eq 2 ]
  dev test glob --cycles 7
  [ "$status" -eq 2 ]
  dev test crash --cycles many
  [ "$status" -eq 2 ]
  dev test crash --cycles
  [ "$status" -eq 2 ]
  [ ! -s "$calls" ]
}

@test "with IL_SECONDS the tests show what they counted" {
  run env -i HOME="$HOME" PATH="$tools" IL_SECONDS=600 "$tree/dev" test sim
  [ "$status" -eq 0 ]
  grep -q '^ctest --preset release .*--verbose --label-regex ^(sim)\$$' "$calls"
  : >"$calls"
  dev test sim
  [ "$status" -eq 0 ]
  never_called '--verbose'
}

@test "ctest has the last word and its exit code is passed on" {
  stand_in ctest 'echo "67% tests passed, 1 tests failed out of 3"; exit 8'
  dev test
  [ "$status" -eq 8 ]
  [ "${lines[-1]}" = '67% tests passed, 1 tests failed out of 3' ]
}

# A server that answers everything, says how it was called, and ends on SIGTERM with code 7.
stand_in_server() {
  mkdir -p "$tree/build/release/bin"
  {
    python3 -c 'import sys; print("#!" + sys.executable)'
    cat
  } >"$tree/build/release/bin/intermute" <<'SERVER'
import http.server, os, signal, sys
print("args", *sys.argv[1:], flush=True)
print("keys", os.environ["INTERMUTE_KEYS_FILE"], flush=True)
signal.signal(signal.SIGTERM, lambda *_: os._exit(7))
class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
    def log_message(self, *_):
        pass
port = int(sys.argv[sys.argv.index("--port") + 1])
try:
    http.server.HTTPServer(("127.0.0.1", port), Answer).serve_forever()
except OSError as error:
    print("port taken:", error, flush=True)
    sys.exit(1)
SERVER
  chmod +x "$tree/build/release/bin/intermute"
  port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0))
print(s.getsockname()[1])')
}

# start_server: ./dev run in the background, until it has announced itself; its pid is $pid.
start_server() {
  env -i PATH="$tools" "$tree/dev" run -- --port "$port" --log-format json \
    >"$BATS_TEST_TMPDIR/out" 2>&1 3>&- &
  pid=$!
  local tries
  for ((tries = 0; tries < 600; ++tries)); do
    if grep -q '^  intermute status' "$BATS_TEST_TMPDIR/out"; then return 0; fi
    sleep 0.1
  done
  cat "$BATS_TEST_TMPDIR/out"
  return 1
}

@test "run passes flags on, announces the URL, and ends with the server's exit code" {
  stand_in_server
  start_server
  local out code=0
  out=$(cat "$BATS_TEST_TMPDIR/out")
  [[ $out == *"args serve --host 127.0.0.1 --db var/intermute.db --port $port --log-format json"* ]]
  [[ $out == *"keys $tree/var/intermute.keys.yaml"* ]]
  [[ $out == *"intermute answers on http://127.0.0.1:$port (Ctrl-C stops it)"* ]]
  [ "$(stat -c %a "$tree/var")" = 700 ]
  kill -TERM "$pid"
  wait "$pid" || code=$?
  [ "$code" -eq 7 ]
}

@test "run ends with commands that two agents collide with" {
  stand_in_server
  start_server
  kill -TERM "$pid"
  wait "$pid" || true
  local commands
  commands=$(sed -n '/^intermute answers on/,$p' "$BATS_TEST_TMPDIR/out" | sed 1d)
  stand_in curl 'echo'
  stand_in intermute ''
  ln -sf "$tools/intermute" "$tree/build/release/bin/intermute"
  run env -i PATH="$tools" bash -euc "$commands"
  [ "$status" -eq 0 ]
  local start="curl -s http://127.0.0.1:$port/api/reservations -d {\"project\":\"demo\","
  called "$start\"agent_id\":\"ann\",\"path_pattern\":\"src/**\",\"exclusive\":true}"
  called "$start\"agent_id\":\"bob\",\"path_pattern\":\"src/http/body.h\",\"exclusive\":true}"
  called 'intermute who src/http/body.h --project demo'
  called 'intermute status'
}

@test "the first build says how long it takes, and ninja counts down" {
  stand_in cmake 'if [[ $1 == --build ]]; then echo "status $NINJA_STATUS"; fi
    if [[ $1 == --preset ]]; then mkdir -p "build/$2"; touch "build/$2/build.ninja"; fi; true'
  stand_in nproc 'echo 1'
  mkdir -p "$tree/build/release/bin"
  ln -s "$tools/true" "$tree/build/release/bin/intermute"
  stand_in ninja 'echo 1.11.1'
  dev run
  [[ $output == *'The first build takes about 10 minutes here'* ]]
  [[ $output == *'status       [%p, %u left, %e s] '* ]]
  stand_in ninja 'echo 1.12.1'
  touch "$tree/build/release/.ninja_log"
  dev run
  [[ $output != *'The first build'* ]]
  [[ $output == *'status       [%p, %u left, %W to go] '* ]]
}

@test "on a port that is taken only the server's own message is shown" {
  local code=0
  stand_in_server
  start_server
  dev run -- --port "$port"
  kill -TERM "$pid"
  wait "$pid" || code=$?
  [ "$code" -eq 7 ]
  [ "$status" -eq 1 ]
  [[ $output == *'port taken'* ]]
  [[ $output != *'answers on'* ]]
}

@test "bench makes a table of the report lines and writes JSON only when asked" {
  mkdir -p "$tree/build/release/bench"
  printf '#!/bin/sh\n%s\n' "echo '{\"name\":\"commit, 64 writers\",\"figure\":900,\"unit\":\"w/s\",\
\"limit\":\"one by one\",\"limit_figure\":100,\"ratio\":9}'" >"$tree/build/release/bench/b"
  chmod +x "$tree/build/release/bench/b"
  stand_in date 'echo 2026-01-02'
  dev bench
  [ "$status" -eq 0 ]
  [[ $output =~ commit,\ 64\ writers\ +900\ w/s\ +one\ by\ one\ +100\ +9 ]]
  [ ! -e "$tree/bench/results" ]
  dev bench --json bench/results/a.json
  [ "$status" -eq 0 ]
  python3 -c 'import json, sys; assert json.load(open(sys.argv[1]))["lines"][0]["ratio"] == 9' \
    "$tree/bench/results/a.json"
}

# A soak that writes down its call and ends with the given code.
stand_in_soak() {
  mkdir -p "$tree/build/release/bench/soak"
  printf '#!%s\necho "soak $*" >>"%s"\nexit %d\n' "$(command -v bash)" "$calls" "$1" \
    >"$tree/build/release/bench/soak/soak"
  chmod +x "$tree/build/release/bench/soak/soak"
  stand_in date 'echo 2026-01-02'
  stand_in gnuplot ''
}

@test "bench soak runs ten minutes or as long as told, and draws only when asked" {
  stand_in_soak 0
  dev bench soak
  [ "$status" -eq 0 ]
  called 'soak 10 build/soak.csv'
  never_called gnuplot
  dev bench soak 0.5 --plot
  [ "$status" -eq 0 ]
  called 'soak 0.5 build/soak.csv'
  grep -q 'gnuplot .*build/soak.png.* bench/soak.gnuplot' "$calls"
  dev bench soak long
  [ "$status" -eq 2 ]
}

@test "bench soak fails when something grew, after its picture is drawn" {
  stand_in_soak 1
  dev bench soak --plot
  [ "$status" -eq 1 ]
  grep -q 'gnuplot ' "$calls"
}

@test "bench does not run the soak among the others" {
  stand_in_soak 0
  dev bench
  [ "$status" -eq 0 ]
  never_called 'soak 10'
}

@test "a benchmark or fuzz target that fails, fails the command" {
  mkdir -p "$tree/build/release/bench" "$tree/build/fuzz/fuzz"
  printf '#!/bin/sh\nexit 3\n' >"$tree/build/release/bench/b"
  cp "$tree/build/release/bench/b" "$tree/build/fuzz/fuzz/f"
  chmod +x "$tree/build/release/bench/b" "$tree/build/fuzz/fuzz/f"
  dev bench
  [ "$status" -eq 1 ]
  fuzz_target canary_fuzz "$canary_finds"
  dev fuzz f 1
  [ "$status" -eq 1 ]
  [[ $output == *'build/crashes/f/'* ]]
}

# fuzz_target NAME BODY
fuzz_target() {
  mkdir -p "$tree/build/fuzz/fuzz"
  printf '#!/bin/sh\necho "%s $*" >>"%s"\n%s\n' "$1" "$calls" "$2" >"$tree/build/fuzz/fuzz/$1"
  chmod +x "$tree/build/fuzz/fuzz/$1"
}
canary_finds='echo "check failed: the planted bug"; : >build/crashes/canary_fuzz/crash-1; exit 77'

@test "fuzz runs each target once, with what the tree knows, after one that must fail" {
  fuzz_target canary_fuzz "$canary_finds"
  fuzz_target a_fuzz ''
  fuzz_target b_fuzz ''
  mkdir -p "$tree/fuzz/corpus/a_fuzz"
  dev fuzz 3
  [ "$status" -eq 0 ]
  [ "$(grep -c '^canary_fuzz ' "$calls")" -eq 1 ]
  [ "$(grep -c '^a_fuzz .*-max_total_time=3 .* build/corpus/a_fuzz fuzz/corpus/a_fuzz$' \
    "$calls")" -eq 1 ]
  [ "$(grep -c '^b_fuzz .* build/corpus/b_fuzz$' "$calls")" -eq 1 ]
  : >"$calls"
  dev fuzz a_fuzz
  [ "$status" -eq 0 ]
  [ "$(grep -c '^a_fuzz .*-max_total_time=60 ' "$calls")" -eq 1 ]
  never_called '^b_fuzz'
}

@test "fuzz fails when the target that must fail does not, or fails at something else" {
  fuzz_target a_fuzz ''
  fuzz_target canary_fuzz ''
  dev fuzz 1
  [ "$status" -eq 1 ]
  [[ $output == *'cannot be trusted'* ]]
  fuzz_target canary_fuzz 'echo "no such library"; exit 1'
  dev fuzz 1
  [ "$status" -eq 1 ]
  [[ $output == *'not at its planted bug'* ]]
  never_called '^a_fuzz'
}

# A repository with a.cc and b.h (included by b_user.cc) on origin/main, and stand-ins for the
# linters.
lint_repository() {
  stand_in clang-format-19 ''
  stand_in clang-tidy-19 ''
  stand_in shellcheck ''
  export GIT_CONFIG_GLOBAL=/dev/null
  cd "$tree" || return 1
  git init -q -b main .
  git config user.email a@example.org
  git config user.name a
  mkdir -p src/x
  touch src/x/a.cc src/x/b.h
  echo '#include "x/b.h"' >src/x/b_user.cc
  printf 'build/\n' >.gitignore
  git add -A
  GIT_COMMITTER_DATE='2026-01-01T00:00:00Z' git commit -q -m start
  git update-ref refs/remotes/origin/main HEAD
}

@test "lint hands every unit, header and script to its tool" {
  lint_repository
  dev lint
  [ "$status" -eq 0 ]
  called 'clang-format-19 --dry-run -Werror src/x/a.cc src/x/b.h src/x/b_user.cc'
  called 'shellcheck dev'
  called 'clang-tidy-19 -p build/lint --quiet src/x/a.cc'
  called 'clang-tidy-19 -p build/lint --quiet src/x/b_user.cc'
}

@test "lint --changed takes what differs from origin/main, and a user of a changed header" {
  lint_repository
  git checkout -q -b topic
  echo 'int b();' >>src/x/b.h
  printf '\n  // A note.\n' >>src/x/a.cc
  git commit -q -a -m change
  touch src/x/new.cc src/x/new_test.cc
  dev lint --changed
  [ "$status" -eq 0 ]
  called 'clang-format-19 --dry-run -Werror src/x/a.cc src/x/b.h src/x/new.cc src/x/new_test.cc'
  never_called 'clang-tidy-19 -p build/lint --quiet src/x/new_test.cc'
  called 'clang-tidy-19 -p build/lint --quiet src/x/b_user.cc'
  called 'clang-tidy-19 -p build/lint --quiet src/x/new.cc'
  never_called 'clang-tidy-19 -p build/lint --quiet src/x/a.cc'
}

@test "lint --changed on main takes the commits within three hours of HEAD" {
  lint_repository
  echo >>src/x/a.cc
  GIT_COMMITTER_DATE='2026-01-03T00:00:00Z' git commit -q -a -m first
  touch src/x/late.cc
  git add -A
  GIT_COMMITTER_DATE='2026-01-03T02:00:00Z' git commit -q -m second
  git update-ref refs/remotes/origin/main HEAD
  dev lint --changed
  [ "$status" -eq 0 ]
  called 'clang-format-19 --dry-run -Werror src/x/a.cc src/x/late.cc'
  never_called 'b_user.cc'
}

@test "each linter can fail the lint" {
  lint_repository
  local tool
  for tool in clang-format-19 clang-tidy-19 shellcheck; do
    stand_in "$tool" 'exit 1'
    dev lint
    [ "$status" -eq 1 ]
    [[ $output == *'lint failed'* ]]
    stand_in "$tool" ''
  done
}
