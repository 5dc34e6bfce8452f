#include "api/speaker.h"

#include <utility>

#include "api/prepare.h"
#include "domain/text.h"

namespace interlock::api {

using Speaker = service::Agents::Speaker;

namespace {

std::string NamedIn(const Route& route, const Request& request) {
  if (route.actor == ActorFrom::kPathId) return "";
  if (route.actor != ActorFrom::kNobody) return request.actor;
  auto named = FindAgent(route.asker, request);
  return named.ok() ? *std::move(named) : "";
}

}  // namespace

std::optional<Speaker> SpeakerOf(const Route& route, const Request& request,
                                 const auth::AccessRules& rules) {
  if (route.asker == ActorFrom::kNewAgent) return std::nullopt;
  std::string named;
  if (request.caller.agent.empty()) named = NamedIn(route, request);
  return SpeakerOf(request, named, rules);
}

std::optional<Speaker> SpeakerOf(const Request& request, std::string_view named,
                                 const auth::AccessRules& rules) {
  const auth::Caller& caller = request.caller;
  const bool proved = caller.identity == auth::Caller::Identity::kProved;
  if (!proved && rules.require_agent_token) return std::nullopt;
  Speaker speaker{.agent = std::string(domain::Trim(named)), .named_in = request.project};
  if (!caller.agent.empty()) speaker.agent = caller.agent;
  if (speaker.agent.empty()) return std::nullopt;
  if (!proved && caller.mode == auth::Caller::Mode::kKey) {
    speaker.named_in = caller.project;
    speaker.only_in = caller.project;
  }
  return speaker;
}

}  // namespace interlock::api
