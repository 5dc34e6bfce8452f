#pragma once

// How each type says its schema; see json/schema.h, which includes this.

#include "json/schema.h"

namespace interlock::json {

template <>
struct SchemaFor<bool> {
  static Value Make(Missing /*missing*/) { return BooleanSchema(); }
};

template <>
struct SchemaFor<double> {
  static Value Make(Missing /*missing*/) { return NumberSchema(); }
};

template <>
struct SchemaFor<std::string> {
  static Value Make(Missing /*missing*/) { return StringSchema(); }
};

template <>
struct SchemaFor<Timestamp> {
  static Value Make(Missing /*missing*/) { return TimeSchema(); }
};

template <>
struct SchemaFor<Value> {
  static Value Make(Missing /*missing*/) { return AnySchema(); }
};

template <std::integral Int>
struct SchemaFor<Int> {
  static Value Make(Missing /*missing*/) {
    using Range = std::numeric_limits<Int>;
    return IntegerSchema(Range::min(), static_cast<std::uint64_t>(Range::max()));
  }
};

// As an element: null stands for nothing. As a member it is absent instead.
template <typename T>
struct SchemaFor<std::optional<T>> {
  static Value Make(Missing missing) { return NullableSchema(SchemaFor<T>::Make(missing)); }
};

template <typename T>
struct SchemaFor<std::vector<T>> {
  static Value Make(Missing missing) { return ArraySchema(SchemaFor<T>::Make(missing)); }
};

template <typename T>
struct SchemaFor<std::map<std::string, T>> {
  static Value Make(Missing missing) { return MapSchema(SchemaFor<T>::Make(missing)); }
};

template <internal::Described T>
struct SchemaFor<T> {
  static Value Make(Missing missing) {
    Value schema = ObjectSchema({});
    boost::mp11::mp_for_each<internal::MembersOf<T>>([&](auto member) {
      using M = std::remove_cvref_t<decltype(std::declval<T&>().*member.pointer)>;
      schema = WithMember(std::move(schema),
                          MemberOf<M>(internal::JsonName(decltype(member)::name), missing));
    });
    return schema;
  }

 private:
  template <typename M>
  static SchemaMember MemberOf(std::string_view name, Missing missing) {
    if constexpr (internal::kIsOptional<M>) {
      return {name, SchemaFor<typename M::value_type>::Make(missing), Need::kOptional};
    } else if constexpr (internal::kIsField<M>) {
      return {name, NullableSchema(SchemaFor<typename M::value_type>::Make(missing)),
              Need::kOptional};
    } else {
      return {name, SchemaFor<M>::Make(missing),
              missing == Missing::kRefuse ? Need::kRequired : Need::kOptional};
    }
  }
};

}  // namespace interlock::json
