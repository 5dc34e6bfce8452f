#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

namespace interlock::http {

// "intermute (pid 4711)"; without a right to see its name "pid 4711".
std::string DescribeProcess(pid_t pid);

// The process that listens on a TCP port of this machine, described as above; "" when /proc does
// not show it (another user's process). For messages only: by the time it is read it may be wrong.
std::string DescribePortHolder(std::uint16_t port);

}  // namespace interlock::http
