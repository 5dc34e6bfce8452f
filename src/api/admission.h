#pragma once

#include <boost/asio/awaitable.hpp>
#include <string_view>

#include "api/request.h"
#include "auth/caller.h"
#include "base/result.h"

namespace interlock::api {

struct App;
struct Route;

// Who makes this request, or why it is not let in: the door of auth/access.h, and behind it the
// agent that X-Agent-Token belongs to.
//
// (1) Access::kAnyone asks nothing and tells nothing.
// (2) The door comes first: who is not let in learns nothing about tokens.
// (3) A token of a living agent supplies the identity; an X-Agent-ID beside it that names another
//     one is 403. A token of nobody is ignored, as is one of an agent that is gone.
// (4) A token that could not be looked up is the storage's failure (503): to ignore it would turn a
//     full disk into a weaker identity.
// (5) X-Agent-ID and X-Agent-Token are sent at most once, as UTF-8; else 400.
//
// In two steps, since few requests have a token, and only that needs storage.
struct Admitted {
  auth::Caller caller = {};
  std::string_view token = {};  // of the request; empty = `caller` stands
};
Result<Admitted> Admit(const Route& route, App& app, const Request& request);
// REQUIRES: a token. `admitted` outlives the call.
boost::asio::awaitable<Result<void>> FindAgentOfToken(App& app, Admitted& admitted);

}  // namespace interlock::api
