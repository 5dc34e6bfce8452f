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

// Walks over the text of RecipientsText(). Each Take…() is false when something else stands there.
class Reader {
 public:
  explicit Reader(std::string_view text) : rest_(text) {}

  bool TakeAll(Recipients& into) {
    if (!TakeOpening() || !TakeLists(into.received)) return false;
    if (TakeKey(kDeniedKey) && !(TakeOpening() && TakeLists(into.denied) && TakeClosing())) {
      return false;
    }
    return TakeClosing() && rest_.empty();
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
