// A target with a bug in it, which must be found: `./dev fuzz` runs it first, and the replay shows
// that an input that breaks a target fails the test.

#include "base/check.h"
#include "targets.h"

namespace interlock::fuzz {

void FuzzCanary(std::string_view input) {
  // Byte by byte, as a parser would come to it, and as a fuzzer that sees no coverage never does.
  if (input.empty() || input[0] != 'B') return;
  if (input.size() < 2 || input[1] != 'U') return;
  if (input.size() < 3 || input[2] != 'G') return;
  if (input.size() < 4 || input[3] != '!') return;
  IL_CHECK(false, "the planted bug");
}

}  // namespace interlock::fuzz

IL_FUZZ_ENTRY(FuzzCanary);
