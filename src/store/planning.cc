#include "store/planning.h"

#include <array>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/time_text.h"
#include "json/codec.h"
#include "json/object_text.h"

namespace interlock::domain {
IL_JSON_FIELDS(PlanStep, order, action, expected, alternatives)
}  // namespace interlock::domain

namespace interlock::store {
namespace {

using domain::InfoOf;
using domain::Plan;
using domain::PlanField;
using domain::PlanInfo;
using domain::PlanRef;
using domain::PlanValue;

// plans' primary key.
constexpr db::Sql kFind =
    "SELECT version, body FROM plans WHERE kind = ?1 AND project = ?2 AND id = ?3";

// plans_in_order, read from its end, as are the others.
constexpr db::Sql kList =
    "SELECT body FROM plans WHERE kind = ?1 AND project = ?2 "
    "ORDER BY weight DESC, list_at DESC, id DESC LIMIT ?3 OFFSET ?4";

// plans_by_a; without the second value (?4) any will do, else that or another (?7).
constexpr db::Sql kListByA =
    "SELECT body FROM plans WHERE kind = ?1 AND project = ?2 AND filter_a = ?3 "
    "AND (?4 IS NULL OR filter_b IN (?4, ?7)) "
    "ORDER BY weight DESC, list_at DESC, id DESC LIMIT ?5 OFFSET ?6";

// Two ranges of plans_by_b, which are merged in their order; without the other value (?6) the
// second one is empty.
constexpr db::Sql kListByB =
    "SELECT body, weight, list_at, id FROM plans "
    "WHERE kind = ?1 AND project = ?2 AND filter_b = ?3 "
    "UNION ALL SELECT body, weight, list_at, id FROM plans "
    "WHERE kind = ?1 AND project = ?2 AND filter_b = ?6 "
    "ORDER BY weight DESC, list_at DESC, id DESC LIMIT ?4 OFFSET ?5";

// plans_anywhere. Only a person at this machine looks into every project, so this one looks at all
// of a kind instead of having two more indexes that every write would pay for.
constexpr db::Sql kListAnywhere =
    "SELECT body FROM plans WHERE kind = ?1 AND filter_a = coalesce(?2, filter_a) "
    "AND (?3 IS NULL OR filter_b IN (?3, ?6)) "
    "ORDER BY weight DESC, list_at DESC, project DESC, id DESC LIMIT ?4 OFFSET ?5";

// plans' primary key.
constexpr db::Sql kInsert =
    "INSERT INTO plans (kind, project, id, version, filter_a, filter_b, weight, list_at, body) "
    "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9) ON CONFLICT (kind, project, id) DO NOTHING";

// plans' primary key.
constexpr db::Sql kReplace =
    "UPDATE plans SET version = ?4, filter_a = ?5, filter_b = ?6, weight = ?7, list_at = ?8, "
    "body = ?9 WHERE kind = ?1 AND project = ?2 AND id = ?3 AND version = ?4 - 1";

// plans' primary key.
constexpr db::Sql kRemove = "DELETE FROM plans WHERE kind = ?1 AND project = ?2 AND id = ?3";

// cuj_links' primary key.
constexpr db::Sql kPutLink =
    "INSERT INTO cuj_links (project, cuj_id, feature_id, linked_at) VALUES (?1, ?2, ?3, ?4) "
    "ON CONFLICT (project, cuj_id, feature_id) DO UPDATE SET linked_at = excluded.linked_at";

// cuj_links' primary key.
constexpr db::Sql kRemoveLink =
    "DELETE FROM cuj_links WHERE project = ?1 AND cuj_id = ?2 AND feature_id = ?3";

// cuj_links' primary key.
constexpr db::Sql kRemoveLinks = "DELETE FROM cuj_links WHERE project = ?1 AND cuj_id = ?2";

// cuj_links' primary key.
constexpr db::Sql kListLinks =
    "SELECT feature_id, linked_at FROM cuj_links WHERE project = ?1 AND cuj_id = ?2 "
    "ORDER BY feature_id LIMIT ?3 OFFSET ?4";

constexpr db::NamedSql kStatements[] = {
    IL_SQL(kFind),         IL_SQL(kList),       IL_SQL(kListByA),     IL_SQL(kListByB),
    IL_SQL(kListAnywhere), IL_SQL(kInsert),     IL_SQL(kReplace),     IL_SQL(kRemove),
    IL_SQL(kPutLink),      IL_SQL(kRemoveLink), IL_SQL(kRemoveLinks), IL_SQL(kListLinks),
};

void AddTo(json::ObjectText& text, std::string_view name, const std::string& value) {
  text.Add(name, value);
}
void AddTo(json::ObjectText& text, std::string_view name, double value) { text.Add(name, value); }
void AddTo(json::ObjectText& text, std::string_view name, const std::vector<std::string>& value) {
  text.Add(name, std::span<const std::string>(value));
}
void AddTo(json::ObjectText& text, std::string_view name,
           const std::vector<domain::PlanStep>& steps) {
  json::ArrayText array;
  for (const domain::PlanStep& step : steps) {
    json::ObjectText object;
    object.Add("order", step.order).Add("action", step.action).Add("expected", step.expected);
    if (!step.alternatives.empty()) AddTo(object, "alternatives", step.alternatives);
    array.Add(object);
  }
  text.Add(name, array);
}

PlanValue EmptyOf(PlanField::Type type) {
  switch (type) {
    case PlanField::Type::kText:
      return std::string();
    case PlanField::Type::kTexts:
      return std::vector<std::string>();
    case PlanField::Type::kNumber:
      return 0.0;
    case PlanField::Type::kSteps:
      return std::vector<domain::PlanStep>();
  }
  IL_CHECK(false);
}

// Of our own text, in which nothing that is empty stands.
constexpr json::DecodeOptions kOwn = {.missing = json::Missing::kKeepDefault};

template <typename T>
Result<PlanValue> ReadAs(const json::Value& value) {
  IL_TRY(T read, json::Decode<T>(value, kOwn));
  return PlanValue(std::move(read));
}

Result<PlanValue> ReadValue(PlanField::Type type, const json::Value& value) {
  switch (type) {
    case PlanField::Type::kText:
      return ReadAs<std::string>(value);
    case PlanField::Type::kTexts:
      return ReadAs<std::vector<std::string>>(value);
    case PlanField::Type::kNumber:
      return ReadAs<double>(value);
    case PlanField::Type::kSteps:
      return ReadAs<std::vector<domain::PlanStep>>(value);
  }
  IL_CHECK(false);
}

Result<Timestamp> ReadTime(const json::Object& object, std::string_view name) {
  const json::Value* const value = object.if_contains(name);
  if (value == nullptr) return Error(Errc::kInvalidArgument, "missing " + std::string(name));
  return json::Decode<Timestamp>(*value, kOwn);
}

Result<Plan> ReadBody(const PlanRef& ref, std::int64_t version, std::string_view body) {
  const PlanInfo& info = InfoOf(ref.kind);
  Plan plan = {.kind = ref.kind, .project = ref.project, .id = ref.id, .version = version};
  IL_TRY(const json::Value value, json::Parse(body));
  if (!value.is_object()) return Error(Errc::kInvalidArgument, "no object");
  const json::Object& object = value.get_object();
  IL_TRY(plan.created_at, ReadTime(object, info.created_name));
  plan.updated_at = plan.created_at;
  if (!info.updated_name.empty()) {
    IL_TRY(plan.updated_at, ReadTime(object, info.updated_name));
  }
  for (const PlanField& field : info.fields) {
    const json::Value* const found = object.if_contains(field.name);
    if (found == nullptr) continue;
    IL_TRY(PlanValue read, ReadValue(field.type, *found));
    if (read != EmptyOf(field.type)) plan.values.emplace(field.name, std::move(read));
  }
  return plan;
}

// Runs kInsert or kReplace, whose parameters are the same; true when a row was written.
Result<bool> Put(db::Transaction& tx, const db::Sql& sql, const Plan& plan, std::string_view json) {
  const auto [filter_a, filter_b] = FilterValuesOf(plan);
  IL_TRY(const std::int64_t changed,
         tx->Run(sql, InfoOf(plan.kind).name, plan.project, plan.id, plan.version, filter_a,
                 filter_b, WeightOf(plan), ListTimeOf(plan).micros, json));
  return changed > 0;
}

// Takes rows until the page is full.
class Page {
 public:
  explicit Page(std::size_t bytes_max) : bytes_max_(bytes_max) {}

  Result<void> Add(const db::Row& row) {
    const std::string_view body = row.Text(0);
    constexpr std::size_t kCommaAndEnd = 2;
    page_.cut = page_.count > 0 && page_.json.size() + body.size() + kCommaAndEnd > bytes_max_;
    if (page_.cut) return Error(Errc::kCancelled, "the page is full");
    page_.json += page_.count == 0 ? '[' : ',';
    page_.json += body;
    ++page_.count;
    return {};
  }

  // What it took; `read` is how the statement ended, which for a full page is Add()'s error.
  Result<domain::PlanPage> Finish(const Result<std::int64_t>& read) {
    if (!read.ok() && !page_.cut) return read.error();
    page_.json += page_.count == 0 ? "[]" : "]";
    return std::move(page_);
  }

 private:
  const std::size_t bytes_max_;
  domain::PlanPage page_;
};

}  // namespace

std::string PlanJson(const Plan& plan) {
  const PlanInfo& info = InfoOf(plan.kind);
  json::ObjectText text;
  text.Add("id", plan.id).Add("project", plan.project);
  for (const PlanField& field : info.fields) {
    const auto add = [&](const auto& held) { AddTo(text, field.name, held); };
    const auto found = plan.values.find(field.name);
    if (found != plan.values.end()) {
      std::visit(add, found->second);
    } else if (field.need != PlanField::Need::kOptional) {
      std::visit(add, EmptyOf(field.type));
    }
  }
  if (info.locking == PlanInfo::Locking::kVersion) text.Add("version", plan.version);
  text.Add(info.created_name, FormatRfc3339(plan.created_at));
  if (!info.updated_name.empty()) text.Add(info.updated_name, FormatRfc3339(plan.updated_at));
  return text.Text();
}

std::string PlanFieldJson(std::string_view field, std::string_view text) {
  return json::ObjectText().Add(field, text).Text();
}

Result<std::optional<Plan>> FindPlan(db::Connection& connection, const PlanRef& ref) {
  std::optional<Plan> found;
  IL_TRY_VOID(connection.ForEach(
      kFind,
      [&](const db::Row& row) -> Result<void> {
        auto plan = ReadBody(ref, row.Int(0), row.Text(1));
        if (!plan.ok()) {
          return Error(Errc::kCorrupt, "a row of plans holds JSON of a wrong form (" +
                                           plan.error().message() + "): put back a backup");
        }
        found = *std::move(plan);
        return {};
      },
      InfoOf(ref.kind).name, ref.project, ref.id));
  return found;
}

Result<std::optional<std::string>> FindPlanJson(db::Connection& connection, const PlanRef& ref) {
  return connection.One(
      kFind, [](const db::Row& row) { return row.String(1); }, InfoOf(ref.kind).name, ref.project,
      ref.id);
}

Result<domain::PlanPage> ListPlans(db::Connection& connection, const domain::PlanQuery& query) {
  const std::string_view kind = InfoOf(query.kind).name;
  const auto& [filter_a, filter_b] = query.filters;
  const auto& or_b = query.second_or;
  Page page(query.bytes_max);
  const auto add = [&page](const db::Row& row) { return page.Add(row); };
  if (!query.project) {
    return page.Finish(connection.ForEach(kListAnywhere, add, kind, filter_a, filter_b, query.limit,
                                          query.offset, or_b));
  }
  if (filter_a) {
    return page.Finish(connection.ForEach(kListByA, add, kind, *query.project, *filter_a, filter_b,
                                          query.limit, query.offset, or_b));
  }
  if (filter_b) {
    return page.Finish(connection.ForEach(kListByB, add, kind, *query.project, *filter_b,
                                          query.limit, query.offset, or_b));
  }
  return page.Finish(
      connection.ForEach(kList, add, kind, *query.project, query.limit, query.offset));
}

Result<bool> InsertPlan(db::Transaction& tx, const Plan& plan, std::string_view json) {
  return Put(tx, kInsert, plan, json);
}

Result<bool> ReplacePlan(db::Transaction& tx, const Plan& plan, std::string_view json) {
  return Put(tx, kReplace, plan, json);
}

Result<bool> RemovePlan(db::Transaction& tx, const PlanRef& ref) {
  IL_TRY(const std::int64_t removed, tx->Run(kRemove, InfoOf(ref.kind).name, ref.project, ref.id));
  if (removed == 0) return false;
  if (ref.kind == domain::PlanKind::kCuj) {
    IL_TRY_VOID(tx->Run(kRemoveLinks, ref.project, ref.id));
  }
  return true;
}

Result<void> PutCujLink(db::Transaction& tx, const domain::CujLink& link) {
  IL_TRY_VOID(tx->Run(kPutLink, link.project, link.cuj_id, link.feature_id, link.linked_at.micros));
  return {};
}

Result<bool> RemoveCujLink(db::Transaction& tx, const domain::CujLink& link) {
  IL_TRY(const std::int64_t removed,
         tx->Run(kRemoveLink, link.project, link.cuj_id, link.feature_id));
  return removed > 0;
}

Result<std::string> ListCujLinks(db::Connection& connection, const PlanRef& cuj, std::int64_t limit,
                                 std::int64_t offset) {
  json::ArrayText links;
  IL_TRY_VOID(connection.ForEach(
      kListLinks,
      [&](const db::Row& row) {
        links.Add(json::ObjectText()
                      .Add("cuj_id", cuj.id)
                      .Add("feature_id", row.Text(0))
                      .Add("project", cuj.project)
                      .Add("linked_at", FormatRfc3339({row.Int(1)})));
      },
      cuj.project, cuj.id, limit, offset));
  return links.Text();
}

std::span<const db::NamedSql> PlanStatements() { return kStatements; }

}  // namespace interlock::store
