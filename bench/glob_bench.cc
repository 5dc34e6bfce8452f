// What a comparison of two patterns costs: as people write them, and as an attacker would. The
// limit of every line is the 10 ms after which a request is refused.

#include <algorithm>
#include <ctime>
#include <string>
#include <string_view>

#include "glob/hostile_pattern.h"
#include "glob/overlap.h"
#include "report.h"

namespace interlock::glob {
namespace {

constexpr double kLimitUs = 10'000;

Pattern P(std::string_view text) { return Pattern::Parse(text).value(); }

// What this thread has used of a processor, so that other people's work is not counted.
double CpuMicros() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) / 1e3;
}

// For one call, the best of several rounds.
template <typename F>
double MicrosPerCall(int calls, F call) {
  double best = 1e9;
  for (int round = 0; round < 7; ++round) {
    const double start = CpuMicros();
    for (int i = 0; i < calls; ++i) call();
    best = std::min(best, (CpuMicros() - start) / calls);
  }
  return best;
}

double Compare(int calls, const Pattern& a, const Pattern& b) {
  std::size_t sink = 0;
  const double micros = MicrosPerCall(calls, [&] {
    const auto witness = Overlap(a, b);
    sink += witness.ok() && witness->has_value() ? 1 : 0;
  });
  return sink > static_cast<std::size_t>(calls) * 7 ? 0 : micros;  // uses sink
}

void Print(std::string_view name, double micros) {
  bench::Report({name, micros, "us", "10 ms budget", kLimitUs});
}

void TypicalCases() {
  Print("glob: two paths", Compare(100'000, P("src/http/session.cc"), P("src/http/session.h")));
  Print("glob: path under src/**/*.go",
        Compare(100'000, P("src/http/handler.go"), P("src/**/*.go")));
  Print("glob: src/**/*.go and src/http/*_test.go",
        Compare(10'000, P("src/**/*.go"), P("src/http/*_test.go")));
  Print("glob: parse src/**/*.go", MicrosPerCall(10'000, [] { (void)P("src/**/*.go").text(); }));
}

// How long a whole budget lasts when it is spent on this pair again and again.
double MicrosToExhaust(const Pattern& a, const Pattern& b) {
  return MicrosPerCall(1, [&] {
    Budget budget;
    while (Overlap(a, b, budget).ok()) {
    }
  });
}

void HostileCases() {
  struct Pair {
    std::string_view name;
    std::string a;
    std::string b;
  };
  const std::string run(120, 'a');
  double worst = 0;
  double exhausted = 0;
  const Pair pairs[] = {
      {"stars in 4 KiB", Repeat(run + "*", 32) + "b", Repeat("*" + run, 32) + "c"},
      {"4 KiB of letters, witness", Repeat("a", 4095) + "*", "*" + Repeat("a", 4094) + "b"},
      {"64 branches of *a", Branches(Repeat("*a", 30), "bcdefghi"),
       Branches(Repeat("*a", 30), "jklmnopq")},
      {"64 branches of .*/", Branches(Repeat(".*/", 20), "bcdefghi"),
       Branches(Repeat(".*/", 20), "jklmnopq")},
      {"64 branches of *.*/", Branches(Repeat("*.*/", 14), "bcdefghi") + Repeat("x", 60),
       Branches(Repeat("*?*/", 10), "jklmnopq") + Repeat("x", 60)},
      {"64 branches of [^b]*", Branches(Repeat("[^b]*", 12), "bcdefghi"),
       Branches(Repeat("*[^c]", 12), "jklmnopq")},
      {"64 branches under a long tail", Branches("*", "bcdefghi") + Repeat("*xx", 30),
       Branches("*", "jklmnopq") + Repeat("*xx", 30) + "y"},
  };
  for (const Pair& pair : pairs) {
    const double micros = Compare(3, P(pair.a), P(pair.b));
    Print(std::string("glob: ") + std::string(pair.name), micros);
    worst = std::max(worst, micros);
    exhausted = std::max(exhausted, MicrosToExhaust(P(pair.a), P(pair.b)));
  }
  Print("glob: worst case", worst);
  Print("glob: until the budget is used up", exhausted);
}

}  // namespace
}  // namespace interlock::glob

int main() {
  interlock::glob::TypicalCases();
  interlock::glob::HostileCases();
}
