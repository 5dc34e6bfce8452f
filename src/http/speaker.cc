#include "http/speaker.h"

#include <utility>

#include "domain/text.h"
#include "http/prepare.h"

namespace interlock::http {
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
  return SpeakerOf(request.caller, named, rules);
}

std::optional<Speaker> SpeakerOf(const auth::Caller& caller, std::string_view named,
                                 const auth::AccessRules& rules) {
  const bool proved = caller.identity == auth::Caller::Identity::kProved;
  if (!proved && rules.require_agent_token) return std::nullopt;
  Speaker speaker{.agent = std::string(domain::Trim(named)), .project = {}};
  if (!caller.agent.empty()) speaker.agent = caller.agent;
  if (speaker.agent.empty()) return std::nullopt;
  if (!proved && caller.mode == auth::Caller::Mode::kKey) speaker.project = caller.project;
  return speaker;
}

}  // namespace interlock::http
