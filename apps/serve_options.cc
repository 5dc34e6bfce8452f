#include "serve_options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cstdint>
#include <limits>
#include <sstream>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/time_text.h"
#include "base/utf8.h"
#include "base/version.h"
#include "domain/text.h"
#include "table.h"

namespace interlock::app {
namespace {

constexpr const char* kExamples =
    "Examples:\n"
    "  intermute serve                                  on 127.0.0.1:7338, ./intermute.db\n"
    "  intermute serve --port 0 --db /var/lib/i/i.db    on a free port, which it prints\n"
    "  intermute serve --socket /run/intermute.sock     also on a Unix socket\n"
    "  intermute init --project web                     make a key for other machines\n"
    "  intermute status                                 who is there and what goes on\n"
    "  intermute inbox --unread-pokes --project web --agent ID    what came while it was busy\n"
    "  curl http://127.0.0.1:7338/health                is it fit to serve?\n";

constexpr const char* kAskExamples =
    "Examples:\n"
    "  intermute status                            who is there and what goes on\n"
    "  intermute agents --project web              the agents of one project\n"
    "  intermute who src/main.cc --project web     who holds this file?\n"
    "  intermute who src/ --project web            who holds something below this directory?\n"
    "  intermute who '**/*.sql' --project web      who holds something that this matches?\n"
    "  INTERMUTE_SOCKET=/run/intermute.sock intermute status\n"
    "\n"
    "Tables on a terminal, one line of JSON otherwise. INTERMUTE_URL, INTERMUTE_SOCKET and\n"
    "INTERMUTE_PROJECT set what the flags set; INTERMUTE_API_KEY is the key, where one is needed.\n"
    "Exit code 0: answered; 1: mistaken or refused; 2: no server answers.\n";

// A duration flag such as "250ms" or "1h30m", kept in milliseconds.
void AddDuration(CLI::App& command, const std::string& name, std::chrono::milliseconds& value,
                 const std::string& help) {
  auto* const option = command.add_option_function<std::string>(
      name,
      [&value, name](const std::string& text) {
        const auto parsed = ParseDuration(text);
        if (!parsed.ok()) throw CLI::ValidationError(name, parsed.error().message());
        const auto rounded = std::chrono::duration_cast<std::chrono::milliseconds>(*parsed);
        if (rounded < std::chrono::milliseconds(1) || rounded > std::chrono::hours(24)) {
          throw CLI::ValidationError(name, "'" + text + "' is not between 1ms and 24h");
        }
        value = rounded;
      },
      help);
  option->default_str(FormatDuration(value))->type_name("DURATION");
}

// A flag that takes one of a few words; `words` begins with the default.
template <typename T>
void AddChoice(CLI::App& command, const std::string& name, T& value,
               std::vector<std::pair<std::string, T>> words, const std::string& help) {
  std::string all;
  for (const auto& [word, meaning] : words) all += (all.empty() ? "" : "|") + word;
  const std::string first = words.front().first;
  auto* const option = command.add_option_function<std::string>(
      name,
      [&value, name, all, words = std::move(words)](const std::string& text) {
        for (const auto& [word, meaning] : words) {
          if (word != text) continue;
          value = meaning;
          return;
        }
        throw CLI::ValidationError(name, "'" + text + "' is none of " + all);
      },
      help);
  option->default_str(first)->type_name(all);
}

// UTF-8 without control characters.
bool IsPrintable(std::string_view text) {
  const auto is_control = [](unsigned char c) { return c < 0x20 || c == 0x7F; };
  return IsUtf8(text) && std::ranges::none_of(text, is_control);
}

// A text flag that is trimmed and must not be blank.
template <typename T>
CLI::Option* AddTrimmed(CLI::App& command, const std::string& name, T& value,
                        const std::string& help) {
  return command.add_option_function<std::string>(
      name,
      [&value, name](const std::string& text) {
        const std::string_view trimmed = domain::Trim(text);
        if (trimmed.empty()) throw CLI::ValidationError(name, "the value is blank");
        if (!IsPrintable(trimmed)) throw CLI::ValidationError(name, "the value is no plain text");
        value = std::string(trimmed);
      },
      help);
}

void AddKeysFile(CLI::App& command, std::filesystem::path& path, const Environment& environment) {
  const std::string_view set = domain::Trim(environment.keys_file);
  if (!set.empty()) path = set;
  AddTrimmed(command, "--keys-file", path,
             "Keys that let in from other machines; INTERMUTE_KEYS_FILE sets it too")
      ->default_str(path.string())
      ->type_name("PATH");
}

void AddAccessFlags(CLI::App& serve, auth::AccessRules& access) {
  serve.add_flag_callback(
      "--require-agent-token", [&access] { access.require_agent_token = true; },
      "A write in an agent's name needs that agent's token");
  serve.add_flag_callback(
      "--insecure", [&access] { access.insecure = true; },
      "Let everybody in without a key, from wherever this server can be reached");
}

CLI::Option* AddProject(CLI::App& command, std::string& project, const std::string& help) {
  return AddTrimmed(command, "--project", project, help)
      ->transform([](const std::string& text) { return std::string(domain::ProjectName(text)); })
      ->type_name("NAME");
}

void AddInitFlags(CLI::App& init, InitOptions& options) {
  AddProject(init, options.project, "The project that the key opens")->required();
}

ServerAddress AddressFrom(const Environment& environment) {
  ServerAddress server;
  const std::string_view url = domain::Trim(environment.url);
  const std::string_view socket = domain::Trim(environment.socket);
  if (!url.empty()) {
    server.url = url;
  } else if (!socket.empty()) {
    server.url = "unix:" + std::string(socket);
  }
  server.api_key = Secret(std::string(domain::Trim(environment.api_key)));
  return server;
}

// Takes what the environment says, and what all who ask a server can be told.
void AddAskFlags(CLI::App& command, AskOptions& options) {
  command.footer(kAskExamples);
  command.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  AddTrimmed(command, "--url", options.server.url, "The server: http://HOST:PORT or unix:/PATH")
      ->default_str(options.server.url)
      ->type_name("URL");
  AddProject(command, options.project, "Only this project; needed by who");
  command.add_flag("--json", options.json, "JSON also on a terminal");
}

AskOptions AskDefaults(const Environment& environment) {
  AskOptions options;
  options.server = AddressFrom(environment);
  options.project = domain::ProjectName(environment.project);
  return options;
}

// The commands that ask a running server; `options` hears which one it was.
void AddAskCommands(CLI::App& intermute, AskOptions& options) {
  using Question = AskOptions::Question;
  const auto add = [&](const char* name, const char* help, Question question) -> CLI::App& {
    CLI::App& command = *intermute.add_subcommand(name, help);
    AddAskFlags(command, options);
    command.callback([&options, question] { options.question = question; });
    return command;
  };
  add("status", "Who is there and what goes on, in numbers", Question::kStatus);
  add("agents", "The agents, and whether they are alive", Question::kAgents);
  CLI::App& who = add("who", "Who holds a file, since when, why, until when", Question::kWho);
  who.add_option("PATH", options.path,
                 "A file, a directory or a pattern, seen from here in a repository")
      ->required();
  who.add_flag("--literal", options.literal, "PATH means itself, whatever characters it has");
}

constexpr const char* kInboxExamples =
    "Example, for a hook that runs before a tool is used:\n"
    "  intermute inbox --unread-pokes --project web --agent $INTERMUTE_AGENT --mark-surfaced\n"
    "\n"
    "INTERMUTE_URL, INTERMUTE_SOCKET and INTERMUTE_PROJECT set what the flags set;\n"
    "INTERMUTE_API_KEY is the key, where one is needed.\n"
    "Exit code 0: printed what there was, perhaps nothing; 1: mistaken or refused;\n"
    "2: no server answers.\n";

void AddInboxCommand(CLI::App& intermute, InboxOptions& options, const Environment& environment) {
  options.server = AddressFrom(environment);
  options.project = domain::ProjectName(environment.project);
  CLI::App& inbox = *intermute.add_subcommand(
      "inbox", "Print messages that were to be put before an agent while it was busy");
  inbox.footer(kInboxExamples);
  inbox.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  inbox
      .add_flag_callback(
          "--unread-pokes", [] {}, "Those that the agent has not seen; there are no others yet")
      ->required();
  auto* const project = AddProject(inbox, options.project, "The project");
  if (options.project.empty()) project->required();
  AddTrimmed(inbox, "--agent", options.agent, "The id of the agent")->required()->type_name("ID");
  inbox.add_flag_callback(
      "--mark-surfaced", [&options] { options.mark = InboxOptions::Mark::kSurfaced; },
      "Each one that was printed is not printed again");
  AddTrimmed(inbox, "--url", options.server.url, "The server: http://HOST:PORT or unix:/PATH")
      ->default_str(options.server.url)
      ->type_name("URL");
}

CLI::Validator NotEmpty(const std::string& remedy) {
  return {[remedy](const std::string& text) { return text.empty() ? remedy : std::string(); }, ""};
}

CLI::Validator IsPort() {
  return {[](const std::string& text) {
            constexpr std::uint16_t kMax = std::numeric_limits<std::uint16_t>::max();
            std::uint16_t port = 0;
            const char* const end = text.data() + text.size();
            const auto [stop, error] = std::from_chars(text.data(), end, port);
            if (stop == end && error == std::errc()) return std::string();
            return fmt::format("{} is no port; name one from 0 to {}", text, kMax);
          },
          ""};
}

void AddMirrorFlags(CLI::App& serve, ServeOptions& options) {
  serve
      .add_option("--intercore-db", options.intercore_db,
                  "Also write reservations into this file of ic, for hooks that only ask ic")
      ->check(NotEmpty("name a file, or leave the flag out"))
      ->type_name("PATH");
  serve.add_flag_callback(
      "--coordination-dual-write", [&options] { options.coordination_dual_write = true; },
      "The same with the nearest .clavain/intercore.db upwards from here");
}

// Addresses to listen on, and the database.
void AddPlaceFlags(CLI::App& serve, ServeOptions& options) {
  serve.add_option("--host", options.host, "Address or name to listen on")
      ->check(NotEmpty("name an address, such as 127.0.0.1"))
      ->capture_default_str()
      ->type_name("ADDRESS");
  serve.add_option("--port", options.port, "TCP port; 0 takes a free one and prints it")
      ->check(IsPort())
      ->capture_default_str()
      ->type_name("PORT");
  serve
      .add_option("--db", options.database, "SQLite file; created with its directory when missing")
      ->check(NotEmpty("name a file, or leave the flag out"))
      ->capture_default_str()
      ->type_name("PATH");
  serve.add_option("--socket", options.socket, "Also listen on this Unix socket (mode 0660)")
      ->type_name("PATH");
}

void AddServeFlags(CLI::App& serve, ServeOptions& options) {
  AddPlaceFlags(serve, options);
  AddMirrorFlags(serve, options);
  using sqlite::Durability;
  AddChoice<Durability>(
      serve, "--durability", options.durability,
      {{"full", Durability::kFull}, {"fast", Durability::kFast}},
      "full: an answered write survives a power cut; fast: it survives the process");
  AddChoice<LogFormat>(serve, "--log-format", options.log_format,
                       {{"text", LogFormat::kText}, {"json", LogFormat::kJson}},
                       "How log lines on stderr look");
  AddChoice<LogLevel>(serve, "--log-level", options.log_level,
                      {{"info", LogLevel::kInfo},
                       {"debug", LogLevel::kDebug},
                       {"warn", LogLevel::kWarn},
                       {"error", LogLevel::kError}},
                      "The least severe line that is logged");
  serve.add_flag_callback(
      "--allow-network-fs", [&options] { options.network_fs = ServeOptions::NetworkFs::kAllow; },
      "Take a database on a network file system, whose locks may be broken");
  serve.add_option("--io-threads", options.io_threads, "Threads that serve connections")
      ->check(CLI::Range(1, 64).description(""))
      ->capture_default_str()
      ->type_name("N");
  serve
      .add_option("--max-connections", options.limits.connections_max,
                  "Connections served at once; more are refused with 503")
      ->check(CLI::Range(1, 1'000'000).description(""))
      ->capture_default_str()
      ->type_name("N");
  serve
      .add_option("--retain-days", options.retain_days,
                  "How long events, and mail that everybody is done with, are kept; 0 = for ever")
      ->check(CLI::Range(0, 36'500).description(""))
      ->capture_default_str()
      ->type_name("DAYS");
  AddDuration(serve, "--sweep-interval", options.sweep_interval,
              "How often what is older, and what ran out, is looked for");
  AddDuration(serve, "--heartbeat-grace", options.heartbeat_grace,
              "How long after its last sign of life an agent counts as active");
  serve
      .add_option("--max-reservations", options.reservations_max,
                  "Reservations that an agent may hold in a project")
      ->check(CLI::Range(1, 1'000'000).description(""))
      ->capture_default_str()
      ->type_name("N");
  AddDuration(serve, "--idle-timeout", options.limits.idle_timeout,
              "How long a connection may rest between requests");
  AddDuration(serve, "--header-timeout", options.limits.header_timeout,
              "How long a request's header may take");
  AddDuration(serve, "--body-timeout", options.limits.body_timeout,
              "How long a request's body may take");
  AddDuration(serve, "--write-timeout", options.limits.write_timeout,
              "How long a client may take to read an answer");
  AddDuration(serve, "--drain-timeout", options.limits.drain_timeout,
              "How long a stopping server waits for requests under way");
}

}  // namespace

std::variant<ServeOptions, InitOptions, AskOptions, InboxOptions, Done> ParseCommandLine(
    int argc, const char* const* argv, const Environment& environment) {
  ServeOptions options;
  InitOptions init_options;
  AskOptions ask_options = AskDefaults(environment);
  InboxOptions inbox_options;
  CLI::App intermute("Coordinates coding agents that work in one repository.", "intermute");
  intermute.set_version_flag("--version", "intermute " + std::string(BuildInfo().version));
  intermute.footer(kExamples);
  CLI::App& serve = *intermute.add_subcommand("serve", "Run the server until SIGTERM or SIGINT");
  serve.footer(kExamples);
  // Of a repeated flag the last one counts, so that scripts can add to a given command line.
  serve.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  AddServeFlags(serve, options);
  AddKeysFile(serve, options.keys_file, environment);
  AddAccessFlags(serve, options.access);
  CLI::App& init = *intermute.add_subcommand("init", "Make a key for a project");
  init.footer(kExamples);
  init.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  AddInitFlags(init, init_options);
  AddKeysFile(init, init_options.keys_file, environment);
  AddAskCommands(intermute, ask_options);
  AddInboxCommand(intermute, inbox_options, environment);
  try {
    intermute.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    std::ostringstream out;
    std::ostringstream err;
    if (intermute.exit(error, out, err) == 0) return Done{0, out.str()};
    std::string command = "intermute ";
    for (const CLI::App* const given : intermute.get_subcommands()) {
      command += given->get_name() + " ";
    }
    return Done{1, "intermute: " + Printable(error.what()) + "\nTry: " + command + "--help\n"};
  }
  if (init.parsed()) return init_options;
  if (serve.parsed()) return options;
  if (intermute.got_subcommand("inbox")) return inbox_options;
  if (!intermute.get_subcommands().empty()) return ask_options;
  return Done{0, intermute.help()};
}

}  // namespace interlock::app
