#include <cstdio>
#include <exception>
#include <variant>

#include "serve.h"
#include "serve_options.h"

int main(int argc, char** argv) {
  namespace app = interlock::app;
  try {
    const auto command = app::ParseCommandLine(argc, argv);
    if (const auto* done = std::get_if<app::Done>(&command)) {
      std::fputs(done->text.c_str(), done->exit_code == 0 ? stdout : stderr);
      return done->exit_code;
    }
    return app::Serve(std::get<app::ServeOptions>(command));
  } catch (const std::exception& e) {
    std::fprintf(stderr, "intermute: unexpected failure: %s\n", e.what());
    return 1;
  }
}
