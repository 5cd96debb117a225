// Port: one program of a fixed absolute path, with arguments that no shell reads. Internal to actions.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/clock.h"
#include "core/result.h"

namespace tocsin::actions {

struct ProgramCall {
  std::vector<std::string> arguments;  // the first is the absolute path of the program
  std::vector<std::pair<std::string, std::string>> environment;  // all that it gets
};

struct ProgramResult {
  int code = 0;        // exit code; 128 + signal if one ended it
  std::string output;  // the first 64 KiB of stdout
  std::string errors;  // the same of stderr
};

class FixedProgram {
 public:
  virtual ~FixedProgram() = default;
  /// Runs to the end, or at most `budget`: then it and what it started are killed. Thread-safe.
  /// Errors: not_found (no such program), permission_denied (no absolute path, not executable, or all
  /// may write it), deadline_exceeded, internal.
  virtual core::Result<ProgramResult> run(const ProgramCall& call,
                                          std::chrono::milliseconds budget) = 0;
};

/// On this machine. stdin is empty; no descriptor of this process is inherited. `clock` outlives it.
std::unique_ptr<FixedProgram> local_program(core::Clock& clock);

}  // namespace tocsin::actions
