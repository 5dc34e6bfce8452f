#include "api/request.h"

#include <algorithm>

#include "base/check.h"
#include "domain/text.h"
#include "http/query.h"

namespace interlock::api {

const std::string& Request::Param(std::string_view name) const {
  const auto found = std::ranges::find(params, name, [](const auto& param) { return param.first; });
  IL_CHECK(found != params.end(), name);
  return found->second;
}

std::string Request::Query(std::string_view name) const {
  const auto found =
      std::ranges::find(query_fields, name, [](const auto& field) { return field.first; });
  return found == query_fields.end() ? std::string() : found->second;
}

std::optional<std::int64_t> Request::QueryNumber(std::string_view name) const {
  return http::ParseDecimal(domain::Trim(Query(name)));
}

std::optional<bool> Request::QueryBool(std::string_view name) const {
  return http::ParseBoolean(domain::Trim(Query(name)));
}

}  // namespace interlock::api
