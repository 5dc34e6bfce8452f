#include "json/object_text.h"

#include "json/write.h"

namespace interlock::json {

ArrayText& ArrayText::Add(std::string_view text) {
  if (text_.size() > 1) text_ += ',';
  AppendQuoted(text_, text);
  return *this;
}

ArrayText& ArrayText::Add(const ObjectText& object) { return AddRaw(object.Text()); }

ArrayText& ArrayText::AddRaw(std::string_view json) {
  if (text_.size() > 1) text_ += ',';
  text_ += json;
  return *this;
}

ObjectText& ObjectText::Add(std::string_view key, std::string_view text) {
  AddKey(key);
  AppendQuoted(text_, text);
  return *this;
}

ObjectText& ObjectText::Add(std::string_view key, double number) {
  AddKey(key);
  AppendDouble(text_, number);
  return *this;
}

ObjectText& ObjectText::Add(std::string_view key, const ObjectText& object) {
  return AddRaw(key, object.Text());
}

ObjectText& ObjectText::Add(std::string_view key, const ArrayText& array) {
  return AddRaw(key, array.Text());
}

ObjectText& ObjectText::Add(std::string_view key, std::span<const std::string> texts) {
  ArrayText array;
  for (const std::string& text : texts) array.Add(text);
  return Add(key, array);
}

ObjectText& ObjectText::AddNull(std::string_view key) { return AddRaw(key, "null"); }

ObjectText& ObjectText::AddRaw(std::string_view key, std::string_view json) {
  AddKey(key);
  text_ += json;
  return *this;
}

void ObjectText::AddKey(std::string_view key) {
  if (text_.size() > 1) text_ += ',';
  AppendQuoted(text_, key);
  text_ += ':';
}

namespace internal {
std::string IntegerText(std::int64_t number) { return std::to_string(number); }
std::string IntegerText(std::uint64_t number) { return std::to_string(number); }
}  // namespace internal

}  // namespace interlock::json
