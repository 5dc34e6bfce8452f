#pragma once

#include <span>

#include "http/route.h"

namespace interlock::http {

// What a recipient says of a message: that it has read it, that it will see to it.
//
// Who speaks: the body's `agent`, else the query's, else the caller (X-Agent-ID or the token's),
// else the message's only recipient. An agent that is no recipient is 404: there is nothing of it
// to mark. When nobody is named and there are several recipients, nothing can be marked; the answer
// is still 200, since clients that cannot say who they are know no other, and a header tells the
// reason.
std::span<const Route> ReceiptRoutes();

}  // namespace interlock::http
