// Exit codes of the program.
#pragma once

#include "core/error.h"

namespace tocsin::app {

/// Exit codes (contract: documented for schedulers).
inline constexpr int kOk = 0;
inline constexpr int kFailed = 1;
inline constexpr int kUsage = 2;
inline constexpr int kConfiguration = 3;
inline constexpr int kUnreachable = 4;
inline constexpr int kTemporary = 75;

/// The exit code that reports `error`.
int exit_code(const core::Error& error);

}  // namespace tocsin::app
