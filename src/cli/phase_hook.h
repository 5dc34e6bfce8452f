#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>

#include "base/clock.h"
#include "kernel/phase_event.h"

namespace interlock::cli {

inline constexpr std::chrono::milliseconds kPhaseHookLimit{5000};

// Runs <project>/.clavain/hooks/on-phase-advance, if there is one, with the event as one line of
// JSON on its stdin, in the project's directory. Its stdout goes nowhere. Its stderr is passed on
// to ours until it ends: what it leaves in the background has none, and holds up nobody who reads
// ours.
//
// It must be a regular file, executable, ours or root's, and not writable for everybody: whoever
// can write there runs commands as us. It is waited for as long as `limit`, then it and what it
// started are killed. Returns what went wrong, for a warning: the advance stands in any case.
//
// To be called by one thread at a time, with SIGPIPE ignored.
std::optional<std::string> RunPhaseHook(const std::filesystem::path& project,
                                        const kernel::PhaseEvent& event, Clock& clock,
                                        std::chrono::milliseconds limit = kPhaseHookLimit);

}  // namespace interlock::cli
