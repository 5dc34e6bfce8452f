#pragma once

#include <fcntl.h>
#include <unistd.h>

namespace interlock {

// Opens /dev/null for each of standard input, output and error that is closed: a file that is
// opened later must not become one of them by accident, and be written to.
inline void FillStandardDescriptors() {
  while (true) {
    const int fd = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    if (fd > STDERR_FILENO) ::close(fd);
    if (fd < 0 || fd > STDERR_FILENO) return;
  }
}

}  // namespace interlock
