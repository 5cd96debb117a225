// `tocsin test FILE…`: rules over a recorded slice must find exactly the issues that a file expects.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tocsin::app {

/// One issue as a golden file names it.
struct GoldenIssue {
  std::string rule;
  std::string kind;          // empty: the rule names none
  std::string run;           // the beginning of its uid; empty: of any run
  std::int64_t attempt = 0;  // 0: of any
  std::string unit;  // "mode=train tensor=loss worker=worker_0": what the rule judged, sorted
  std::optional<std::int64_t> step;  // where it began
  std::string severity;
};

/// A line per difference, in the order of the files: "- " expected and not found, "+ " found and not
/// expected. The same but for its step, kind or severity: one of each, next to each other.
std::vector<std::string> golden_diff(const std::vector<GoldenIssue>& expected,
                                     const std::vector<GoldenIssue>& found);

struct GoldenOptions {
  std::vector<std::string> files;
  bool update = false;  // writes what is found as what is expected
  bool json = false;
};

/// 0: every file is met, or was written; 1: differences, shown on stdout; 3: errors in a file; 4: a
/// recording cannot be read.
int golden_command(const GoldenOptions& options);

}  // namespace tocsin::app
