#include "cli/ic_process.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <fstream>
#include <sstream>
#include <string_view>
#include <utility>

#include "base/clock.h"

namespace interlock::testing {
namespace {

namespace fs = std::filesystem;

// What is kept of the calls must not lie where `ic` works: tests look at what it leaves there.
fs::path Kept(const fs::path& place, std::string_view what) {
  static std::atomic<int> count{0};
  const fs::path directory = place.string() + ".calls";
  fs::create_directories(directory);
  return directory / (std::string(what) + "-" + std::to_string(++count));
}

std::string FileText(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

bool IsOurs(std::string_view variable) {
  return variable.starts_with("INTERCORE_") || variable.starts_with("IC_") ||
         variable.starts_with("CLAUDE_");
}

std::vector<char*> Pointers(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  pointers.reserve(texts.size() + 1);
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

std::vector<std::string> EnvironmentOf(const IcCall& call) {
  std::vector<std::string> variables;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view inherited(*variable);
    const std::string_view name = inherited.substr(0, inherited.find('=') + 1);
    const bool replaced = std::ranges::any_of(
        call.environment, [name](const std::string& given) { return given.starts_with(name); });
    if (!IsOurs(inherited) && !replaced) variables.emplace_back(inherited);
  }
  variables.insert(variables.end(), call.environment.begin(), call.environment.end());
  return variables;
}

constexpr uid_t kNobody = 65534;

// The built program may lie where only root looks; a copy of it does not, and runs all the same.
fs::path CopyForAll(const fs::path& place) {
  const fs::path copy = place.string() + ".calls/ic";
  fs::create_directories(copy.parent_path());
  fs::permissions(place.parent_path(), fs::perms(0755));
  fs::permissions(copy.parent_path(), fs::perms(0777));
  fs::copy_file(IcPlace::program(), copy, fs::copy_options::skip_existing);
  fs::permissions(copy, fs::perms(0755));
  return copy;
}

// Async-signal-safe.
void Restrict(bool unprivileged, std::optional<std::size_t> file_bytes_max) {
  if (file_bytes_max) {
    const rlimit limit = {*file_bytes_max, *file_bytes_max};
    ::signal(SIGXFSZ, SIG_IGN);
    if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) ::_exit(125);
  }
  if (!unprivileged || ::geteuid() != 0) return;
  if (::setresgid(kNobody, kNobody, kNobody) != 0) ::_exit(125);
  if (::setresuid(kNobody, kNobody, kNobody) != 0) ::_exit(125);
}

}  // namespace

StartGate::StartGate() {
  std::array<int, 2> ends{};
  EXPECT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  read_ = ends[0];
  write_ = ends[1];
}

void StartGate::Open() {
  if (write_ < 0) return;
  ::close(std::exchange(write_, -1));
  ::close(std::exchange(read_, -1));
}

void StartGate::Wait() const {
  char byte = 0;
  ::close(write_);  // the child's own, or it would wait for itself
  static_cast<void>(::read(read_, &byte, 1) == 0);
}

IcProcess::IcProcess(const IcCall& call, const fs::path& place, const StartGate* gate)
    : out_(Kept(place, "out")), err_(Kept(place, "err")) {
  const fs::path in = Kept(place, "in");
  std::ofstream(in, std::ios::binary) << call.input;
  const fs::path directory = place / call.directory;
  const fs::path program = !call.program.empty() ? fs::path(call.program)
                           : call.unprivileged   ? CopyForAll(place)
                                                 : IcPlace::program();
  std::vector<std::string> arguments = {program.string()};
  arguments.insert(arguments.end(), call.arguments.begin(), call.arguments.end());
  std::vector<std::string> environment = EnvironmentOf(call);
  const std::vector<char*> argv = Pointers(arguments);
  const std::vector<char*> envp = Pointers(environment);
  const int flags = O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC;
  pid_ = ::fork();
  if (pid_ == 0) {  // only async-signal-safe calls from here to exec
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::dup2(::open(in.c_str(), O_RDONLY | O_CLOEXEC), STDIN_FILENO);
    ::dup2(::open(out_.c_str(), flags, 0600), STDOUT_FILENO);
    ::dup2(::open(err_.c_str(), flags, 0600), STDERR_FILENO);
    if (call.output == "closed") {
      ::close(STDOUT_FILENO);
    } else if (!call.output.empty()) {
      ::dup2(::open(call.output.c_str(), O_WRONLY | O_CLOEXEC), STDOUT_FILENO);
    }
    Restrict(call.unprivileged, call.file_bytes_max);
    if (::chdir(directory.c_str()) != 0) ::_exit(126);
    if (gate != nullptr) gate->Wait();
    ::execve(argv[0], argv.data(), envp.data());
    ::_exit(127);
  }
  pidfd_ = static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0));
}

IcProcess::~IcProcess() {
  if (pid_ > 0) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  ::close(pidfd_);
}

void IcProcess::Signal(int number) const {
  if (pid_ > 0) ::kill(pid_, number);  // kill(-1) would reach every process
}

bool IcProcess::EndsWithin(std::chrono::microseconds limit) const {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(limit);
  const timespec most = {.tv_sec = seconds.count(),
                         .tv_nsec = std::chrono::nanoseconds(limit - seconds).count()};
  pollfd ended{.fd = pidfd_, .events = POLLIN, .revents = 0};
  return ::ppoll(&ended, 1, &most, nullptr) == 1;
}

Finished IcProcess::Finish() {
  int status = 0;
  ::waitpid(pid_, &status, 0);
  pid_ = -1;
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return {code, FileText(out_), FileText(err_)};
}

std::vector<std::string> OpenFilesOf(pid_t pid) {
  std::vector<std::string> names;
  for (const auto& file : fs::directory_iterator("/proc/" + std::to_string(pid) + "/fd")) {
    std::error_code gone;
    names.push_back(fs::read_symlink(file, gone).string());
  }
  std::ranges::sort(names);
  return names;
}

fs::path IcPlace::program() { return fs::path(INTERLOCK_BIN_DIR) / "ic"; }

Finished IcPlace::Run(const IcCall& call) const { return IcProcess(call, path()).Finish(); }

std::unique_ptr<IcProcess> IcPlace::Start(const IcCall& call) const {
  return std::make_unique<IcProcess>(call, path());
}

std::vector<Finished> IcPlace::RunAtOnce(std::size_t count,
                                         const std::function<IcCall(std::size_t)>& call) const {
  StartGate gate;
  std::vector<std::unique_ptr<IcProcess>> processes;
  processes.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    processes.push_back(std::make_unique<IcProcess>(call(i), path(), &gate));
  }
  gate.Open();
  std::vector<Finished> finished;
  finished.reserve(count);
  for (const auto& process : processes) finished.push_back(process->Finish());
  return finished;
}

std::int64_t UnixNow() {
  SystemClock clock;
  return clock.Now().micros / 1'000'000;
}

void IcPlace::GiveAway() const {
  if (::geteuid() != 0) return;
  ASSERT_EQ(::chown(path().c_str(), kNobody, kNobody), 0);
  for (const auto& entry : fs::recursive_directory_iterator(path())) {
    ASSERT_EQ(::lchown(entry.path().c_str(), kNobody, kNobody), 0) << entry.path();
  }
}

void IcPlace::Init() const {
  const Finished init = Ic({"init"});
  ASSERT_EQ(init.exit_code, 0) << init.err;
}

std::unique_ptr<sqlite::Connection> IcPlace::OpenFile() const {
  sqlite::OpenOptions options;
  options.path = database();
  options.busy_timeout = std::chrono::seconds(10);
  options.upkeep = sqlite::LogUpkeep::kByCaller;
  return sqlite::Connection::Open(options).value();
}

void IcPlace::Sql(const std::string& script) const {
  const Result<void> ran = OpenFile()->RunScript(script);
  ASSERT_TRUE(ran.ok()) << ran.error();
}

std::string IcPlace::Text(const db::Sql& sql) const {
  const auto file = OpenFile();
  return file->One(sql, [](const db::Row& row) { return row.String(0); }).value().value_or("");
}

std::int64_t IcPlace::Int(const db::Sql& sql) const {
  const auto file = OpenFile();
  return file->One(sql, [](const db::Row& row) { return row.Int(0); }).value().value_or(0);
}

}  // namespace interlock::testing
