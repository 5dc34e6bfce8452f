#include "store/topics.h"

#include "store/events.h"
#include "store/message_view.h"

namespace interlock::store {
namespace {

// messages_of_topic, as a range in its order.
constexpr db::Sql kReadTopic = "SELECT " IL_MESSAGE_COLUMNS
                               " FROM messages AS m "
                               "WHERE m.project = ?1 AND m.topic = ?2 AND m.cursor > ?3 "
                               "ORDER BY m.cursor LIMIT ?4";

constexpr db::NamedSql kStatements[] = {IL_SQL(kReadTopic)};

}  // namespace

Result<void> ReadTopic(db::Connection& connection, const domain::TopicQuery& query,
                       domain::MessageSink& sink) {
  IL_TRY_VOID(RefuseAhead(connection, query.after));
  return ReadMessages(connection, sink, kReadTopic, MessageViewFrom, query.project, query.topic,
                      query.after, query.limit);
}

std::span<const db::NamedSql> TopicStatements() { return kStatements; }

}  // namespace interlock::store
