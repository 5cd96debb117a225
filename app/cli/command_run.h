// What a command leaves behind when its words are parsed.
#pragma once

#include <functional>

namespace tocsin::app {

/// Does the work of the command that was named, and returns its exit code. Empty: none was.
using CommandRun = std::function<int()>;

}  // namespace tocsin::app
