#include "kernel/lock_owner.h"

#include <charconv>

#include "json/codec.h"
#include "json/object_text.h"

namespace interlock::kernel {
namespace {

// The fields of the file. Other fields are ignored.
struct OwnerFile {
  std::int64_t pid = 0;
  std::string host;
  std::string owner;
  std::int64_t created = 0;
  std::optional<std::int64_t> start;
};
IL_JSON_FIELDS(OwnerFile, pid, host, owner, created, start)

constexpr std::int64_t kCreatedMax = 253'402'300'799;  // the end of the year 9999

constexpr json::TextOptions kFileOptions = {
    .parse = {.limits = {.bytes_max = std::size_t{64} * 1024}},
    .decode = {.names = json::Names::kExact}};

}  // namespace

std::string LockOwnerText(const LockOwner& owner) {
  json::ObjectText text;
  text.Add("pid", owner.pid).Add("host", owner.host).Add("owner", owner.owner);
  text.Add("created", owner.created);
  if (owner.start) text.Add("start", *owner.start);
  return text.Text();
}

Result<LockOwner> ParseLockOwner(std::string_view text) {
  auto file = json::DecodeText<OwnerFile>(text, kFileOptions);
  if (!file.ok()) return Error(Errc::kCorrupt, file.error().message()).In("owner.json");
  if (file->pid <= 0) return Error(Errc::kCorrupt, "owner.json: pid is not positive");
  if (file->created < 0 || file->created > kCreatedMax) {
    return Error(Errc::kCorrupt, "owner.json: created is not a valid time");
  }
  return LockOwner{.pid = file->pid,
                   .host = std::move(file->host),
                   .owner = std::move(file->owner),
                   .created = file->created,
                   .start = file->start};
}

HostProcess ProcessOfOwner(std::string_view owner, const HostProcess& self) {
  const std::size_t colon = owner.find(':');
  const std::string_view number = owner.substr(0, colon);
  std::int32_t pid = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), pid);
  if (error != std::errc() || end != number.data() + number.size() || pid <= 0) return self;
  const std::string_view host =
      colon == std::string_view::npos ? std::string_view() : owner.substr(colon + 1);
  return {.pid = pid, .host = host.empty() ? self.host : std::string(host)};
}

bool IsSameHost(std::string_view a, std::string_view b) {
  return a.substr(0, a.find('.')) == b.substr(0, b.find('.'));
}

}  // namespace interlock::kernel
