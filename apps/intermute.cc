#include <cstdio>
#include <cstdlib>
#include <exception>
#include <variant>

#include "base/id.h"
#include "init.h"
#include "serve.h"
#include "serve_options.h"

int main(int argc, char** argv) {
  namespace app = interlock::app;
  try {
    const char* const keys_file = std::getenv("INTERMUTE_KEYS_FILE");
    const auto command =
        app::ParseCommandLine(argc, argv, {.keys_file = keys_file != nullptr ? keys_file : ""});
    if (const auto* serve = std::get_if<app::ServeOptions>(&command)) return app::Serve(*serve);
    interlock::Csprng random;
    const auto* init = std::get_if<app::InitOptions>(&command);
    const app::Done done =
        init != nullptr ? app::Init(*init, random) : std::get<app::Done>(command);
    std::fputs(done.text.c_str(), done.exit_code == 0 ? stdout : stderr);
    return done.exit_code;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "intermute: unexpected failure: %s\n", e.what());
    return 1;
  }
}
