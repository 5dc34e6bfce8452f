#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/result.h"

// What agents plan by: specs, their epics, the epics' stories and the stories' tasks; insights,
// work sessions and critical user journeys (cujs). They differ only in what PlanInfo says of each,
// so there is one way to check, store, list and show them: everything else loops over the
// description.
//
// To add a field, or a kind, add it to planning.cc; nothing else in the tree names one.
//
// Values and pure functions.
namespace interlock::domain {

enum class PlanKind : std::uint8_t { kSpec, kEpic, kStory, kTask, kInsight, kSession, kCuj };

// One step of a critical user journey.
struct PlanStep {
  std::int64_t order = 0;
  std::string action = {};
  std::string expected = {};
  std::vector<std::string> alternatives = {};

  bool operator==(const PlanStep&) const = default;
};

// What a field holds. "", no elements and 0 are empty: the same as nothing.
using PlanValue =
    std::variant<std::string, std::vector<std::string>, double, std::vector<PlanStep>>;
// By the names of fields as their description has them, whose bytes the keys are.
using PlanValues = std::map<std::string_view, PlanValue>;

struct PlanField {
  enum class Type : std::uint8_t { kText, kTexts, kNumber, kSteps };  // as PlanValue has them
  enum class Need : std::uint8_t {
    kOptional,  // not shown when it is empty
    kShown,     // shown also when it is empty
    kRequired,  // may not be blank
  };
  std::string_view name;
  Type type = Type::kText;
  Need need = Need::kOptional;
  // A text that must be one of these; empty means `initial`.
  std::span<const std::string_view> choices = {};
  std::string_view initial = {};
};

// A list can be narrowed to those whose field is what the parameter of the query says.
struct PlanFilter {
  std::string_view parameter;
  std::string_view field;
  std::string_view meaning;  // for people
};
inline constexpr std::size_t kPlanFiltersMax = 2;  // columns of the table

// Everything that one kind has and others do not.
struct PlanInfo {
  enum class Locking : std::uint8_t {
    kVersion,  // a change names the version that it is made from
    kNone,     // the last change counts
  };
  enum class Version : std::uint8_t { kFromOne, kAsSent };  // of a new one
  enum class Time : std::uint8_t { kCreated, kUpdated };

  PlanKind kind;
  std::string_view name;    // "spec": in the table and in events
  std::string_view plural;  // "specs": in paths
  std::span<const PlanField> fields;
  std::span<const PlanFilter> filters;  // at most kPlanFiltersMax

  Locking locking = Locking::kVersion;
  Version version = Version::kFromOne;
  std::string_view created_name = "created_at";
  std::string_view updated_name = "updated_at";  // empty = it shows none

  // A list is in the order of this number or of its choices, if it names a field, then the latest
  // first.
  std::string_view weighed_by = {};
  Time listed_by = Time::kUpdated;

  // Types of events. One that sends `final_status` has an event of its own.
  std::string_view created_event;
  std::string_view updated_event;
  std::string_view deleted_event;
  std::string_view final_status = {};
  std::string_view final_event = {};
};

const PlanInfo& InfoOf(PlanKind kind);
std::span<const PlanInfo> AllPlanInfos();  // in the order of the enum

// "a spec", "an epic"
std::string Named(const PlanInfo& info);

// Which one. Ids are chosen by clients, so the same one may be there in every project and kind.
struct PlanRef {
  PlanKind kind = {};
  std::string project = {};
  std::string id = {};
};

struct Plan {
  PlanKind kind = {};
  std::string project = {};
  std::string id = {};
  std::int64_t version = 1;  // one more with each change, also where clients do not see it
  Timestamp created_at = {};
  Timestamp updated_at = {};
  PlanValues values = {};  // none of them empty

  bool operator==(const Plan&) const = default;
};

// What a client sent: a new one, or what is to be different in one that is there.
struct PlanChange {
  std::int64_t version = 0;                  // that it was made from
  std::optional<Timestamp> created_at = {};  // of a new one
  std::optional<Timestamp> updated_at = {};  // of a new one
  PlanValues values = {};                    // what is not here stays; what is empty is cleared
};

// `plan` with the change made, which may be to nothing: a field with choices that is empty gets its
// initial one. kInvalidArgument names the field that may not be blank, holds a NUL, or is none of
// its choices (slug invalid_status, invalid_priority).
Result<Plan> Apply(const PlanChange& change, Plan plan);

// The text of a field; "" when it is empty or no text.
std::string_view TextOf(const PlanValues& values, std::string_view field);

// The type of the event that tells of `change`.
std::string_view UpdateEvent(const PlanInfo& info, const PlanChange& change);

// What lists go by. The greater weight comes first, then the later time.
double WeightOf(const Plan& plan);
Timestamp ListTimeOf(const Plan& plan);
// The values that filters look for, in the order of PlanInfo::filters; "" where there are fewer.
std::array<std::string_view, kPlanFiltersMax> FilterValuesOf(const Plan& plan);

// One page of a list.
struct PlanQuery {
  PlanKind kind = {};
  std::optional<std::string> project = {};  // nothing = every project
  // In the order of PlanInfo::filters; nothing = any.
  std::array<std::optional<std::string>, kPlanFiltersMax> filters = {};
  // Another value that the second filter lets through.
  std::optional<std::string> second_or = {};
  std::int64_t limit = 0;
  std::int64_t offset = 0;
  std::size_t bytes_max = 0;  // of the page's text, but for its first element
};

struct PlanPage {
  std::string json = {};  // an array
  std::int64_t count = 0;
  bool cut = false;  // more would have been on it, but for bytes_max
};

// That a critical user journey touches a feature. Neither need be known to us.
struct CujLink {
  std::string project;
  std::string cuj_id;
  std::string feature_id;
  Timestamp linked_at = {};

  bool operator==(const CujLink&) const = default;
};

}  // namespace interlock::domain
