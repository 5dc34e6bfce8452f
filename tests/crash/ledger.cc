#include "crash/ledger.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <utility>

namespace interlock::crash {

std::string Ledger::Text(const std::string& key) const {
  const auto found = things_.find(key);
  return found == things_.end() ? "" : found->second.text;
}

bool Ledger::IsCertain(const std::string& key) const { return !unheard_.contains(key); }

void Ledger::Acknowledge(const std::string& key, std::string text) {
  Thing& thing = things_[key];
  thing.text = std::move(text);
  ++thing.changes;
}

void Ledger::LoseSight(const std::string& key, std::string text) {
  things_.try_emplace(key);
  unheard_.insert_or_assign(key, std::move(text));
}

Ledger::Checked Ledger::Check(const Snapshot& snapshot) {
  Checked checked;
  for (auto& [key, expected] : things_) {
    const auto found = snapshot.things.find(key);
    const Thing there = found == snapshot.things.end() ? Thing{} : found->second;
    const auto other = unheard_.find(key);
    const bool as_it_was = there.changes == expected.changes && Fits(expected.text, there.text);
    const bool as_asked = other != unheard_.end() && there.changes == expected.changes + 1 &&
                          Fits(other->second, there.text);
    if (other != unheard_.end()) (as_it_was ? checked.did_not_happen : checked.happened) = 1;
    if (as_it_was || as_asked) {
      expected = there;
      continue;
    }
    checked.lies.push_back(fmt::format(
        "{} must be \"{}\" after {} changes{}, and is \"{}\" after {}", key, expected.text,
        expected.changes, other == unheard_.end() ? "" : " or \"" + other->second + "\"",
        there.text, there.changes));
  }
  if (checked.happened + checked.did_not_happen > 1) {
    checked.lies.push_back("of the write of which nothing was heard only a part is there: " +
                           unheard_.begin()->first);
  }
  unheard_.clear();
  return checked;
}

std::vector<std::string> Strangers(const Snapshot& snapshot,
                                   const std::vector<const Ledger*>& ledgers) {
  std::vector<std::string> found;
  std::int64_t told = 0;
  for (const auto& [key, thing] : snapshot.things) {
    told += thing.changes;
    const bool known = std::ranges::any_of(ledgers, [&key](const Ledger* ledger) {
      const auto own = ledger->things().find(key);
      return own != ledger->things().end() && own->second.changes > 0;
    });
    if (!known) found.push_back(fmt::format("nobody was granted {}: {}", key, thing.text));
  }
  if (told != static_cast<std::int64_t>(snapshot.log.size())) {
    found.push_back(fmt::format("{} events, and {} of them are of something that is there",
                                snapshot.log.size(), told));
  }
  return found;
}

bool Fits(const std::string& words, const std::string& text) {
  const std::size_t sign = words.find(">=");
  if (sign == std::string::npos) return ::fnmatch(words.c_str(), text.c_str(), 0) == 0;
  const std::size_t begin = words.rfind(' ', sign) + 1;
  const std::size_t end = std::min(words.find(' ', sign), words.size());
  const std::string name = words.substr(begin, sign - begin);
  const std::string value = FieldOf(text, name);
  if (value.empty() || std::stoll(value) < std::stoll(words.substr(sign + 2))) return false;
  return Fits(fmt::format("{}{}={}{}", words.substr(0, begin), name, value, words.substr(end)),
              text);
}

std::string FieldOf(const std::string& text, const std::string& name) {
  const std::string padded = " " + text + " ";
  const std::size_t at = padded.find(" " + name + "=");
  if (at == std::string::npos) return "";
  const std::size_t begin = at + name.size() + 2;
  return padded.substr(begin, padded.find(' ', begin) - begin);
}

}  // namespace interlock::crash
