#pragma once

#include <filesystem>
#include <memory>

#include "base/result.h"
#include "db/foreign_file.h"
#include "serve_options.h"

namespace interlock::app {

// Where `ic` looks for its file: ".clavain/intercore.db" in `from`, or else in the nearest
// directory above it that has one. kNotFound with what to do.
Result<std::filesystem::path> FindIntercoreFile(const std::filesystem::path& from);

// The file into which reservations are to be mirrored, not opened yet; null when none was asked
// for. One that is to be searched for is searched for at every opening.
std::unique_ptr<db::ForeignFile> MirrorFile(const ServeOptions& options);

}  // namespace interlock::app
