# Writes OUTPUT, the definition of BuildInfo() in src/base/version.h, and touches it only when it
# changes, so that only a new commit makes the programs link again.
# Run as: cmake -DSOURCE_DIR=… -DOUTPUT=… -DVERSION=… -P version.cmake
function(git_output result)
  execute_process(COMMAND git -C ${SOURCE_DIR} ${ARGN} OUTPUT_VARIABLE text ERROR_QUIET
    OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE failed)
  if(failed)
    set(text "")
  endif()
  set(${result} "${text}" PARENT_SCOPE)
endfunction()

git_output(commit rev-parse --short=12 HEAD)
git_output(commit_time show -s --format=%cI HEAD)
git_output(changes status --porcelain --untracked-files=no)
set(dirty false)
if(changes)
  set(dirty true)
endif()
set(content "#include \"base/version.h\"

namespace interlock {

const Build& BuildInfo() {
  static constexpr Build kBuild = {
      .version = \"${VERSION}\",
      .commit = \"${commit}\",
      .commit_time = \"${commit_time}\",
      .dirty = ${dirty},
  };
  return kBuild;
}

}  // namespace interlock
")
set(old "")
if(EXISTS ${OUTPUT})
  file(READ ${OUTPUT} old)
endif()
if(NOT old STREQUAL content)
  file(WRITE ${OUTPUT} "${content}")
endif()
