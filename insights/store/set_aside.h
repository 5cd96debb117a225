// A store's file that is not gone on with: it is kept beside its place, and another one is begun.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "core/function_ref.h"
#include "core/result.h"

namespace tocsin::insights {

class StoreDatabase;

/// Why a file was set aside, and where it is now.
struct SetAside {
  std::string why;       // empty: none was
  std::string moved_to;  // empty: it could not be moved
  std::string replaced;  // an earlier file that had to go for it; empty: none had
  bool damaged = false;  // else it is of another version, or of another place
};

/// Renames the file or folder at `path` and its write-ahead log to `<path>.damaged` or `<path>.aside`, or with .2 or .3 behind
/// that. Where all three are there, the last one is replaced: a disk that goes bad must not be filled.
/// The caller holds the store's lock and has no connection to it; readers may.
SetAside set_store_aside(const std::string& path, std::string why, bool damaged);

/// What is told of damage that a reader meets: why.
using DamageHook = std::function<void(const std::string&)>;

using OpenStore = core::FunctionRef<core::Result<std::unique_ptr<StoreDatabase>>()>;

/// What `open` opens. A file that it finds damaged (data_loss), of another version or of another place is set
/// aside, which `moved` tells, and begun anew; so is one that is `condemned` for what was met in it
/// (empty: it is not), a folder, and an empty file.
core::Result<std::unique_ptr<StoreDatabase>> open_or_begin_anew(const std::string& path,
                                                                const std::string& condemned,
                                                                OpenStore open, SetAside& moved);

}  // namespace tocsin::insights
