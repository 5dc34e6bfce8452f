#include "auth/access.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include "auth/keyring.h"
#include "base/id.h"
#include "domain/text.h"

namespace interlock::auth {
namespace {

using domain::Trim;

constexpr std::string_view kBlank = " \t";
constexpr std::uint16_t kHttpPort = 80;

std::string Lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

Error Unauthorized(std::string message) { return Error(Errc::kUnauthorized, std::move(message)); }

Error ForbiddenOrigin(std::string message) {
  return Error(Errc::kForbidden, std::move(message)).WithSlug("forbidden_origin");
}

// ---- The key ----

// Returns the key of an Authorization field. A field without a key is an error: a client that sends
// credentials must not be admitted without them.
Result<std::string_view> BearerKey(std::string_view field) {
  const std::string_view text = Trim(field);
  const std::size_t end = std::min(text.find_first_of(kBlank), text.size());
  if (Lower(text.substr(0, end)) != "bearer") {
    return Unauthorized(
        "The Authorization field is not 'Bearer <key>'; correct it, or omit it "
        "on this machine.");
  }
  const std::string_view key = Trim(text.substr(end));
  if (key.empty()) {
    return Unauthorized(
        "The Authorization field has no key after 'Bearer'; add the key, or "
        "omit the field on this machine.");
  }
  return key;
}

// Returns nullopt if the request has no credentials.
Result<std::optional<Caller>> AdmitByKey(const HeaderField& field, const Keyring& keyring) {
  if (field.count > 1) {
    return Unauthorized("The request has more than one Authorization field; send one.");
  }
  if (field.count == 0 || Trim(field.first).empty()) return std::optional<Caller>();
  IL_TRY(const std::string_view key, BearerKey(field.first));
  const Digest digest = Sha256(key);
  auto project = keyring.FindDigest(digest);
  if (!project) {
    return Unauthorized(
        "The key is not in the keys file; check its spelling, or create a key "
        "with 'intermute init' and reload the server (SIGHUP).");
  }
  return Caller{.mode = Caller::Mode::kKey, .project = *std::move(project), .key = digest};
}

// ---- This machine ----

// Checks every entry: a proxy appends the client that it sees to the list that the client sent, so
// a remote client controls the first entries.
bool ForwardedFromHereOnly(const HeaderField& field) {
  if (field.count == 0) return true;
  if (field.count > 1) return false;
  std::string_view rest = field.first;
  while (true) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    const std::string_view entry = Trim(rest.substr(0, comma));
    if (!IsLoopbackAddress(entry) && Lower(entry) != "localhost") return false;
    if (comma == rest.size()) return true;
    rest.remove_prefix(comma + 1);
  }
}

bool IsFromThisMachine(const RequestFacts& facts) {
  if (!ForwardedFromHereOnly(facts.forwarded_for)) return false;
  return facts.channel == RequestFacts::Channel::kUnix || IsLoopbackAddress(facts.address);
}

// ---- Web pages ----

// The host and port of a Host field or of an origin.
struct Authority {
  std::string host;  // in lower case; an IPv6 address keeps its brackets
  std::uint16_t port = kHttpPort;

  bool operator==(const Authority&) const = default;
};

// Returns nullopt unless the text is "host", "host:port", "[address]" or "[address]:port".
std::optional<Authority> ParseAuthority(std::string_view text) {
  const std::size_t bracket = text.starts_with('[') ? text.find(']') : 0;
  if (bracket == std::string_view::npos) return std::nullopt;
  const std::size_t colon = std::min(text.find(':', bracket), text.size());
  Authority authority{.host = Lower(text.substr(0, colon))};
  if (authority.host.empty() || authority.host.find_first_of("/?#@ \t") != std::string::npos) {
    return std::nullopt;
  }
  if (bracket != 0 && colon != bracket + 1) return std::nullopt;
  if (colon == text.size()) return authority;
  const std::string_view port = text.substr(colon + 1);
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), authority.port);
  if (error != std::errc() || end != port.data() + port.size()) return std::nullopt;
  return authority;
}

bool IsLoopbackHost(std::string_view host) {
  if (host == "localhost" || host == "localhost.") return true;
  if (host.starts_with('[')) {
    const std::string_view address = host.substr(1, host.size() - 2);
    return address.find(':') != std::string_view::npos && IsLoopbackAddress(address);
  }
  return IsLoopbackAddress(host);
}

std::optional<Authority> ParseOrigin(std::string_view text) {
  constexpr std::string_view kScheme = "http://";
  if (Lower(text.substr(0, kScheme.size())) != kScheme) return std::nullopt;
  return ParseAuthority(text.substr(kScheme.size()));
}

Result<void> RefuseForeignOrigin(const HeaderField& origin, const std::optional<Authority>& host) {
  if (origin.count == 0) return {};
  const auto own = ParseOrigin(Trim(origin.first));
  if (origin.count == 1 && own && own == host) return {};
  return ForbiddenOrigin(
      fmt::format("The origin '{}' is not this server, and web pages of other origins need a key; "
                  "send a key (Authorization: Bearer <key>), or no Origin field.",
                  Trim(origin.first)));
}

// A page can make its own name resolve to this machine (DNS rebinding); Host contains that name.
Result<void> RefuseForeignHost(const HeaderField& field, const std::optional<Authority>& host) {
  if (field.count == 0) return {};  // HTTP/1.0, which no browser uses
  if (field.count == 1 && host && IsLoopbackHost(host->host)) return {};
  return ForbiddenOrigin(
      fmt::format("The host '{}' is not a name of this machine; use 127.0.0.1, [::1] or "
                  "localhost, or send a key (Authorization: Bearer <key>).",
                  Trim(field.first)));
}

// Some requests of a page, such as those for images, have no Origin.
Result<void> RefuseForeignFetch(const HeaderField& site) {
  if (site.count == 0) return {};  // not a browser
  const std::string value = Lower(Trim(site.first));
  if (site.count == 1 && (value == "same-origin" || value == "none")) return {};
  return ForbiddenOrigin(
      "The request comes from a page of another site and needs a key; send a key "
      "(Authorization: Bearer <key>), or open the address directly.");
}

Result<void> RefuseWebPages(const RequestFacts& facts, bool from_here) {
  const auto host = ParseAuthority(Trim(facts.host.first));
  // A request from another machine, which only --insecure admits, uses another name for the server.
  if (from_here) IL_TRY_VOID(RefuseForeignHost(facts.host, host));
  IL_TRY_VOID(RefuseForeignOrigin(facts.origin, host));
  return RefuseForeignFetch(facts.fetch_site);
}

Result<Caller> AdmitWithoutKey(const RequestFacts& facts, bool from_here, const Keyring& keyring,
                               const AccessRules& rules) {
  if (!rules.insecure && !from_here) {
    return Unauthorized(
        "A request from another machine needs a key; send the field "
        "'Authorization: Bearer <key>' with a key from 'intermute init'.");
  }
  if (keyring.local_policy() == LocalPolicy::kKeyNeeded) {
    return Unauthorized(
        "The keys file requires a key from this machine too; send the field "
        "'Authorization: Bearer <key>'.");
  }
  IL_TRY_VOID(RefuseWebPages(facts, from_here));
  return Caller{.mode = Caller::Mode::kLocal};
}

}  // namespace

Result<Caller> Admit(const RequestFacts& facts, const Keyring& keyring, const AccessRules& rules) {
  IL_TRY(auto by_key, AdmitByKey(facts.authorization, keyring));
  const bool from_here = IsFromThisMachine(facts);
  auto admitted = by_key ? Result<Caller>(*std::move(by_key))
                         : AdmitWithoutKey(facts, from_here, keyring, rules);
  IL_TRY(Caller caller, std::move(admitted));
  caller.from_here = from_here;
  caller.agent = Trim(facts.agent_id);
  if (!caller.agent.empty()) caller.identity = Caller::Identity::kClaimed;
  return caller;
}

Result<Caller> WithToken(Caller caller, std::string_view agent, std::string_view name) {
  const std::string claimed = std::exchange(caller.agent, std::string(agent));
  caller.name = name;
  const bool claims =
      std::exchange(caller.identity, Caller::Identity::kProved) == Caller::Identity::kClaimed;
  if (claims && claimed != agent && !NamesItself(caller, claimed)) {
    return Error(
               Errc::kForbidden,
               fmt::format("The X-Agent-Token belongs to agent '{}', but X-Agent-ID names another "
                           "agent; send your own id, or omit X-Agent-ID.",
                           agent))
        .WithSlug("agent identity mismatch");
  }
  return caller;
}

bool NamesItself(const Caller& caller, std::string_view text) {
  return caller.identity == Caller::Identity::kProved && !text.empty() && text == caller.name &&
         !Uuid::Parse(text);
}

bool StillAdmitted(const Caller& caller, const Keyring& keyring) {
  if (caller.mode == Caller::Mode::kLocal) {
    return keyring.local_policy() == LocalPolicy::kNoKeyNeeded;
  }
  return caller.key && keyring.FindDigest(*caller.key) == caller.project;
}

Result<void> MayActAs(const Caller& caller, std::string_view agent, const AccessRules& rules) {
  if (!rules.require_agent_token) return {};
  if (caller.identity == Caller::Identity::kProved && caller.agent == agent) return {};
  return Error(Errc::kForbidden,
               fmt::format("The request acts for agent '{}' without that agent's token, which this "
                           "server requires (--require-agent-token); act for your own agent, and "
                           "send its token as X-Agent-Token.",
                           agent))
      .WithSlug("agent_token_required");
}

bool IsLoopbackAddress(std::string_view text) {
  const std::string address(text);
  if (address.size() != std::strlen(address.c_str())) return false;  // inet_pton() stops at a NUL
  std::array<std::uint8_t, 4> v4{};
  if (::inet_pton(AF_INET, address.c_str(), v4.data()) == 1) return v4[0] == 127;
  std::array<std::uint8_t, 16> v6{};
  if (::inet_pton(AF_INET6, address.c_str(), v6.data()) != 1) return false;
  constexpr std::array<std::uint8_t, 16> kLoopback = {0, 0, 0, 0, 0, 0, 0, 0,
                                                      0, 0, 0, 0, 0, 0, 0, 1};
  constexpr std::array<std::uint8_t, 12> kMapped = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF};
  if (v6 == kLoopback) return true;
  return std::equal(kMapped.begin(), kMapped.end(), v6.begin()) && v6[12] == 127;
}

}  // namespace interlock::auth
