#if defined(INTERLOCK_TCMALLOC)
#include <gperftools/malloc_extension_c.h>
#endif

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <variant>

#include "ask.h"
#include "base/clock.h"
#include "base/id.h"
#include "inbox.h"
#include "init.h"
#include "serve.h"
#include "serve_options.h"
#include "standard_descriptors.h"

namespace {

std::string Variable(const char* name) {
  const char* const value = std::getenv(name);
  return value != nullptr ? value : "";
}

// At once, so that what is marked as seen was seen.
bool Print(std::string_view text) {
  return std::fwrite(text.data(), 1, text.size(), stdout) == text.size() &&
         std::fflush(stdout) == 0;
}

// What is freed goes back to the system at once, and not when malloc sees fit: after a burst of
// large answers the server would else stay as large as it was then.
void GiveFreedMemoryBack() {
#if defined(INTERLOCK_TCMALLOC)
  MallocExtension_SetNumericProperty("tcmalloc.aggressive_memory_decommit", 1);
#endif
}

}  // namespace

int main(int argc, char** argv) {
  namespace app = interlock::app;
  interlock::FillStandardDescriptors();
  GiveFreedMemoryBack();
  try {
    const auto command = app::ParseCommandLine(argc, argv,
                                               {.keys_file = Variable("INTERMUTE_KEYS_FILE"),
                                                .url = Variable("INTERMUTE_URL"),
                                                .socket = Variable("INTERMUTE_SOCKET"),
                                                .api_key = Variable("INTERMUTE_API_KEY"),
                                                .project = Variable("INTERMUTE_PROJECT")});
    if (const auto* serve = std::get_if<app::ServeOptions>(&command)) return app::Serve(*serve);
    app::Done done;
    if (const auto* init = std::get_if<app::InitOptions>(&command)) {
      ::signal(SIGPIPE, SIG_IGN);  // git is asked, and may end early
      interlock::Csprng random;
      interlock::SystemClock clock;
      done = app::Init(*init, random, clock);
    } else if (const auto* ask = std::get_if<app::AskOptions>(&command)) {
      done = app::Ask(*ask, app::Screen::Find());
    } else if (const auto* inbox = std::get_if<app::InboxOptions>(&command)) {
      done = app::Inbox(*inbox, Print);
    } else {
      done = std::get<app::Done>(command);
    }
    if (done.exit_code == 0 && !Print(done.text)) {
      std::fputs("intermute: the answer cannot be printed\n", stderr);
      return 1;
    }
    if (done.exit_code != 0) std::fputs(done.text.c_str(), stderr);
    return done.exit_code;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "intermute: unexpected failure: %s\n", e.what());
    return 1;
  }
}
