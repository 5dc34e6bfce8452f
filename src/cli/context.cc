#include "cli/context.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>

#include "base/time_text.h"
#include "cli/output.h"
#include "json/object_text.h"
#include "kernel/locate.h"
#include "kernel/schema.h"

namespace interlock::cli {

namespace fs = std::filesystem;
using kernel::Database;

std::int64_t Context::Now() {
  constexpr std::int64_t kMicros = 1'000'000;
  return process_.clock.Now().micros / kMicros;
}

std::optional<std::string> Context::Environment(const char* name) const {
  std::optional<std::string> value = process_.environment(name);
  if (value && value->empty()) return std::nullopt;
  return value;
}

Result<fs::path> Context::Directory() const {
  std::error_code failure;
  const std::optional<std::string> pwd = Environment("PWD");
  if (pwd && pwd->starts_with('/') && fs::equivalent(*pwd, ".", failure)) return *pwd;
  fs::path directory = fs::current_path(failure);
  if (failure) {
    return Error(Errc::kIo, fmt::format("the current directory: {}", failure.message()))
        .WithDetail("do", "change to a directory that exists");
  }
  return directory;
}

Result<std::string> Context::Input(std::size_t most) {
  std::string text;
  std::array<char, 65536> chunk;
  while (true) {
    const ssize_t size = ::read(process_.input, chunk.data(), chunk.size());
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) {
      return Error(Errc::kIo,
                   fmt::format("standard input: {}", std::generic_category().message(errno)))
          .WithDetail("do", "pipe the text into ic, or give it as an argument");
    }
    if (size == 0) return text;
    text.append(chunk.data(), static_cast<std::size_t>(size));
    if (text.size() > most) {
      return Error(Errc::kPayloadTooLarge,
                   fmt::format("standard input has more than {} bytes", most))
          .WithDetail("do", "keep it in a file and store the path of the file");
    }
  }
}

bool Context::Confirm(std::string_view question) {
  const std::string text = fmt::format("ic: {}: {} [y/N] ", command, Printable(question));
  if (::write(process_.error, text.data(), text.size()) < 0) return false;
  std::string line;
  char c = 0;
  while (::read(process_.input, &c, 1) == 1 && c != '\n') line += c;
  return line == "y" || line == "Y" || line == "yes";
}

Result<Database::Options> Context::DatabaseOptions() const {
  IL_TRY(fs::path directory, Directory());
  IL_TRY(fs::path path, kernel::LocateDatabase({.flag = globals.db,
                                                .environment = Environment("INTERCORE_DB"),
                                                .directory = std::move(directory)}));
  return Database::Options{.path = std::move(path), .busy_timeout = globals.busy_timeout};
}

Result<Database*> Context::Open(Database::OpenMode mode) {
  if (database_ && !database_->HasMoved() &&
      (mode == Database::OpenMode::kRead || database_->mode() == Database::OpenMode::kWrite)) {
    return &*database_;
  }
  database_.reset();
  if (!database_options_) {
    IL_TRY(database_options_, DatabaseOptions());
  }
  IL_TRY(Database database,
         Database::Open(*database_options_, mode, kernel::KernelSchema(), process_.clock));
  return &database_.emplace(std::move(database));
}

void Context::Warn(std::string_view what, std::string_view remedy) {
  if (globals.level <= LogLevel::kWarn) AddDiagnostic(LogLevel::kWarn, what, remedy);
}

void Context::Fail(const Error& error, std::string_view default_remedy) {
  const auto& details = error.details();
  const auto found = std::ranges::find(details, "do", &std::pair<std::string, Error::Value>::first);
  const std::string* const remedy =
      found == details.end() ? nullptr : std::get_if<std::string>(&found->second);
  AddDiagnostic(LogLevel::kError, error.message(), remedy == nullptr ? default_remedy : *remedy);
}

void Context::AddDiagnostic(LogLevel level, std::string_view what, std::string_view remedy) {
  if (globals.format == LogFormat::kJson) {
    json::ObjectText line;
    line.Add("time", FormatRfc3339(process_.clock.Now(), Fraction::kMicros))
        .Add("level", level == LogLevel::kError ? "ERROR" : "WARN")
        .Add("msg", fmt::format("ic: {}", command))
        .Add("error", what);
    if (!remedy.empty()) line.Add("do", remedy);
    constexpr std::array kTraces = {std::pair{"trace_id", "IC_TRACE_ID"},
                                    std::pair{"span_id", "IC_SPAN_ID"},
                                    std::pair{"parent_span_id", "IC_PARENT_SPAN_ID"}};
    for (const auto& [key, variable] : kTraces) {
      if (const auto value = Environment(variable)) line.Add(key, *value);
    }
    diagnostics_ += line.Text() + '\n';
    return;
  }
  diagnostics_ += command.empty() ? "ic: " : fmt::format("ic: {}: ", command);
  if (level == LogLevel::kWarn) diagnostics_ += "warning: ";
  diagnostics_ += fmt::format("{}\n", Printable(what));
  if (!remedy.empty()) diagnostics_ += fmt::format("{}\n", Printable(remedy));
}

void Context::Finish() {
  if (database_) database_->CheckpointIfLarge();
}

}  // namespace interlock::cli
