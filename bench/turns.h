#pragma once

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <fstream>
#include <functional>
#include <numeric>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "report.h"

namespace interlock::bench {

// Processor time since boot that this machine wanted and its host gave to others ("steal" in
// proc(5)), of all processors together; 0 where there is no host.
inline double StolenSeconds() {
  std::ifstream file("/proc/stat");
  std::string word;
  double user = 0, nice = 0, system = 0, idle = 0, iowait = 0, irq = 0, softirq = 0, steal = 0;
  file >> word >> user >> nice >> system >> idle >> iowait >> irq >> softirq >> steal;
  return steal / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

inline double Middle(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

// A comparison in turns: each measures a figure and its limit side by side, since what a machine
// has to give changes within seconds. Time that the host gives to others hits those harder who need
// several processors at once, so a turn in which much was stolen compares badly; it is taken again.
//
// Which turns count is decided by what was stolen alone, never by what they measured, and what all
// of them gave is reported as well.
class Turns {
 public:
  static constexpr double kQuiet = 0.05;  // the share of all processors' time that may be stolen

  // Calls `turn` until `wanted` turns were quiet, or three times as many were not enough. The
  // `wanted` with the least stolen count.
  Turns(std::size_t wanted, const std::function<void()>& turn) {
    std::size_t quiet = 0;
    while (quiet < wanted && stolen_.size() < 3 * wanted) {
      const double stolen = StolenSeconds();
      const Duration begin = clock_.Monotonic();
      turn();
      const std::chrono::duration<double> took = clock_.Monotonic() - begin;
      const double processors = std::max(1U, std::thread::hardware_concurrency());
      stolen_.push_back((StolenSeconds() - stolen) / (took.count() * processors));
      if (stolen_.back() <= kQuiet) ++quiet;
    }
    counted_.resize(stolen_.size());
    std::iota(counted_.begin(), counted_.end(), std::size_t{0});
    std::ranges::stable_sort(counted_, {}, [this](std::size_t i) { return stolen_[i]; });
    counted_.resize(wanted);
  }

  // Of one value for every turn in order, those of the turns that count.
  std::vector<double> Counted(std::span<const double> of_all) const {
    std::vector<double> values;
    for (const std::size_t turn : counted_) values.push_back(of_all[turn]);
    return values;
  }

  // Reports rates that stood side by side, one of each for every turn in order: the turn with the
  // middle ratio of those that count, and of all. Between them the fastest of each side: what else
  // runs on a machine makes turns slower, so these are near to what it gives when it is left alone,
  // though they did not stand side by side.
  void ReportRates(const std::string& name, std::span<const double> figures, std::string_view unit,
                   std::string_view limit, std::span<const double> limits) const {
    const std::vector<double> counted = Counted(figures);
    const std::vector<double> counted_limits = Counted(limits);
    ReportMiddle(name, counted, unit, limit, counted_limits);
    Report({name + ", fastest turn of each", std::ranges::max(counted), unit, limit,
            std::ranges::max(counted_limits)});
    ReportMiddle(name + ", all turns", figures, unit, limit, limits);
  }

  // Reports how many turns it took, and the share of time that was stolen in the middle one.
  void ReportStolen(const std::string& name) const {
    const auto quiet = std::ranges::count_if(stolen_, [](double part) { return part <= kQuiet; });
    Report({name + ", turns", static_cast<double>(stolen_.size()), "turns", "quiet ones",
            static_cast<double>(quiet)});
    Report({name + ", stolen in turns that count", 100 * Middle(Counted(stolen_)), "%", "in all",
            100 * Middle(stolen_)});
  }

 private:
  static void ReportMiddle(std::string_view name, std::span<const double> figures,
                           std::string_view unit, std::string_view limit,
                           std::span<const double> limits) {
    std::vector<std::pair<double, std::size_t>> by_ratio;
    for (std::size_t i = 0; i < figures.size(); ++i) {
      by_ratio.emplace_back(figures[i] / limits[i], i);
    }
    std::ranges::sort(by_ratio);
    const std::size_t middle = by_ratio[by_ratio.size() / 2].second;
    Report({name, figures[middle], unit, limit, limits[middle]});
  }

  SystemClock clock_;
  std::vector<double> stolen_;        // the share of each turn
  std::vector<std::size_t> counted_;  // turns, the quietest first
};

}  // namespace interlock::bench
