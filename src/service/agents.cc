#include "service/agents.h"

#include <cstddef>
#include <span>
#include <utility>

#include "auth/sha256.h"
#include "service/await.h"
#include "service/storage.h"
#include "store/agents.h"

namespace interlock::service {

boost::asio::awaitable<Result<std::optional<std::string>>> Agents::OfToken(Secret token) {
  using Found = std::optional<std::string>;
  auto find = [hash = auth::Sha256(token.Reveal())](db::Connection& connection) {
    return store::FindAgentByToken(connection, std::as_bytes(std::span(hash)));
  };
  auto start = [this, &find](Storage::DoneWith<Found> done) {
    return storage_.Read<Found>(std::move(find), std::move(done));
  };
  co_return co_await Await<Found>(start);
}

}  // namespace interlock::service
