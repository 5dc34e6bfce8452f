#pragma once

// The codecs themselves; see json/codec.h, which includes this.

#include <array>
#include <type_traits>

#include "json/codec.h"

namespace interlock::json {
namespace internal {

// Range-checked reading of numbers, out of line so that each integer type costs two instructions.
Result<std::int64_t> DecodeSigned(const Value& value, std::int64_t low, std::int64_t high,
                                  const DecodeContext& at);
Result<std::uint64_t> DecodeUnsigned(const Value& value, std::uint64_t high,
                                     const DecodeContext& at);

// The member that holds field `name`, or nullptr. `names` are all fields of the struct: a member
// that is exactly one of them never stands in for another.
const Value* FindMember(const Object& object, std::string_view name,
                        std::span<const std::string_view> names, const DecodeOptions& options);
Result<void> RefuseUnknown(const Object& object, std::span<const std::string_view> names,
                           const DecodeContext& at);
Error MissingField(const DecodeContext& at);

template <typename T>
inline constexpr bool kIsOptional = false;
template <typename T>
inline constexpr bool kIsOptional<std::optional<T>> = true;
template <typename T>
inline constexpr bool kIsField = false;
template <typename T>
inline constexpr bool kIsField<Field<T>> = true;

template <typename T>
concept Described = boost::describe::has_describe_members<T>::value;

template <typename T>
using MembersOf = boost::describe::describe_members<T, boost::describe::mod_public>;

consteval std::string_view JsonName(std::string_view member) {
  if (member.ends_with('_')) member.remove_suffix(1);
  return member;
}

// Reads one member. `initial` is what the struct gives the field when nothing is sent.
template <typename M>
Result<M> DecodeMember(const Value* found, M initial,  // NOLINT(*-unnecessary-value-param)
                       const DecodeContext& at) {
  if constexpr (kIsField<M>) {
    if (found == nullptr) return M();
    if (found->is_null()) return M::Null();
    IL_TRY(typename M::value_type value, Codec<typename M::value_type>::Decode(*found, at));
    return M(std::move(value));
  } else {
    const bool absent =
        found == nullptr || (found->is_null() && at.options.nulls == Nulls::kAsAbsent);
    if (!absent) {
      if constexpr (kIsOptional<M>) {
        IL_TRY(typename M::value_type value, Codec<typename M::value_type>::Decode(*found, at));
        return M(std::move(value));
      } else {
        return Codec<M>::Decode(*found, at);
      }
    }
    if constexpr (kIsOptional<M>) {
      return M();
    } else {
      if (at.options.missing == Missing::kKeepDefault) return M(std::move(initial));
      if constexpr (std::same_as<M, Value>) {
        if (found != nullptr) return M();  // a null that was sent is a value like any other
      }
      return MissingField(at);
    }
  }
}

}  // namespace internal

template <>
struct Codec<bool> {
  static Result<bool> Decode(const Value& value, const DecodeContext& at);
  static Value Encode(bool value) { return value; }
};

template <>
struct Codec<double> {
  static Result<double> Decode(const Value& value, const DecodeContext& at);
  static Value Encode(double value) { return value; }
};

template <>
struct Codec<std::string> {
  static Result<std::string> Decode(const Value& value, const DecodeContext& at);
  static Value Encode(std::string_view value);
};

// RFC 3339, written in UTC with the fraction trimmed.
template <>
struct Codec<Timestamp> {
  static Result<Timestamp> Decode(const Value& value, const DecodeContext& at);
  static Value Encode(Timestamp value);
};

template <>
struct Codec<Value> {
  static Result<Value> Decode(const Value& value, const DecodeContext& /*at*/) {
    return Value(value);
  }
  static Value Encode(const Value& value) { return value; }
};

// Whole numbers, however they are written: 10, 10.0 and 1e1 are the same.
template <std::integral Int>
struct Codec<Int> {
  using Limits = std::numeric_limits<Int>;

  static Result<Int> Decode(const Value& value, const DecodeContext& at) {
    if constexpr (std::signed_integral<Int>) {
      IL_TRY(const std::int64_t n, internal::DecodeSigned(value, Limits::min(), Limits::max(), at));
      return static_cast<Int>(n);
    } else {
      IL_TRY(const std::uint64_t n, internal::DecodeUnsigned(value, Limits::max(), at));
      return static_cast<Int>(n);
    }
  }
  static Value Encode(Int value) {
    if constexpr (std::signed_integral<Int>) {
      return Value(std::int64_t{value});
    } else {
      return Value(std::uint64_t{value});
    }
  }
};

// As an element, or inside another optional; members are handled by DecodeMember().
template <typename T>
struct Codec<std::optional<T>> {
  static Result<std::optional<T>> Decode(const Value& value, const DecodeContext& at) {
    if (value.is_null()) return std::optional<T>();
    IL_TRY(T inner, Codec<T>::Decode(value, at));
    return std::optional<T>(std::move(inner));
  }
  static Value Encode(const std::optional<T>& value) {
    return value ? Codec<T>::Encode(*value) : Value();
  }
};

template <typename T>
struct Codec<std::vector<T>> {
  static Result<std::vector<T>> Decode(const Value& value, const DecodeContext& at) {
    if (!value.is_array()) return WrongType(at, "array", value);
    const Array& array = value.get_array();
    std::vector<T> out;
    out.reserve(array.size());
    for (std::size_t i = 0; i < array.size(); ++i) {
      const Path path{.parent = at.path, .index = i};
      IL_TRY(T element, Codec<T>::Decode(array[i], DecodeContext{at.options, &path}));
      out.push_back(std::move(element));
    }
    return out;
  }
  static Value Encode(const std::vector<T>& values) {
    Array array;
    array.reserve(values.size());
    for (const T& value : values) array.push_back(Codec<T>::Encode(value));
    return array;
  }
};

// Keys are taken as they are. A null entry counts as not sent, where nulls do.
template <typename T>
struct Codec<std::map<std::string, T>> {
  static Result<std::map<std::string, T>> Decode(const Value& value, const DecodeContext& at) {
    if (!value.is_object()) return WrongType(at, "object", value);
    std::map<std::string, T> out;
    for (const auto& member : value.get_object()) {
      const std::string_view key(member.key().data(), member.key().size());
      if (!std::same_as<T, Value> && !internal::kIsOptional<T> && member.value().is_null() &&
          at.options.nulls == Nulls::kAsAbsent) {
        continue;
      }
      const Path path{.parent = at.path, .name = key};
      IL_TRY(T element, Codec<T>::Decode(member.value(), DecodeContext{at.options, &path}));
      out.emplace(key, std::move(element));
    }
    return out;
  }
  static Value Encode(const std::map<std::string, T>& values) {
    Object object;
    object.reserve(values.size());
    for (const auto& [key, value] : values) object.emplace(key, Codec<T>::Encode(value));
    return object;
  }
};

template <internal::Described T>
struct Codec<T> {
  using Members = internal::MembersOf<T>;

  static Result<T> Decode(const Value& value, const DecodeContext& at) {
    if (!value.is_object()) return WrongType(at, "object", value);
    const Object& object = value.get_object();
    T out{};
    std::optional<Error> failed;
    boost::mp11::mp_for_each<Members>([&](auto member) {
      if (failed) return;
      static constexpr std::string_view kName = internal::JsonName(decltype(member)::name);
      const Path path{.parent = at.path, .name = kName};
      auto& field = out.*member.pointer;
      auto decoded =
          internal::DecodeMember(internal::FindMember(object, kName, Names(), at.options),
                                 std::move(field), DecodeContext{at.options, &path});
      if (decoded.ok()) {
        field = std::move(decoded).value();
      } else {
        failed = std::move(decoded).error();
      }
    });
    if (failed) return *std::move(failed);
    IL_TRY_VOID(internal::RefuseUnknown(object, Names(), at));
    return out;
  }

  static Value Encode(const T& value) {
    Object object;
    object.reserve(boost::mp11::mp_size<Members>::value);
    boost::mp11::mp_for_each<Members>([&](auto member) {
      static constexpr std::string_view kName = internal::JsonName(decltype(member)::name);
      const auto& field = value.*member.pointer;
      using M = std::remove_cvref_t<decltype(field)>;
      if constexpr (internal::kIsOptional<M>) {
        if (field) object.emplace(kName, Codec<typename M::value_type>::Encode(*field));
      } else if constexpr (internal::kIsField<M>) {
        if (field.null()) object.emplace(kName, nullptr);
        if (field.present()) object.emplace(kName, Codec<typename M::value_type>::Encode(*field));
      } else {
        object.emplace(kName, Codec<M>::Encode(field));
      }
    });
    return object;
  }

 private:
  static std::span<const std::string_view> Names() {
    return []<typename... D>(boost::mp11::mp_list<D...>) {
      static constexpr std::array<std::string_view, sizeof...(D)> kNames = {
          internal::JsonName(D::name)...};
      return std::span<const std::string_view>(kNames);
    }(boost::mp11::mp_rename<Members, boost::mp11::mp_list>());
  }
};

}  // namespace interlock::json
