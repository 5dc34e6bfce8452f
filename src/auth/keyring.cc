#include "auth/keyring.h"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <exception>
#include <map>
#include <set>
#include <utility>

#include "auth/yaml.h"
#include "domain/text.h"

namespace interlock::auth {
namespace {

constexpr std::string_view kHashPrefix = "sha256:";

// Every request with a key is compared with all keys, so their number is limited.
constexpr std::size_t kKeysMax = 4096;

bool IsAbsent(const YAML::Node& node) { return !node.IsDefined() || node.IsNull(); }

Result<void> ExpectMap(const YAML::Node& node, std::string_view what) {
  if (node.IsMap()) return {};
  return YamlError(node.Mark(), fmt::format("{} must be a mapping", what));
}

// The library silently uses the first of two fields with the same name, so duplicates are errors.
// Messages never show a name of the file: in a damaged file it may be a key.
Result<void> RefuseRepeated(const YAML::Node& map) {
  std::set<std::string, std::less<>> names;
  for (const auto& field : map) {
    if (!field.first.IsScalar()) return YamlError(field.first.Mark(), "a name must be a text");
    if (!names.emplace(domain::Trim(field.first.Scalar())).second) {
      return YamlError(field.first.Mark(), "this name is a duplicate");
    }
  }
  return {};
}

std::string AsciiLower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

// The boolean words of YAML 1.1, in any letter case. The library's own conversion shares a table
// between threads without a lock.
std::optional<bool> ReadBool(std::string_view text) {
  const std::string word = AsciiLower(text);
  for (const std::string_view yes : {"true", "yes", "on", "y"}) {
    if (word == yes) return true;
  }
  for (const std::string_view no : {"false", "no", "off", "n"}) {
    if (word == no) return false;
  }
  return std::nullopt;
}

// A name without a value is an error: its meaning is unclear, and the file may be half-written.
Result<LocalPolicy> ReadPolicy(const YAML::Node& policy) {
  constexpr const char* kName = "allow_localhost_without_auth";
  if (!policy.IsDefined()) return LocalPolicy::kNoKeyNeeded;
  IL_TRY_VOID(ExpectMap(policy, "'default_policy'"));
  IL_TRY_VOID(RefuseRepeated(policy));
  for (const auto& field : policy) {
    // A misspelt name would leave access open that the operator meant to close.
    if (field.first.Scalar() != kName) {
      return YamlError(field.first.Mark(),
                       fmt::format("'default_policy' supports only '{}'", kName));
    }
  }
  const YAML::Node allowed = policy[kName];
  if (!allowed.IsDefined()) return LocalPolicy::kNoKeyNeeded;
  const std::optional<bool> value = allowed.IsScalar() ? ReadBool(allowed.Scalar()) : std::nullopt;
  if (!value) return YamlError(allowed.Mark(), fmt::format("'{}' must be true or false", kName));
  return *value ? LocalPolicy::kNoKeyNeeded : LocalPolicy::kKeyNeeded;
}

// Returns the digest of an entry of `keys`, or nullopt for a blank entry.
Result<std::optional<Digest>> ReadKey(const YAML::Node& entry) {
  if (IsAbsent(entry)) return std::optional<Digest>();
  if (!entry.IsScalar()) return YamlError(entry.Mark(), "a key must be a text");
  const std::string_view key = domain::Trim(entry.Scalar());
  if (key.empty()) return std::optional<Digest>();
  if (!key.starts_with(kHashPrefix)) return std::optional<Digest>(Sha256(key));
  const auto digest = ParseDigest(key.substr(kHashPrefix.size()));
  if (!digest) {
    return YamlError(entry.Mark(), "after 'sha256:' there must be 64 hexadecimal digits");
  }
  return digest;
}

}  // namespace

// Builds a Keyring project by project.
class Keyring::Reader {
 public:
  Result<Keyring> Read(const YAML::Node& document) {
    if (IsAbsent(document)) return std::move(keyring_);
    if (!document.IsMap()) {
      return YamlError(document.Mark(), "a keys file is a mapping with 'projects'");
    }
    IL_TRY_VOID(RefuseRepeated(document));
    IL_TRY(keyring_.local_policy_, ReadPolicy(document["default_policy"]));
    const YAML::Node projects = document["projects"];
    if (IsAbsent(projects)) return std::move(keyring_);
    IL_TRY_VOID(ExpectMap(projects, "'projects'"));
    IL_TRY_VOID(RefuseRepeated(projects));
    for (const auto& project : projects) {
      IL_TRY_VOID(ReadProject(project.first, project.second));
    }
    return std::move(keyring_);
  }

 private:
  Result<void> ReadProject(const YAML::Node& name_node, const YAML::Node& project) {
    const std::string name(domain::ProjectName(name_node.Scalar()));
    if (name.empty()) return YamlError(name_node.Mark(), "a project needs a name");
    if (IsAbsent(project)) return {};
    IL_TRY_VOID(ExpectMap(project, "a project"));
    IL_TRY_VOID(RefuseRepeated(project));
    const YAML::Node keys = project["keys"];
    if (IsAbsent(keys)) return {};
    if (!keys.IsSequence()) return YamlError(keys.Mark(), "'keys' must be a list");
    // "web" and "web/" are the same project.
    std::vector<std::string>& projects = keyring_.projects_;
    const auto place =
        static_cast<std::size_t>(std::ranges::find(projects, name) - projects.begin());
    const std::size_t before = keyring_.keys_.size();
    for (const YAML::Node& entry : keys) {
      IL_TRY(const std::optional<Digest> digest, ReadKey(entry));
      if (digest) IL_TRY_VOID(Add(*digest, place, entry.Mark()));
    }
    if (place == projects.size() && keyring_.keys_.size() > before) projects.push_back(name);
    return {};
  }

  // `project` is an index of projects_, or its size.
  Result<void> Add(const Digest& digest, std::size_t project, const YAML::Mark& mark) {
    const auto [known, is_new] = known_.emplace(digest, Place{project, mark.line + 1});
    if (!is_new && known->second.project != project) {
      return YamlError(mark, fmt::format("line {} has the same key under another project; a key "
                                         "opens one project only",
                                         known->second.line));
    }
    if (!is_new) return {};
    if (keyring_.keys_.size() == kKeysMax) {
      return YamlError(mark, fmt::format("the file has more than {} keys", kKeysMax));
    }
    keyring_.keys_.push_back({digest, project});
    return {};
  }

  struct Place {
    std::size_t project;
    int line;
  };

  Keyring keyring_;
  std::map<Digest, Place> known_;
};

Result<Keyring> Keyring::Parse(std::string_view yaml) {
  IL_TRY(const YAML::Node document, ParseYaml(yaml));
  try {
    return Reader().Read(document);
  } catch (const std::exception& error) {  // of the library: a node of an unexpected kind
    return Error(Errc::kInternal, error.what());
  }
}

std::optional<std::string> Keyring::Find(std::string_view key) const {
  return FindDigest(Sha256(key));
}

bool Keyring::Includes(const Keyring& other) const {
  return std::ranges::all_of(other.keys_, [&](const Key& key) {
    return FindDigest(key.digest) == other.projects_[key.project];
  });
}

std::optional<std::string> Keyring::FindDigest(const Digest& digest) const {
  std::size_t found = 0;  // 1 + the project
  for (const Key& key : keys_) {
    const auto mask = std::size_t{0} - static_cast<std::size_t>(SameDigest(key.digest, digest));
    found |= mask & (key.project + 1);
  }
  if (found == 0) return std::nullopt;
  return projects_[found - 1];
}

}  // namespace interlock::auth
