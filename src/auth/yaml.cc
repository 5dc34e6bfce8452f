#include "auth/yaml.h"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <exception>
#include <sstream>

#include "base/utf8.h"

namespace interlock::auth {
namespace {

// Checks a document before it is built.
class Inspector final : public YAML::EventHandler {
 public:
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t /*anchor*/) override {
    throw YAML::ParserException(mark, "aliases (*name) are not supported; write the value instead");
  }
  void OnDocumentStart(const YAML::Mark& mark) override {
    if (++documents_ > 1) throw YAML::ParserException(mark, "a second document begins here");
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& /*mark*/, YAML::anchor_t /*anchor*/) override {}
  void OnScalar(const YAML::Mark& /*mark*/, const std::string& /*tag*/, YAML::anchor_t /*anchor*/,
                const std::string& /*value*/) override {}
  void OnSequenceStart(const YAML::Mark& /*mark*/, const std::string& /*tag*/,
                       YAML::anchor_t /*anchor*/, YAML::EmitterStyle::value /*style*/) override {}
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark& /*mark*/, const std::string& /*tag*/, YAML::anchor_t /*anchor*/,
                  YAML::EmitterStyle::value /*style*/) override {}
  void OnMapEnd() override {}

 private:
  int documents_ = 0;
};

// The library stops at some control characters and treats them as the end of the text.
Result<void> RefuseBinary(std::string_view text) {
  const auto refused = [text](std::size_t at, std::string_view what) {
    const auto line = 1 + std::ranges::count(text.substr(0, at), '\n');
    return Error(Errc::kInvalidArgument, fmt::format("line {}: {}", line, what));
  };
  for (std::size_t at = 0; at < text.size();) {
    const Utf8Unit unit = FirstUtf8Unit(text.substr(at));
    if (!unit.valid) return refused(at, "the text is not UTF-8");
    const char c = text[at];
    if (unit.code_point < 0x20 && c != '\t' && c != '\n' && c != '\r') {
      return refused(at, "the text contains a control character");
    }
    at += unit.size;
  }
  return {};
}

}  // namespace

Error YamlError(const YAML::Mark& mark, std::string_view what) {
  return Error(Errc::kInvalidArgument, fmt::format("line {}: {}", mark.line + 1, what));
}

Result<YAML::Node> ParseYaml(std::string_view text) {
  if (text.size() > kKeysFileBytesMax) {
    return Error(Errc::kInvalidArgument,
                 fmt::format("the file has more than {} bytes", kKeysFileBytesMax));
  }
  IL_TRY_VOID(RefuseBinary(text));
  try {
    const std::string copy(text);
    std::istringstream looked_at(copy);
    YAML::Parser parser(looked_at);
    Inspector inspector;
    while (parser.HandleNextDocument(inspector)) {
    }
    return YAML::Load(copy);
  } catch (const YAML::Exception& error) {
    // After a colon the library may quote a part of the text ("… anchor is not defined: name").
    return YamlError(error.mark, std::string_view(error.msg).substr(0, error.msg.find(':')));
  } catch (const std::exception& error) {
    return Error(Errc::kInvalidArgument, error.what());
  }
}

Result<std::string> WriteYaml(const YAML::Node& document) {
  try {
    YAML::Emitter out;
    out << document;
    if (!out.good()) return Error(Errc::kInternal, "cannot write the YAML");
    return std::string(out.c_str(), out.size()) + "\n";
  } catch (const std::exception& error) {
    return Error(Errc::kInternal, error.what());
  }
}

}  // namespace interlock::auth
