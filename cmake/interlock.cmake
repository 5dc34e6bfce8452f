# How targets are made here. One static library per folder of src/, its sources listed by hand; its
# LINKS are the statement of what the folder may use.

# Headers that cost every unit a second or two, read once. Only g++ gets them: the clang builds see
# each unit alone, so a missing #include is found there.
#
# il_headers(name LINKS … HEADERS … OPTIONS …): a target to REUSE_FROM.
file(WRITE ${CMAKE_BINARY_DIR}/empty.cc "")
function(il_headers name)
  cmake_parse_arguments(arg "" "" "LINKS;HEADERS;OPTIONS" ${ARGN})
  add_library(${name} OBJECT ${CMAKE_BINARY_DIR}/empty.cc)
  target_link_libraries(${name} PRIVATE il_options ${arg_LINKS})
  target_compile_options(${name} PRIVATE ${arg_OPTIONS})
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    target_precompile_headers(${name} PRIVATE ${arg_HEADERS})
  endif()
endfunction()

# Asio's have initialisers that need Asio's code, so only what links it may have them.
function(il_use_headers target plain with_asio)
  cmake_parse_arguments(arg "" "" "LINKS" ${ARGN})
  set(headers ${plain})
  if(arg_LINKS MATCHES "il_(asio|service|http|intermute)")
    set(headers ${with_asio})
  endif()
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    target_precompile_headers(${target} REUSE_FROM ${headers})
  endif()
endfunction()

set(plain_headers <algorithm> <chrono> <deque> <functional> <map> <memory> <mutex> <optional> <span>
  <string> <string_view> <unordered_map> <variant> <vector> <fmt/format.h>)
set(asio_headers ${plain_headers} <boost/asio/awaitable.hpp>)
il_headers(il_headers HEADERS ${plain_headers})
il_headers(il_headers_asio HEADERS ${asio_headers})
if(INTERLOCK_TESTS)
  find_package(GTest REQUIRED)
  set(gtest_headers <gmock/gmock.h> <gtest/gtest.h> <thread>)
  il_headers(il_headers_test LINKS GTest::gmock OPTIONS -O0
    HEADERS ${plain_headers} ${gtest_headers})
  il_headers(il_headers_asio_test LINKS GTest::gmock OPTIONS -O0
    HEADERS ${asio_headers} ${gtest_headers})
endif()

# il_library(name SOURCES … LINKS …)
function(il_library name)
  cmake_parse_arguments(arg "" "" "SOURCES;LINKS" ${ARGN})
  add_library(${name} STATIC ${arg_SOURCES})
  target_link_libraries(${name} PUBLIC il_options ${arg_LINKS})
  il_use_headers(${name} il_headers il_headers_asio LINKS ${arg_LINKS})
endfunction()

# il_test(name SOURCES … LINKS … LABEL …): a GoogleTest program, one ctest entry per test. The label
# is the folder's name: `./dev test glob` builds `tests_glob` and runs them. TIMEOUT in seconds, per
# test. PROPERTIES are ctest's own, by name and value, of each test.
function(il_test name)
  cmake_parse_arguments(arg "" "LABEL;TIMEOUT" "SOURCES;LINKS;PROPERTIES" ${ARGN})
  if(NOT INTERLOCK_TESTS)
    return()
  endif()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 300)
  endif()
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE ${arg_LINKS} il_testing GTest::gmock GTest::gtest_main)
  target_compile_options(${name} PRIVATE -O0)  # the code under test keeps its preset's flags
  il_use_headers(${name} il_headers_test il_headers_asio_test LINKS ${arg_LINKS})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  if(NOT TARGET tests_${arg_LABEL})
    add_custom_target(tests_${arg_LABEL})
  endif()
  add_dependencies(tests_${arg_LABEL} ${name})
  gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60
    PROPERTIES LABELS ${arg_LABEL} TIMEOUT ${arg_TIMEOUT} ${arg_PROPERTIES})
endfunction()

# il_recorded_tests(label properties): gives the PROPERTIES with which tests write down what the
# server answers, and keep what the programs wrote, in build/<preset>/<label>-records
# (IL_RECORD_DIR). When all of them have passed, <label>.no_program_wrote_a_secret_down searches
# that for every key and token.
function(il_recorded_tests label properties)
  if(NOT INTERLOCK_TESTS)
    return()
  endif()
  # Debian's own interpreter: the modules of packages.txt are installed for it and no other.
  find_program(DEBIAN_PYTHON python3 PATHS /usr/bin NO_DEFAULT_PATH REQUIRED)
  set(records ${CMAKE_BINARY_DIR}/${label}-records)
  add_test(NAME ${label}.the_records_begin_empty COMMAND ${CMAKE_COMMAND} -E rm -rf ${records})
  add_test(NAME ${label}.no_program_wrote_a_secret_down
    COMMAND ${DEBIAN_PYTHON} -B ${CMAKE_SOURCE_DIR}/tests/testing/check_secrets.py ${records})
  set_tests_properties(${label}.the_records_begin_empty
    PROPERTIES LABELS ${label} TIMEOUT 300 FIXTURES_SETUP ${label}_begin)
  set_tests_properties(${label}.no_program_wrote_a_secret_down
    PROPERTIES LABELS ${label} TIMEOUT 1800 FIXTURES_REQUIRED ${label}_done)
  set(${properties} ENVIRONMENT IL_RECORD_DIR=${records} FIXTURES_REQUIRED ${label}_begin
    FIXTURES_SETUP ${label}_done PARENT_SCOPE)
endfunction()

# il_program(name SOURCES … LINKS …): lands in build/<preset>/bin/.
function(il_program name)
  cmake_parse_arguments(arg "" "" "SOURCES;LINKS" ${ARGN})
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE ${arg_LINKS})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
endfunction()

# Gives a program tcmalloc instead of glibc's malloc: requests are made on one thread and freed on
# another, and coroutine frames are larger than what glibc keeps per thread. What was freed last is
# given first, so a frame mostly lies where the processor still has it in its cache. Linked
# statically: every call would else take a detour. Sanitizers have their own.
function(il_fast_malloc name)
  if(NOT INTERLOCK_SANITIZE)
    find_library(TCMALLOC_STATIC NAMES libtcmalloc_minimal.a REQUIRED)
    target_link_libraries(${name} PRIVATE ${TCMALLOC_STATIC})
    target_compile_definitions(${name} PRIVATE INTERLOCK_TCMALLOC)
  endif()
endfunction()

# il_bench(name SOURCES … LINKS …) and il_fuzz(name SOURCES … LINKS …): only where they are built.
# The targets `benches` and `fuzzers` stand for all of them.
add_custom_target(benches)
add_custom_target(fuzzers)

function(il_bench name)
  cmake_parse_arguments(arg "" "" "SOURCES;LINKS" ${ARGN})
  if(NOT INTERLOCK_BENCH)
    return()
  endif()
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE ${arg_LINKS})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bench)
  add_dependencies(benches ${name})
endfunction()

function(il_fuzz name)
  cmake_parse_arguments(arg "" "" "SOURCES;LINKS" ${ARGN})
  if(NOT INTERLOCK_FUZZ)
    return()
  endif()
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE ${arg_LINKS})
  target_compile_definitions(${name} PRIVATE INTERLOCK_LIBFUZZER)
  target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/fuzz)
  add_dependencies(fuzzers ${name})
endfunction()
