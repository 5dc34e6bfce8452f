#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>

#include "base/clock.h"
#include "kernel/phase_event.h"

namespace interlock::cli {

inline constexpr std::chrono::milliseconds kPhaseHookLimit{5000};

// Runs <project>/.clavain/hooks/on-phase-advance, if it exists, in the project's directory, with
// the event as one line of JSON on its stdin. Its stdout is discarded. Its stderr is copied to ours
// until it ends. A background process that it leaves behind loses its stderr, so it cannot block a
// reader of ours.
//
// The hook must be an executable regular file, owned by us or root, and not world-writable, because
// it runs as us. After `limit`, the hook and its process group are killed. Returns the problem for
// a warning; the advance is valid in any case.
//
// For one thread at a time, with SIGPIPE ignored.
std::optional<std::string> RunPhaseHook(const std::filesystem::path& project,
                                        const kernel::PhaseEvent& event, Clock& clock,
                                        std::chrono::milliseconds limit = kPhaseHookLimit);

}  // namespace interlock::cli
