#include "base/error.h"

#include <array>

#include "base/check.h"

namespace interlock {
namespace {

// Retrying clients tell 503 (later) from 500 (our bug); shell callers tell 1 (expected negative)
// from 2 (unexpected), and fall back to their legacy path only on 2 and above.
constexpr std::array kTable = {
    ErrcInfo{Errc::kInvalidArgument, "invalid_request", 400, 2},
    ErrcInfo{Errc::kUsage, "usage", 400, 3},
    ErrcInfo{Errc::kBadJson, "bad_json", 400, 2},
    ErrcInfo{Errc::kInvalidPattern, "invalid_pattern", 400, 2},
    ErrcInfo{Errc::kAbsolutePattern, "absolute_pattern", 400, 2},
    ErrcInfo{Errc::kPatternTooComplex, "pattern_too_complex", 400, 2},
    ErrcInfo{Errc::kUnauthorized, "unauthorized", 401, 2},
    ErrcInfo{Errc::kForbidden, "forbidden", 403, 2},
    ErrcInfo{Errc::kNotFound, "not_found", 404, 1},
    ErrcInfo{Errc::kMethodNotAllowed, "method_not_allowed", 405, 2},
    ErrcInfo{Errc::kRequestTimeout, "request_timeout", 408, 2},
    ErrcInfo{Errc::kConflict, "conflict", 409, 1},
    ErrcInfo{Errc::kAlreadyExists, "already_exists", 409, 1},
    ErrcInfo{Errc::kGone, "gone", 410, 1},
    ErrcInfo{Errc::kPayloadTooLarge, "payload_too_large", 413, 2},
    ErrcInfo{Errc::kUpgradeRequired, "upgrade_required", 426, 2},
    ErrcInfo{Errc::kRateLimited, "rate_limited", 429, 1},
    ErrcInfo{Errc::kHeaderTooLarge, "header_too_large", 431, 2},
    ErrcInfo{Errc::kCancelled, "cancelled", 503, 2},
    ErrcInfo{Errc::kUnavailable, "unavailable", 503, 2},
    ErrcInfo{Errc::kCircuitOpen, "circuit_open", 503, 2},
    ErrcInfo{Errc::kStorageTimeout, "storage_timeout", 503, 2},
    ErrcInfo{Errc::kOutcomeUnknown, "outcome_unknown", 503, 2},
    ErrcInfo{Errc::kBusy, "storage_busy", 503, 2},
    ErrcInfo{Errc::kIo, "storage_io_error", 503, 2},
    ErrcInfo{Errc::kDiskFull, "disk_full", 503, 2},
    ErrcInfo{Errc::kCorrupt, "storage_corrupt", 503, 2},
    ErrcInfo{Errc::kReadOnly, "storage_read_only", 503, 2},
    ErrcInfo{Errc::kOutOfMemory, "out_of_memory", 503, 2},
    ErrcInfo{Errc::kCantOpen, "cannot_open", 503, 2},
    ErrcInfo{Errc::kNotADatabase, "not_a_database", 503, 2},
    ErrcInfo{Errc::kSchemaTooNew, "schema_too_new", 503, 2},
    ErrcInfo{Errc::kForeignSchema, "foreign_schema", 503, 2},
    ErrcInfo{Errc::kConstraint, "constraint_violated", 409, 2},
    ErrcInfo{Errc::kTooBig, "value_too_big", 413, 2},
    ErrcInfo{Errc::kInternal, "internal", 500, 2},
};

constexpr bool TableFollowsEnum() {
  for (std::size_t i = 0; i < kTable.size(); ++i) {
    if (static_cast<std::size_t>(kTable[i].code) != i) return false;
  }
  return kTable.back().code == Errc::kInternal;
}
static_assert(TableFollowsEnum(), "one row per Errc, in the order of the enum");

}  // namespace

const ErrcInfo& Describe(Errc code) {
  const auto index = static_cast<std::size_t>(code);
  IL_CHECK(index < kTable.size());
  return kTable[index];
}

std::span<const ErrcInfo> AllErrcs() { return kTable; }

bool IsInfrastructure(Errc code) {
  switch (code) {
    case Errc::kOutcomeUnknown:
    case Errc::kBusy:
    case Errc::kIo:
    case Errc::kDiskFull:
    case Errc::kCorrupt:
    case Errc::kReadOnly:
    case Errc::kOutOfMemory:
    case Errc::kCantOpen:
    case Errc::kNotADatabase:
      return true;
    default:
      return false;
  }
}

Error&& Error::WithSlug(std::string slug) && {
  slug_ = std::move(slug);
  return std::move(*this);
}

Error&& Error::WithDetail(std::string key, Value value) && {
  details_.emplace_back(std::move(key), std::move(value));
  return std::move(*this);
}

Error&& Error::In(std::string_view where) && {
  message_.insert(0, ": ").insert(0, where);
  return std::move(*this);
}

std::ostream& operator<<(std::ostream& out, const Error& error) {
  return out << error.slug() << ": " << error.message();
}

}  // namespace interlock
