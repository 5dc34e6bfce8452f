#include "api/admission.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "api/app.h"
#include "api/route.h"
#include "auth/access.h"
#include "auth/keyring_holder.h"
#include "base/secret.h"
#include "base/utf8.h"
#include "domain/text.h"
#include "service/agents.h"

namespace interlock::api {
namespace {

auth::HeaderField Field(const Headers& headers, std::string_view name) {
  const auto [count, first] = headers.Look(name);
  return {.count = count, .first = first};
}

// Trimmed; empty when it was not sent.
Result<std::string_view> IdentityField(const Headers& headers, std::string_view name) {
  const auth::HeaderField field = Field(headers, name);
  if (field.count > 1) {
    return Error(Errc::kInvalidArgument,
                 "There is more than one " + std::string(name) + " field; send one.");
  }
  if (!IsUtf8(field.first)) {
    return Error(Errc::kInvalidArgument,
                 "The field " + std::string(name) + " is not UTF-8; encode it as UTF-8.");
  }
  return domain::Trim(field.first);
}

}  // namespace

Result<Admitted> Admit(const Route& route, App& app, const Request& request) {
  if (route.access == Access::kAnyone) return Admitted();
  using Channel = auth::RequestFacts::Channel;
  const Headers& headers = request.sent.headers;
  const auth::RequestFacts facts{
      .channel = request.sent.peer.kind == Peer::Kind::kUnix ? Channel::kUnix : Channel::kTcp,
      .address = request.sent.peer.address,
      .authorization = Field(headers, "Authorization"),
      .host = Field(headers, "Host"),
      .origin = Field(headers, "Origin"),
      .fetch_site = Field(headers, "Sec-Fetch-Site"),
      .forwarded_for = Field(headers, "X-Forwarded-For"),
      .agent_id = headers.Find("X-Agent-ID").value_or(""),
  };
  const std::shared_ptr<const auth::Keyring> keys = app.keys.Get();
  IL_TRY(auth::Caller caller, auth::Admit(facts, *keys, app.access));
  IL_TRY_VOID(IdentityField(headers, "X-Agent-ID"));
  IL_TRY(const std::string_view token, IdentityField(headers, "X-Agent-Token"));
  return Admitted{.caller = std::move(caller), .token = token};
}

boost::asio::awaitable<Result<void>> FindAgentOfToken(App& app, Admitted& admitted) {
  Secret secret{std::string(admitted.token)};
  IL_CO_TRY(const auto owner, co_await app.agents.OfToken(std::move(secret)));
  if (!owner) co_return Result<void>();
  IL_CO_TRY(admitted.caller, auth::WithToken(std::move(admitted.caller), owner->id, owner->name));
  co_return Result<void>();
}

}  // namespace interlock::api
