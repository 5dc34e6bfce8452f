#include "inbox.h"

#include <fmt/format.h>

#include <optional>
#include <string>
#include <vector>

#include "client.h"
#include "http/exchange.h"
#include "json/codec.h"
#include "table.h"

namespace interlock::app {
namespace {

struct Poke {
  std::string message_id;
  std::string body;
};
IL_JSON_FIELDS(Poke, message_id, body)

struct Pokes {
  std::vector<Poke> pokes;
  std::optional<bool> more;
};
IL_JSON_FIELDS(Pokes, pokes, more)

// What is left to say once they are printed.
Result<std::string> Show(const InboxOptions& options, const Print& print) {
  IL_TRY(const Client client, Client::For(options.server));
  const Client::Parameters query = {{"project", options.project}, {"agent", options.agent}};
  IL_TRY(const json::Value answer, client.Get("/api/inbox/pokes", query));
  const auto decoded = json::Decode<Pokes>(answer);
  if (!decoded.ok()) return client.NotIntermute(decoded.error().message());
  const Pokes& found = *decoded;
  bool first = true;
  for (const Poke& poke : found.pokes) {
    if (!print((first ? "" : "---\n") + poke.body + "\n")) {
      return Error(Errc::kIo, "the messages cannot be printed: nobody reads them");
    }
    first = false;
    if (options.mark != InboxOptions::Mark::kSurfaced) continue;
    const std::string path = "/api/inbox/pokes/" + http::EncodeSegment(poke.message_id) + "/ack";
    IL_TRY_VOID(client.Post(path, query));
  }
  if (!found.more.value_or(false)) return "";
  if (options.mark == InboxOptions::Mark::kSurfaced) {
    return "---\nMore messages wait: run this again for the next ones.\n";
  }
  return "---\nMore messages wait: run this with --mark-surfaced, then again for the next ones.\n";
}

}  // namespace

Done Inbox(const InboxOptions& options, const Print& print) {
  auto shown = Show(options, print);
  if (shown.ok()) return {0, *std::move(shown)};
  return Failed(shown.error());
}

}  // namespace interlock::app
