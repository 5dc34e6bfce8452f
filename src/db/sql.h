#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

namespace interlock::db {

// The text of one SQL statement. Only a literal becomes one, so no value of a request can ever be
// pasted into SQL; values are bound as ?1, ?2, …
//
// Declare it as a constant beside the code that runs it, with a comment that names the index it
// relies on, and list it in its folder's Statements(): the query-plan test (tests/plan) explains
// all of those, and finds in the sources the constants that are not listed, and literals that look
// like SQL but are no such constant. A connection prepares each Sql once; two objects with equal
// text share the statement.
class Sql {
 public:
  consteval Sql(const char* text) : text_(text) {}  // NOLINT(google-explicit-constructor)
  constexpr std::string_view text() const { return text_; }

 private:
  std::string_view text_;
};

// An Sql with the name of its constant, as Statements() lists it: IL_SQL(kFindAgent).
struct NamedSql {
  std::string_view name;
  Sql sql;
};
#define IL_SQL(constant) \
  ::interlock::db::NamedSql { #constant, constant }

struct Null {};
using Blob = std::span<const std::byte>;

// A bound parameter. Text and blobs are not copied: they must live until the statement has run.
using Value = std::variant<Null, std::int64_t, double, std::string_view, Blob>;

// What may be bound: integers (an unsigned 64-bit one does not compile), bool, double, text, Blob,
// Null, and optional<…> of these.
inline Value Bind(Null) { return Null{}; }
inline Value Bind(bool value) { return std::int64_t{value}; }
inline Value Bind(int value) { return std::int64_t{value}; }
inline Value Bind(std::int64_t value) { return value; }
inline Value Bind(std::uint32_t value) { return std::int64_t{value}; }
Value Bind(std::uint64_t) = delete;  // does not fit the database's integers
inline Value Bind(double value) { return value; }
inline Value Bind(std::string_view value) { return value; }
inline Value Bind(const std::string& value) { return std::string_view(value); }
Value Bind(std::string&&) = delete;  // would dangle
inline Value Bind(const char* value) { return std::string_view(value); }
inline Value Bind(Blob value) { return value; }
template <typename T>
Value Bind(const T*) = delete;  // would become a bool
template <typename T>
Value Bind(const std::optional<T>& value) {
  if (!value) return Null{};
  return Bind(*value);
}

// The current row of a running statement. Columns count from 0. Text and blobs are views that die
// when the callback that received the row returns. Reading a column as a type it does not have
// ends the statement with kCorrupt, for any program may have written it (an integer may be read as
// a double); a NULL read as text is "", as a number 0, unless asked with IsNull.
class Row {
 public:
  virtual bool IsNull(int column) const = 0;
  virtual std::int64_t Int(int column) const = 0;
  virtual double Double(int column) const = 0;
  virtual std::string_view Text(int column) const = 0;
  virtual Blob Bytes(int column) const = 0;

  bool Bool(int column) const { return Int(column) != 0; }
  std::string String(int column) const { return std::string(Text(column)); }
  std::optional<std::int64_t> OptionalInt(int column) const {
    if (IsNull(column)) return std::nullopt;
    return Int(column);
  }
  std::optional<std::string> OptionalString(int column) const {
    if (IsNull(column)) return std::nullopt;
    return String(column);
  }

 protected:
  ~Row() = default;
};

}  // namespace interlock::db
