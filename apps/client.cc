#include "client.h"

#include <fmt/format.h>

#include "json/parse.h"
#include "json/value.h"
#include "serve_options.h"
#include "table.h"

namespace interlock::app {
namespace {

std::string TextOf(const json::Value& value, std::string_view name) {
  const json::Object* const object = value.if_object();
  const json::Value* const member = object != nullptr ? object->if_contains(name) : nullptr;
  if (member == nullptr || !member->is_string()) return "";
  return std::string(json::View(member->get_string()));
}

// The code whose answer has that status; a status that none has is told as an inner failure.
Errc CodeOf(int status) {
  for (const ErrcInfo& info : AllErrcs()) {
    if (info.http_status == status) return info.code;
  }
  return status >= 500 ? Errc::kUnavailable : Errc::kInternal;
}

}  // namespace

Result<Client> Client::For(const ServerAddress& address, std::chrono::milliseconds patience) {
  IL_TRY(http::Endpoint endpoint, http::ParseEndpoint(address.url));
  return Client(address, std::move(endpoint), patience);
}

Result<json::Value> Client::Get(std::string_view path, const Parameters& query) const {
  return Ask("GET", path, query, "");
}

Result<json::Value> Client::Post(std::string_view path, const Parameters& query,
                                 std::string_view body) const {
  return Ask("POST", path, query, body);
}

Result<json::Value> Client::Ask(std::string_view method, std::string_view path,
                                const Parameters& query, std::string_view body) const {
  http::Question question;
  question.method = method;
  question.target = path;
  if (!query.empty()) question.target += "?" + http::EncodeQuery(query);
  if (!address_.api_key.empty()) {
    question.headers.emplace_back("Authorization", "Bearer " + address_.api_key.Reveal());
  }
  question.body = body;
  const auto answer = http::Exchange(endpoint_, question, {.patience = patience_});
  if (!answer.ok()) return ExplainSilence(answer.error());
  if (answer->status < 200 || answer->status > 299) return Explain(*answer);
  if (answer->body.empty()) return json::Value();
  auto value = json::Parse(answer->body, {.limits = {.bytes_max = answer->body.size() + 1,
                                                     .string_bytes_max = answer->body.size() + 1,
                                                     .members_max = 1'000'000}});
  if (!value.ok()) return NotIntermute(value.error().message());
  return *std::move(value);
}

Error Client::NotIntermute(std::string_view reason) const {
  return {Errc::kUnavailable,
          fmt::format("something else than an intermute server answers at {} ({}); look for the "
                      "address in the line 'listening on' of 'intermute serve', and name it with "
                      "--url or INTERMUTE_URL",
                      address_.url, reason)};
}

Error Client::ExplainSilence(const Error& failure) const {
  if (failure.slug() == "not_http") return NotIntermute(failure.message());
  if (failure.slug() == "no_answer") {
    return {Errc::kUnavailable,
            fmt::format("the server at {} hangs ({}); read its log and restart it, or name another "
                        "with --url or INTERMUTE_URL",
                        address_.url, failure.message())};
  }
  return {Errc::kUnavailable,
          fmt::format("no server at {} ({}); start one with 'intermute serve', or name it with "
                      "--url or INTERMUTE_URL",
                      address_.url, failure.message())};
}

Error Client::Explain(const http::Answer& answer) const {
  const auto value = json::Parse(answer.body);
  const std::string slug = value.ok() ? TextOf(*value, "error") : "";
  const std::string message = value.ok() ? TextOf(*value, "message") : "";
  if (slug.empty()) {
    return NotIntermute(fmt::format("status {} without an error of ours", answer.status));
  }
  std::string reason = message.empty() ? "no reason given" : message;
  if (answer.status == 401) {
    reason = address_.api_key.empty()
                 ? "it needs a key; set INTERMUTE_API_KEY to one that 'intermute init' made"
                 : "it does not know the key in INTERMUTE_API_KEY; correct the key, or make one "
                   "with 'intermute init'";
  }
  return Error(CodeOf(answer.status),
               fmt::format("{} answered {} {}: {}", address_.url, answer.status, slug, reason))
      .WithSlug(slug);
}

Done Failed(const Error& error) {
  const bool no_server = error.code() == Errc::kUnavailable;
  return {no_server ? 2 : 1, fmt::format("intermute: {}\n", Printable(error.message()))};
}

}  // namespace interlock::app
