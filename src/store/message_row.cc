#include "store/message_row.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "json/write.h"

namespace interlock::store {
namespace {

using domain::Addresses;

// A list of addresses, under its name. In the order of the text.
struct NamedList {
  std::string_view key;  // quoted, with the colon
  std::vector<std::string> Addresses::* list;
};
constexpr std::array<NamedList, 3> kLists = {{
    {R"("to":)", &Addresses::to},
    {R"("cc":)", &Addresses::cc},
    {R"("bcc":)", &Addresses::bcc},
}};
constexpr std::string_view kDeniedKey = R"("denied":)";

void AppendMembers(std::string& out, const Addresses& addresses) {
  for (const auto& [key, member] : kLists) {
    const std::vector<std::string>& list = addresses.*member;
    if (list.empty()) continue;
    if (out.back() != '{') out += ',';
    out += key;
    char before = '[';
    for (const std::string& address : list) {
      out += before;
      json::AppendQuoted(out, address);
      before = ',';
    }
    out += ']';
  }
}

void AppendList(std::string& out, std::string_view key, const std::vector<std::string_view>& list) {
  if (list.empty()) return;
  if (out.back() != '{') out += ',';
  out += key;
  char before = '[';
  for (const std::string_view text : list) {
    out += before;
    json::AppendQuoted(out, text);
    before = ',';
  }
  out += ']';
}

constexpr std::string_view kKnownKey = R"("known":)";
constexpr std::string_view kElsewhereKey = R"("elsewhere":)";
constexpr std::string_view kFromKey = R"("from":)";
constexpr std::string_view kLeftKey = R"("left":)";

void AppendResolution(std::string& out, const domain::Resolution& resolution) {
  std::vector<std::string_view> known;
  known.reserve(resolution.known.size() * 3);
  for (const domain::KnownRecipient& one : resolution.known) {
    const std::string_view to = one.to == one.agent_id ? std::string_view() : one.to;
    known.insert(known.end(), {to, one.agent_id, one.name});
  }
  AppendList(out, kKnownKey, known);
  std::vector<std::string_view> elsewhere;
  for (const domain::UnknownRecipient& one : resolution.elsewhere) {
    elsewhere.insert(elsewhere.end(), {one.to, one.project.value()});
  }
  AppendList(out, kElsewhereKey, elsewhere);
  if (!resolution.from.empty()) AppendList(out, kFromKey, {resolution.from});
  AppendList(out, kLeftKey, {resolution.left.begin(), resolution.left.end()});
}

// Reads what AppendResolution() wrote. False when a list has another length.
bool ReadResolution(std::vector<std::string> known, std::vector<std::string> elsewhere,
                    std::vector<std::string> from, domain::Resolution& into) {
  if (known.size() % 3 != 0 || elsewhere.size() % 2 != 0 || from.size() > 1) return false;
  into.known.reserve(known.size() / 3);
  for (std::size_t i = 0; i < known.size(); i += 3) {
    std::string to = known[i].empty() ? known[i + 1] : std::move(known[i]);
    into.known.push_back({std::move(to), std::move(known[i + 1]), std::move(known[i + 2])});
  }
  for (std::size_t i = 0; i < elsewhere.size(); i += 2) {
    into.elsewhere.push_back({std::move(elsewhere[i]), std::move(elsewhere[i + 1])});
  }
  if (!from.empty()) into.from = std::move(from.front());
  return true;
}

// Walks over the text of RecipientsText(). Each Take…() is false when something else stands there.
class Reader {
 public:
  explicit Reader(std::string_view text) : rest_(text) {}

  bool TakeAll(Recipients& into) {
    if (!TakeOpening() || !TakeLists(into.received)) return false;
    if (TakeKey(kDeniedKey)) {
      if (!(TakeOpening() && TakeLists(into.denied) && TakeClosing())) return false;
      place_ = Take(",") ? Place::kNextKey : Place::kEnd;
    }
    std::array<std::vector<std::string>, 4> texts;
    const std::array<std::string_view, 4> keys = {kKnownKey, kElsewhereKey, kFromKey, kLeftKey};
    for (std::size_t i = 0; i < keys.size(); ++i) {
      if (!TakeKey(keys[i])) continue;
      if (!TakeList(texts[i])) return false;
      place_ = Take(",") ? Place::kNextKey : Place::kEnd;
    }
    into.resolution.left = std::move(texts[3]);
    return TakeClosing() && rest_.empty() &&
           ReadResolution(std::move(texts[0]), std::move(texts[1]), std::move(texts[2]),
                          into.resolution);
  }

 private:
  bool Take(std::string_view text) {
    if (!rest_.starts_with(text)) return false;
    rest_.remove_prefix(text.size());
    return true;
  }

  bool TakeOpening() {
    place_ = Place::kFirstKey;
    return Take("{");
  }
  bool TakeKey(std::string_view key) { return place_ != Place::kEnd && Take(key); }
  bool TakeClosing() {
    if (place_ == Place::kNextKey) return false;
    place_ = Place::kEnd;
    return Take("}");
  }

  bool TakeLists(Addresses& into) {
    for (const auto& [key, member] : kLists) {
      if (!TakeKey(key)) continue;
      if (!TakeList(into.*member)) return false;
      place_ = Take(",") ? Place::kNextKey : Place::kEnd;
    }
    return true;
  }

  bool TakeList(std::vector<std::string>& into) {
    if (!Take("[")) return false;
    do {
      if (!Take("\"") || !TakeString(into.emplace_back())) return false;
    } while (Take(","));
    return Take("]");
  }

  bool TakeString(std::string& into) {
    while (true) {
      const std::size_t special = rest_.find_first_of("\"\\");
      if (special == std::string_view::npos) return false;
      into += rest_.substr(0, special);
      const bool end = rest_[special] == '"';
      rest_.remove_prefix(special + 1);
      if (end) return true;
      if (!TakeEscaped(into)) return false;
    }
  }

  // What json::AppendQuoted() writes after a backslash.
  bool TakeEscaped(std::string& into) {
    static constexpr std::string_view kShort = R"("\nrt)";
    static constexpr std::string_view kMeaning = "\"\\\n\r\t";
    if (rest_.empty()) return false;
    if (const std::size_t at = kShort.find(rest_.front()); at != std::string_view::npos) {
      into += kMeaning[at];
      rest_.remove_prefix(1);
      return true;
    }
    static constexpr std::string_view kHex = "0123456789abcdef";
    if (!Take("u00") || rest_.size() < 2) return false;
    const std::size_t high = kHex.find(rest_[0]);
    const std::size_t low = kHex.find(rest_[1]);
    if (high > 7 || low > 15) return false;
    into += static_cast<char>(high * 16 + low);
    rest_.remove_prefix(2);
    return true;
  }

  // What may stand here in an object.
  enum class Place : std::uint8_t { kFirstKey, kNextKey, kEnd };

  std::string_view rest_;
  Place place_ = Place::kEnd;
};

}  // namespace

std::string RecipientsText(const Recipients& recipients) {
  std::string text = "{";
  AppendMembers(text, recipients.received);
  if (!recipients.denied.empty()) {
    if (text.size() > 1) text += ',';
    text.append(kDeniedKey).append("{");
    AppendMembers(text, recipients.denied);
    text += '}';
  }
  AppendResolution(text, recipients.resolution);
  text += '}';
  return text;
}

Result<Recipients> ReadRecipients(std::string_view text) {
  Recipients recipients;
  if (Reader(text).TakeAll(recipients)) return recipients;
  return Error(Errc::kCorrupt,
               "The recipients of a message cannot be read: " + std::string(text.substr(0, 80)));
}

Result<domain::Message> MessageFrom(const db::Row& row) {
  IL_TRY(Recipients recipients, ReadRecipients(row.Text(kRecipientsColumn)));
  return domain::Message{
      .cursor = row.Int(0),
      .id = row.String(2),
      .project = row.String(1),
      .sender = row.String(3),
      .thread_id = row.String(4),
      .topic = row.String(5),
      .subject = row.String(6),
      .body = row.String(7),
      .importance = row.String(8),
      .ack_required = row.Bool(9),
      .addresses = std::move(recipients.received),
      .created_at = {row.Int(11)},
  };
}

}  // namespace interlock::store
