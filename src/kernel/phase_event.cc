#include "kernel/phase_event.h"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "json/object_text.h"

namespace interlock::kernel {
namespace {

// phase_events' primary key.
constexpr db::Sql kAppend =
    "INSERT INTO phase_events (run_id, from_phase, to_phase, event_type, gate_result, gate_tier, "
    "reason, envelope_json, created_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9) RETURNING id";

// ic_phase_events_run, in its order.
constexpr db::Sql kEventsOf =
    "SELECT id, run_id, from_phase, to_phase, event_type, gate_result, gate_tier, reason, "
    "envelope_json, created_at FROM phase_events WHERE run_id = ?1 ORDER BY id";

// ic_phase_events_run, in its order.
constexpr db::Sql kSkipMarks =
    "SELECT event_type, from_phase, to_phase FROM phase_events WHERE run_id = ?1 "
    "AND event_type IN ('skip', 'rollback') ORDER BY id";

constexpr std::array kStatements = {IL_SQL(kAppend), IL_SQL(kEventsOf), IL_SQL(kSkipMarks)};

json::ArrayText Reference(std::string_view phase) {
  json::ArrayText references;
  if (!phase.empty()) references.Add(fmt::format("phase:{}", phase));
  return references;
}

std::string EnvelopeText(const PhaseEvent& event, const Origin& origin) {
  json::ObjectText text;
  text.Add("policy_version", "phase-machine/v1")
      .Add("caller_identity", "phase.store")
      .Add("capability_scope", fmt::format("run:{}", event.run_id))
      .Add("trace_id", origin.trace_id.value_or(event.run_id));
  if (origin.span_id) text.Add("span_id", *origin.span_id);
  if (origin.parent_span_id) text.Add("parent_span_id", *origin.parent_span_id);
  text.Add("input_artifact_refs", Reference(event.from_phase))
      .Add("output_artifact_refs", Reference(event.to_phase));
  return text.Text();
}

}  // namespace

Result<PhaseEvent> AppendPhaseEvent(db::Transaction& tx, PhaseEvent event, const Origin& origin) {
  event.envelope = EnvelopeText(event, origin);
  event.created_at = origin.now;
  IL_TRY(const auto id, tx->One(
                            kAppend, [](const db::Row& row) { return row.Int(0); }, event.run_id,
                            event.from_phase, event.to_phase, event.type, event.gate_result,
                            event.gate_tier, event.reason, event.envelope, event.created_at));
  event.id = id.value();
  return event;
}

Result<std::vector<PhaseEvent>> PhaseEventsOf(db::Connection& connection, std::string_view run_id) {
  std::vector<PhaseEvent> events;
  IL_TRY_VOID(connection.ForEach(
      kEventsOf,
      [&events](const db::Row& row) {
        events.push_back({.id = row.Int(0),
                          .run_id = row.String(1),
                          .from_phase = row.String(2),
                          .to_phase = row.String(3),
                          .type = row.String(4),
                          .gate_result = row.OptionalString(5),
                          .gate_tier = row.OptionalString(6),
                          .reason = row.OptionalString(7),
                          .envelope = row.OptionalString(8),
                          .created_at = row.Int(9)});
      },
      run_id));
  return events;
}

Result<PhaseNames> SkippedPhases(db::Connection& connection, std::string_view run_id,
                                 const PhaseChain& chain) {
  PhaseNames skipped;
  IL_TRY_VOID(connection.ForEach(
      kSkipMarks,
      [&](const db::Row& row) {
        if (row.Text(0) == "skip") {
          skipped.insert(row.String(2));
          return;
        }
        const auto from = chain.Find(row.Text(1));
        const auto to = chain.Find(row.Text(2));
        if (!from || !to || *to > *from) return;
        for (const std::string& undone : chain.Between(*to, *from)) skipped.erase(undone);
      },
      run_id));
  return skipped;
}

std::span<const db::NamedSql> PhaseEventStatements() { return kStatements; }

}  // namespace interlock::kernel
