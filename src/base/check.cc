#include "base/check.h"

#include <cstdio>
#include <cstdlib>

namespace interlock {

void CheckFailed(const char* file, int line, const char* expression, std::string_view note) {
  std::fprintf(stderr, "%s:%d: check failed: %s%s%.*s\n", file, line, expression,
               note.empty() ? "" : ": ", static_cast<int>(note.size()), note.data());
  std::abort();
}

}  // namespace interlock
