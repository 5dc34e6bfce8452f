#include "service/windows.h"

#include <fmt/format.h>

#include <span>
#include <string_view>
#include <utility>

#include "auth/sha256.h"
#include "domain/envelope.h"
#include "domain/text.h"
#include "service/address.h"
#include "service/await.h"
#include "service/storage.h"
#include "store/agents.h"
#include "store/pokes.h"
#include "store/windows.h"

namespace interlock::service {
namespace {

using boost::asio::awaitable;
using domain::Window;

Error TokenMismatch() {
  return Error(Errc::kForbidden,
               "The registration token is not this agent's; an agent registers its own window, "
               "with the token that it got when it registered.")
      .WithSlug("agent_token_mismatch");
}

// What the writer needs of a registration.
struct Putting {
  Window window;
  auth::Digest token;
  bool agent_of_project = false;
};

// The token says whose window it is; an agent may call itself by its id or its name.
Result<Window> WriteWindow(db::Transaction& tx, const Putting& putting) {
  Window window = putting.window;
  IL_TRY(const auto owner,
         store::FindAgentByToken(tx.connection(), std::as_bytes(std::span(putting.token))));
  if (!owner) return TokenMismatch();
  if (owner->id != window.agent_id) {
    IL_TRY(const store::TextUse use, store::FindTextUse(tx.connection(), window.agent_id));
    if (use.is_id || owner->name != window.agent_id) return TokenMismatch();
    window.agent_id = owner->id;
  }
  if (putting.agent_of_project && owner->project != window.project) return TokenMismatch();
  return store::PutWindow(tx, window);
}

}  // namespace

Result<void> Windows::Check(const Registration& registration) const {
  const std::pair<std::string_view, const std::string*> texts[] = {
      {"window_uuid", &registration.uuid},
      {"agent_id", &registration.agent_id},
      {"display_name", &registration.display_name},
      {"project", &registration.project}};
  for (const auto& [field, text] : texts) {
    if (domain::HasNul(*text)) {
      return Error(Errc::kInvalidArgument, fmt::format("`{}` holds a NUL byte; remove it.", field))
          .WithDetail("field", std::string(field));
    }
    if (text->size() <= limits_.agent_text_bytes_max) continue;
    return Error(Errc::kInvalidArgument,
                 fmt::format("`{}` has {} bytes and may have {}; choose a shorter one.", field,
                             text->size(), limits_.agent_text_bytes_max))
        .WithDetail("field", std::string(field));
  }
  if (!registration.tmux_target.empty() && !domain::ParseTmuxTarget(registration.tmux_target)) {
    return Error(Errc::kInvalidArgument,
                 "`tmux_target` must be SESSION or SESSION:WINDOW, perhaps with .PANE, in letters, "
                 "digits, blanks and _.- only; tmux display-message -p '#S:#I.#P' prints one.")
        .WithSlug("invalid tmux_target")
        .WithDetail("field", "tmux_target");
  }
  return {};
}

awaitable<Result<Window>> Windows::Put(Registration registration) {
  IL_CO_TRY_VOID(Check(registration));
  Putting putting;
  putting.token = auth::Sha256(registration.token.Reveal());
  putting.agent_of_project = registration.agent_of_project;
  std::string name = std::move(registration.display_name);
  if (name.empty()) name = registration.agent_id;
  putting.window = {.id = ids_.Next().Text(),
                    .project = std::move(registration.project),
                    .uuid = std::move(registration.uuid),
                    .agent_id = std::move(registration.agent_id),
                    .display_name = std::move(name),
                    .tmux_target = std::move(registration.tmux_target),
                    .last_active_at = clock_.Now()};
  auto start = [this, putting = std::move(putting)](Storage::DoneWith<Window> done) mutable {
    auto write = [putting = std::move(putting)](db::Transaction& tx) {
      return WriteWindow(tx, putting);
    };
    return storage_.Write<Window>(std::move(write), std::move(done));
  };
  co_return co_await Await<Window>(std::move(start));
}

awaitable<Result<std::vector<Window>>> Windows::List(std::string project) {
  using Found = std::vector<Window>;
  auto start = [this, project = std::move(project)](Storage::DoneWith<Found> done) mutable {
    auto read = [project = std::move(project),
                 limit = limits_.windows_listed_max](db::Connection& connection) -> Result<Found> {
      Found found;
      IL_TRY_VOID(store::ListWindows(connection, project, limit,
                                     [&](const Window& window) { found.push_back(window); }));
      return found;
    };
    return storage_.Read<Found>(std::move(read), std::move(done));
  };
  co_return co_await Await<Found>(std::move(start));
}

awaitable<Result<void>> Windows::Expire(std::string project, std::string uuid,
                                        std::optional<std::string> owner) {
  auto write = [project = std::move(project), uuid = std::move(uuid), owner = std::move(owner),
                now = clock_.Now()](db::Transaction& tx) -> Result<void> {
    if (owner) {
      IL_TRY(const auto window, store::FindWindow(tx.connection(), project, uuid));
      if (window && window->agent_id != *owner) {
        return Error(Errc::kForbidden,
                     fmt::format("The window belongs to agent {}; only that agent may give it up, "
                                 "so ask it.",
                                 window->agent_id));
      }
    }
    IL_TRY_VOID(store::ExpireWindow(tx, project, uuid, now));
    return {};
  };
  auto start = [this, write = std::move(write)](Storage::Done done) mutable {
    return storage_.Write(std::move(write), std::move(done));
  };
  co_return co_await Await<void>(std::move(start));
}

awaitable<Result<Windows::PokePage>> Windows::PendingPokes(std::string project, std::string agent) {
  auto start = [this, project = std::move(project),
                agent = std::move(agent)](Storage::DoneWith<PokePage> done) mutable {
    auto read = [&book = storage_.addresses(), project = std::move(project),
                 agent = std::move(agent), limits = limits_,
                 now = clock_.Now()](db::Connection& connection) -> Result<PokePage> {
      PokePage page;
      const auto pokes_max = static_cast<std::size_t>(limits.pokes_listed_max);
      std::size_t bytes = 0;
      const auto take = [&](const store::PendingPoke& poke) {
        page.more = page.pokes.size() == pokes_max || bytes > limits.pokes_bytes_max;
        if (page.more) return;
        page.pokes.push_back({.message_id = std::string(poke.message_id),
                              .sender = std::string(poke.sender),
                              .sender_name = std::string(poke.sender_name),
                              .thread_id = std::string(poke.thread_id),
                              .text = domain::Envelope(poke.sender, poke.thread_id, poke.body),
                              .created_at = poke.created_at});
        bytes += page.pokes.back().text.size();
      };
      IL_TRY(const AddressBook::Owner owner, book.OwnerOf(connection, project, agent, now));
      const auto list = [&](const std::string& recipient) {
        return store::ListPendingPokes(connection, project, recipient, limits.pokes_listed_max + 1,
                                       take);
      };
      // Those under its name came first: before it had registered.
      if (owner.also) IL_TRY_VOID(list(owner.also->name));
      if (!page.more) IL_TRY_VOID(list(owner.agent));
      return page;
    };
    return storage_.Read<PokePage>(std::move(read), std::move(done));
  };
  co_return co_await Await<PokePage>(std::move(start));
}

awaitable<Result<void>> Windows::Surface(std::string project, std::string agent,
                                         std::string message_id) {
  auto write = [&book = storage_.addresses(), project = std::move(project),
                agent = std::move(agent), id = std::move(message_id),
                now = clock_.Now()](db::Transaction& tx) -> Result<void> {
    IL_TRY(const AddressBook::Owner owner, book.OwnerOf(tx.connection(), project, agent, now));
    IL_TRY(const bool surfaced, store::SurfacePoke(tx, project, owner.agent, id, now));
    if (!surfaced && owner.also) {
      IL_TRY_VOID(store::SurfacePoke(tx, project, owner.also->name, id, now));
    }
    return {};
  };
  auto start = [this, write = std::move(write)](Storage::Done done) mutable {
    return storage_.Write(std::move(write), std::move(done));
  };
  co_return co_await Await<void>(std::move(start));
}

std::string WindowJson(const Window& window) { return store::WindowJson(window); }

}  // namespace interlock::service
