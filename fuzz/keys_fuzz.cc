// The text of a keys file. It is refused with the line and without a word of it that could be a
// key, or it is a keyring; then a new key is added to it on disk and nothing else changes.
//
// Files are made in a temporary folder only.

#include <stdlib.h>  // NOLINT(modernize-deprecated-headers): mkdtemp is POSIX

#include <algorithm>
#include <cctype>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <system_error>

#include "auth/keyring.h"
#include "auth/keys_file.h"
#include "base/check.h"
#include "base/utf8.h"
#include "targets.h"
#include "testing/seeded_random.h"

namespace interlock::fuzz {
namespace {

using auth::Keyring;

// Gone at the end of the program; not testing::TempDir, which comes with a database.
class TempFolder {
 public:
  TempFolder() {
    std::string name = std::filesystem::temp_directory_path() / "interlock-fuzz-XXXXXX";
    IL_CHECK(::mkdtemp(name.data()) != nullptr, name);
    path_ = name;
  }
  ~TempFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

bool IsWordByte(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// A word of the text that no message of ours has by itself is not told.
void CheckNothingTold(std::string_view text, std::string_view message) {
  constexpr std::size_t kShortest = 6;
  constexpr std::string_view kOurWords =
      "default_policy allow_localhost_without_auth projects mapping another hexadecimal digits "
      "control character document second aliases sha256 project begins stands twice expected "
      "sequence illegal scalar unexpected escape unknown anchor cannot assign multiple anchors "
      "tags "
      "to the same node directives handle unused indicator between plain tabs in block key";
  for (std::size_t begin = 0; begin < text.size();) {
    std::size_t end = begin;
    while (end < text.size() && IsWordByte(text[end])) ++end;
    const std::string_view word = text.substr(begin, end - begin);
    begin = end + 1;
    if (word.size() < kShortest || kOurWords.find(word) != std::string_view::npos) continue;
    IL_CHECK(message.find(word) == std::string_view::npos, message);
  }
}

void CheckRefusal(std::string_view text, const Error& error) {
  IL_CHECK(error.code() == Errc::kInvalidArgument, error.message());
  const std::string& message = error.message();
  IL_CHECK(IsUtf8(message) && message.size() < 400, message);
  constexpr std::string_view kHead = "line ";
  IL_CHECK(message.starts_with(kHead), message);
  std::size_t line = 0;
  std::from_chars(message.data() + kHead.size(), message.data() + message.size(), line);
  // A line may end with CR alone in YAML.
  const auto ends = std::ranges::count_if(text, [](char c) { return c == '\n' || c == '\r'; });
  IL_CHECK(line >= 1 && line <= static_cast<std::size_t>(ends) + 1, message);
  CheckNothingTold(text, message);
}

void CheckFile(std::string_view text, const Keyring& keyring) {
  static const TempFolder kFolder;
  static testing::SeededRandom random(1);
  const auto path = kFolder.path() / "keys.yaml";
  std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
  const auto loaded = auth::LoadKeys(path);
  IL_CHECK(loaded.ok() && loaded->keyring.Includes(keyring) && keyring.Includes(loaded->keyring));
  const auto key = auth::AppendKey(path, "added", random);
  const auto after = auth::LoadKeys(path);
  IL_CHECK(after.ok());
  if (!key.ok()) {
    IL_CHECK(after->keyring.key_count() == keyring.key_count(), key.error().message());
    return;
  }
  IL_CHECK(after->keyring.key_count() == keyring.key_count() + 1);
  IL_CHECK(after->keyring.Includes(keyring));
  IL_CHECK(after->keyring.Find(key->Reveal()) == "added");
  IL_CHECK(after->keyring.local_policy() == keyring.local_policy());
}

}  // namespace

void FuzzKeys(std::string_view input) {
  const Result<Keyring> keyring = Keyring::Parse(input);
  if (!keyring.ok()) return CheckRefusal(input, keyring.error());
  IL_CHECK(keyring->project_count() <= keyring->key_count());
  IL_CHECK(keyring->Includes(*keyring) && keyring->Includes(Keyring()));
  IL_CHECK(!keyring->Find("") && !keyring->Find(" "));
  CheckFile(input, *keyring);
}

}  // namespace interlock::fuzz

IL_FUZZ_ENTRY(FuzzKeys);
