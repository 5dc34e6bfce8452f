#include "store/meta.h"

#include <fmt/format.h>

#include <charconv>

#include "base/check.h"

namespace interlock::store {
namespace {

// meta's primary key.
constexpr db::Sql kGetMeta = "SELECT value FROM meta WHERE key = ?1";

// meta's primary key. The first value stays.
constexpr db::Sql kAddMeta =
    "INSERT INTO meta (key, value) VALUES (?1, ?2) ON CONFLICT (key) DO NOTHING";

constexpr db::NamedSql kStatements[] = {IL_SQL(kGetMeta), IL_SQL(kAddMeta)};

// Part of the file's format.
constexpr std::string_view kInstanceId = "instance_id";
constexpr std::string_view kLogId = "log_id";
constexpr std::string_view kCreatedAt = "created_at";  // microseconds since 1970, decimal

Result<std::optional<std::string>> Get(db::Connection& connection, std::string_view key) {
  return connection.One(kGetMeta, [](const db::Row& row) { return row.String(0); }, key);
}

Result<Timestamp> ParseCreatedAt(std::string_view text) {
  Timestamp time;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), time.micros);
  if (error == std::errc() && end == text.data() + text.size()) return time;
  return Error(Errc::kCorrupt,
               fmt::format("meta.created_at is '{}', not a time: put back a backup", text));
}

}  // namespace

Result<Instance> EnsureInstance(db::Transaction& tx, std::string_view new_id, Timestamp now) {
  IL_CHECK(!new_id.empty());
  IL_TRY_VOID(tx->Run(kAddMeta, kInstanceId, new_id));
  const std::string created_at = std::to_string(now.micros);
  IL_TRY_VOID(tx->Run(kAddMeta, kCreatedAt, created_at));
  IL_TRY(std::optional<Instance> instance, FindInstance(tx.connection()));
  IL_CHECK(instance.has_value());
  return *std::move(instance);
}

Result<std::optional<Instance>> FindInstance(db::Connection& connection) {
  IL_TRY(std::optional<std::string> id, Get(connection, kInstanceId));
  IL_TRY(const std::optional<std::string> created_at, Get(connection, kCreatedAt));
  if (!id || !created_at) return std::optional<Instance>();
  IL_TRY(const Timestamp time, ParseCreatedAt(*created_at));
  return std::optional(Instance{*std::move(id), time});
}

Result<std::string> ReadLogId(db::Connection& connection) {
  IL_TRY(std::optional<std::string> id, Get(connection, kLogId));
  if (id && !id->empty()) return *std::move(id);
  return Error(Errc::kCorrupt, "meta.log_id is missing: put back a backup");
}

std::span<const db::NamedSql> MetaStatements() { return kStatements; }

}  // namespace interlock::store
