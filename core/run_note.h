// What somebody, or a program, writes about a run: a line of its history. Records of `router-control`, keys
// `run-note/<id>` (docs/verdicts.md).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "core/time.h"

namespace tocsin::core {

struct RunNote {
  std::string id;   // note_…
  std::string run;  // uid
  std::string by;
  WallTime at{};
  std::string text;
  std::string origin;  // api
};

inline constexpr std::string_view kRunNotePrefix = "run-note/";
inline constexpr std::size_t kMostOfARunNote = 4096;   // bytes of its text
inline constexpr std::size_t kMostNotesOfARun = 1000;  // one more is refused

}  // namespace tocsin::core
