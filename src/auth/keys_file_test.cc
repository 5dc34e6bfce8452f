#include "auth/keys_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "auth/yaml.h"
#include "testing/random.h"
#include "testing/seeded_random.h"
#include "testing/temp_db.h"

namespace interlock::auth {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;
using Exposure = LoadedKeys::Exposure;

class KeysFileTest : public ::testing::Test {
 protected:
  fs::path File(const std::string& name = "keys.yaml") const { return directory_.path() / name; }

  void Write(const std::string& text) const { std::ofstream(File()) << text; }

  std::string Text() const {
    std::ostringstream text;
    text << std::ifstream(File()).rdbuf();
    return text.str();
  }

  mode_t Mode() const {
    struct stat info{};
    EXPECT_EQ(::stat(File().c_str(), &info), 0);
    return info.st_mode & 07777;
  }

  // What is in the directory, so that a draft left behind shows.
  std::set<std::string> Names() const {
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator(directory_.path())) {
      names.insert(entry.path().filename());
    }
    return names;
  }

  Keyring Load() const {
    auto loaded = LoadKeys(File());
    EXPECT_TRUE(loaded.ok()) << loaded.error();
    return loaded.ok() ? loaded->keyring : Keyring();
  }

  testing::TempDir directory_;
  testing::SeededRandom random_;
  const std::set<std::string> only_the_file_ = {"keys.yaml"};
};

// ---- Bootstrap ----

TEST_F(KeysFileTest, BootstrapMakesAPrivateFileWithOneKeyForDev) {
  const auto key = BootstrapKeys(File(), random_).value();
  ASSERT_TRUE(key.has_value());
  EXPECT_THAT(key->Reveal(), MatchesRegex("[A-Za-z0-9_-]{43}"));
  EXPECT_EQ(Mode(), 0600U);
  EXPECT_EQ(Names(), only_the_file_);
  const auto loaded = LoadKeys(File()).value();
  EXPECT_EQ(loaded.exposure, Exposure::kPrivate);
  EXPECT_EQ(loaded.keyring.Find(key->Reveal()), "dev");
  EXPECT_EQ(loaded.keyring.key_count(), 1U);
  EXPECT_EQ(loaded.keyring.local_policy(), LocalPolicy::kNoKeyNeeded);
  EXPECT_THAT(Text(), HasSubstr("allow_localhost_without_auth: true"));
}

TEST_F(KeysFileTest, TheModeIsPrivateWhateverTheUmask) {
  for (const mode_t mask : {0000, 0022, 0777}) {
    fs::remove(File());
    const mode_t before = ::umask(mask);
    const auto key = BootstrapKeys(File(), random_);
    ::umask(before);
    EXPECT_TRUE(key.ok());
    EXPECT_EQ(Mode(), 0600U) << mask;
  }
}

TEST_F(KeysFileTest, BootstrapNeverTouchesWhatIsThere) {
  for (const char* text : {"", "projects: {web: {keys: [a]}}\n", "not: [yaml"}) {
    Write(text);
    EXPECT_EQ(BootstrapKeys(File(), random_).value(), std::nullopt);
    EXPECT_EQ(Text(), text);
  }
  fs::remove(File());
  fs::create_directory(File());
  EXPECT_EQ(BootstrapKeys(File(), random_).value(), std::nullopt);
  fs::remove(File());
  fs::create_symlink("nowhere", File());
  EXPECT_EQ(BootstrapKeys(File(), random_).value(), std::nullopt);
  EXPECT_EQ(Names(), only_the_file_);
}

TEST_F(KeysFileTest, OfManyBootstrapsAtOnceExactlyOneMakesTheFile) {
  const int rounds = testing::kSlowBuild ? 5 : 20;
  for (int round = 0; round < rounds; ++round) {
    fs::remove(File());
    std::vector<std::optional<Secret>> keys(8);
    std::vector<std::thread> threads;
    threads.reserve(keys.size());
    for (auto& key : keys) {
      threads.emplace_back([&] { key = BootstrapKeys(File(), random_).value(); });
    }
    for (std::thread& thread : threads) thread.join();
    const auto made = [](const auto& key) { return key.has_value(); };
    ASSERT_EQ(std::ranges::count_if(keys, made), 1);
    EXPECT_EQ(Load().Find((*std::ranges::find_if(keys, made))->Reveal()), "dev");
    EXPECT_EQ(Load().key_count(), 1U);
    EXPECT_EQ(Names(), only_the_file_);
  }
}

TEST_F(KeysFileTest, BootstrapSaysWhyItCannotMakeTheFile) {
  const auto key = BootstrapKeys(directory_.path() / "missing" / "keys.yaml", random_);
  ASSERT_FALSE(key.ok());
  EXPECT_THAT(key.error().message(), AllOf(HasSubstr("missing/keys.yaml"), HasSubstr("No such")));
}

// ---- Loading ----

TEST_F(KeysFileTest, LoadingTellsWhatIsWrongWithTheFile) {
  EXPECT_EQ(LoadKeys(File()).error().code(), Errc::kNotFound);
  EXPECT_THAT(LoadKeys(directory_.path()).error().message(), HasSubstr("not a regular file"));
  ASSERT_EQ(::mkfifo(File("pipe").c_str(), 0600), 0);
  EXPECT_THAT(LoadKeys(File("pipe")).error().message(), HasSubstr("not a regular file"));
  Write("projects:\n  dev: [sesame]\n");
  EXPECT_THAT(LoadKeys(File()).error().message(),
              AllOf(HasSubstr("keys.yaml: line 2"), Not(HasSubstr("sesame"))));
  Write(std::string(kKeysFileBytesMax + 1, ' '));
  EXPECT_THAT(LoadKeys(File()).error().message(), HasSubstr("bytes"));
}

TEST_F(KeysFileTest, LoadingTellsWhenOthersMayReadOrWriteTheKeys) {
  Write("");
  for (const auto& [mode, exposure] : {std::pair{0600, Exposure::kPrivate},
                                       {0400, Exposure::kPrivate},
                                       {0700, Exposure::kPrivate},
                                       {0640, Exposure::kOpenToOthers},
                                       {0604, Exposure::kOpenToOthers},
                                       {0620, Exposure::kOpenToOthers},
                                       {0602, Exposure::kOpenToOthers}}) {
    ASSERT_EQ(::chmod(File().c_str(), static_cast<mode_t>(mode)), 0);
    EXPECT_EQ(LoadKeys(File())->exposure, exposure) << mode;
  }
}

// ---- Appending ----

TEST_F(KeysFileTest, AppendMakesTheFileWhenThereIsNone) {
  const Secret key = AppendKey(File(), "web", random_).value();
  EXPECT_EQ(Mode(), 0600U);
  EXPECT_EQ(Load().Find(key.Reveal()), "web");
  EXPECT_EQ(Load().key_count(), 1U);
  EXPECT_THAT(Text(), HasSubstr("allow_localhost_without_auth: true"));
  EXPECT_EQ(Names(), only_the_file_);
}

TEST_F(KeysFileTest, AppendKeepsTheKeysAndFieldsThatAreThere) {
  const std::string hash = "sha256:" + DigestText(Sha256("hidden"));
  Write(
      "# a comment\nversion: 2\ndefault_policy:\n  allow_localhost_without_auth: false\n"
      "projects:\n  dev:\n    owner: me\n    keys: [one, ' two ', '', " +
      hash +
      "]\n"
      "  ' web ':\n    keys:\n    - three\n");
  const Secret dev = AppendKey(File(), "dev", random_).value();
  const Secret web = AppendKey(File(), "web", random_).value();
  const Keyring keyring = Load();
  for (const std::string& key :
       {std::string("one"), std::string("two"), std::string("hidden"), dev.Reveal()}) {
    EXPECT_EQ(keyring.Find(key), "dev") << key;
  }
  EXPECT_EQ(keyring.Find("three"), "web");
  EXPECT_EQ(keyring.Find(web.Reveal()), "web");
  EXPECT_EQ(keyring.local_policy(), LocalPolicy::kKeyNeeded);
  EXPECT_THAT(Text(), AllOf(HasSubstr("version: 2"), HasSubstr("owner: me"), HasSubstr(hash)));
}

TEST_F(KeysFileTest, AppendTakesEveryFormOfAFileWithoutKeys) {
  for (const char* text : {"", "---\n", "# only this\n", "{}\n", "projects:\n", "projects: {}\n",
                           "projects: ~\n", "projects:\n  dev:\n", "projects:\n  dev: {}\n",
                           "projects:\n  dev:\n    keys:\n", "projects:\n  dev:\n    keys: []\n",
                           "default_policy: {}\n", "projects:\n  other: {keys: [x]}\n"}) {
    Write(text);
    const auto key = AppendKey(File(), "dev", random_);
    ASSERT_TRUE(key.ok()) << text << key.error();
    EXPECT_EQ(Load().Find(key->Reveal()), "dev") << text;
    EXPECT_EQ(Load().local_policy(), LocalPolicy::kNoKeyNeeded) << text;
    EXPECT_THAT(Text(), HasSubstr("allow_localhost_without_auth: true")) << text;
  }
}

// Each is read back as it was, however YAML would rather write it.
TEST_F(KeysFileTest, OddNamesAndKeysSurviveBeingWrittenAgain) {
  const std::vector<std::string> odd = {
      "true",   "~",    "null",   "0123", "1.5", "- x",   "a: b",      "#x",  "x #y", "'",
      "\"",     "\\",   "*x",     "&x",   "!x",  "!!str", "{",         "[",   "a,b",  "%x",
      "@x",     "`x",   "|",      ">",    "?",   ":",     "-",         "---", "...",  "\u00e9",
      "\u4f60", "a\nb", "\u2028", "x\ty", "=",   "<<",    "\U0001F600"};
  std::set<std::string> keys;
  for (const std::string& name : odd) {
    const auto key = AppendKey(File(), name, random_);
    ASSERT_TRUE(key.ok()) << name << ": " << key.error();
    EXPECT_EQ(Load().Find(key->Reveal()), name);
    keys.insert(key->Reveal());
  }
  EXPECT_EQ(keys.size(), odd.size());
  EXPECT_EQ(Load().key_count(), odd.size());
  std::string text = "projects:\n  dev:\n    keys:\n";
  for (const char* key : {"'~'", "\"null\"", "'0123'", "\"a\\nb\"", "'- x'", "\"a: b\"", "'#x'",
                          "'!x'", "!!str yes", "'yes'", "\"\\u00e9\"", "'it''s'"}) {
    text += "    - " + std::string(key) + "\n";
  }
  Write(text);
  ASSERT_TRUE(AppendKey(File(), "dev", random_).ok());
  for (const char* key :
       {"~", "null", "0123", "a\nb", "- x", "a: b", "#x", "!x", "yes", "\u00e9", "it's"}) {
    EXPECT_EQ(Load().Find(key), "dev") << key;
  }
}

TEST_F(KeysFileTest, AppendRefusesAFileItCannotReadAndLeavesItAlone) {
  for (const char* text :
       {"not: [yaml", "projects: [a]\n", "projects: {a: {keys: &x [k]}, b: *x}\n",
        "projects: {a: {keys: [k]}, b: {keys: [k]}}\n", "a: 1\n---\nb: 2\n"}) {
    Write(text);
    const auto key = AppendKey(File(), "dev", random_);
    ASSERT_FALSE(key.ok()) << text;
    EXPECT_THAT(key.error().message(), AllOf(HasSubstr("keys.yaml"), HasSubstr("line")));
    EXPECT_EQ(Text(), text);
    EXPECT_EQ(Names(), only_the_file_);
  }
}

TEST_F(KeysFileTest, AppendKeepsModeOwnerAndLink) {
  Write("");
  for (const mode_t mode : {0600, 0640, 0644, 0400}) {
    ASSERT_EQ(::chmod(File().c_str(), mode), 0);
    const mode_t before = ::umask(0077);
    EXPECT_TRUE(AppendKey(File(), "dev", random_).ok());
    ::umask(before);
    EXPECT_EQ(Mode(), mode);
  }
  if (::geteuid() == 0) {
    ASSERT_EQ(::chown(File().c_str(), 4711, 4712), 0);
    EXPECT_TRUE(AppendKey(File(), "dev", random_).ok());
    struct stat info{};
    ASSERT_EQ(::stat(File().c_str(), &info), 0);
    EXPECT_EQ(info.st_uid, 4711U);
    EXPECT_EQ(info.st_gid, 4712U);
    EXPECT_EQ(Mode(), 0400U);
  }
  const std::size_t count = Load().key_count();
  fs::create_symlink("keys.yaml", File("link"));
  EXPECT_TRUE(AppendKey(File("link"), "dev", random_).ok());
  EXPECT_TRUE(fs::is_symlink(File("link")));
  EXPECT_EQ(Load().key_count(), count + 1);
}

TEST_F(KeysFileTest, AppendSaysWhyThereIsNoFileToWrite) {
  fs::create_symlink("nowhere", File("link"));
  EXPECT_THAT(AppendKey(File("link"), "dev", random_).error().message(),
              HasSubstr("a dangling symlink"));
  EXPECT_THAT(AppendKey(directory_.path(), "dev", random_).error().message(),
              HasSubstr("not a regular file"));
  EXPECT_THAT(AppendKey(File("a/b"), "dev", random_).error().message(), HasSubstr("No such"));
  Write("");
  EXPECT_THAT(AppendKey(File("keys.yaml/x"), "dev", random_).error().message(),
              HasSubstr("Not a directory"));
}

TEST_F(KeysFileTest, ManyAppendsAtOnceAreAllKept) {
  constexpr int kThreads = 8;
  const int each = testing::kSlowBuild ? 3 : 6;
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < each; ++i) {
        const auto key = AppendKey(File(), "p" + std::to_string(t), random_);
        EXPECT_TRUE(key.ok()) << key.error();
        EXPECT_EQ(LoadKeys(File())->keyring.Find(key->Reveal()), "p" + std::to_string(t));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(Load().key_count(), static_cast<std::size_t>(kThreads * each));
  EXPECT_EQ(Names(), only_the_file_);
}

// A limit on the size of files stands for a full disk.
TEST_F(KeysFileTest, AFullDiskLeavesTheFileAsItWasAndNothingBesideIt) {
  const Secret first = AppendKey(File(), "dev", random_).value();
  const std::string before = Text();
  rlimit old_limit{};
  ::getrlimit(RLIMIT_FSIZE, &old_limit);
  auto* const old_handler = ::signal(SIGXFSZ, SIG_IGN);
  const rlimit full{.rlim_cur = 40, .rlim_max = old_limit.rlim_max};
  ::setrlimit(RLIMIT_FSIZE, &full);
  const auto appended = AppendKey(File(), "dev", random_);
  const auto made = BootstrapKeys(File("other.yaml"), random_);
  ::setrlimit(RLIMIT_FSIZE, &old_limit);
  ::signal(SIGXFSZ, old_handler);
  EXPECT_FALSE(appended.ok());
  EXPECT_FALSE(made.ok());
  EXPECT_EQ(Text(), before);
  EXPECT_EQ(Names(), only_the_file_);
}

// Killed wherever it happens to be, many times: the file is whole, and no key that was there is
// lost.
TEST_F(KeysFileTest, AKilledAppendLeavesAWholeFile) {
  ASSERT_TRUE(AppendKey(File(), "dev", random_).ok());
  const int rounds = testing::kSlowBuild ? 10 : 40;
  Keyring before = Load();
  for (int round = 0; round < rounds; ++round) {
    std::array<int, 2> alive{};
    ASSERT_EQ(::pipe2(alive.data(), O_CLOEXEC), 0);
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      Csprng random;
      while (true) {
        if (!AppendKey(File(), "dev", random).ok()) ::_exit(1);
        [[maybe_unused]] const ssize_t written = ::write(alive[1], "x", 1);
      }
    }
    char byte = 0;
    ASSERT_EQ(::read(alive[0], &byte, 1), 1);  // it is at work
    ::kill(child, SIGKILL);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status)) << "an append failed";
    ::close(alive[0]);
    ::close(alive[1]);
    Keyring after = Load();
    EXPECT_TRUE(after.Includes(before));
    EXPECT_GT(after.key_count(), before.key_count());
    before = std::move(after);
  }
}

}  // namespace
}  // namespace interlock::auth
