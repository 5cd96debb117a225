// What people say of an issue once they have looked at it: a verdict, and notes. Records of
// `router-control`, keys `verdict/<issue key>/<event id>` and `note/<id>` (docs/verdicts.md).
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

#include "core/time.h"

namespace tocsin::core {

/// Which episode is meant: the ID of its first report is the same for everybody, its number is not.
struct IssueEpisode {
  std::string issue;     // issue key
  std::string event_id;  // of the first report
  std::string run;       // uid; empty: of no run
};

/// Was it worth telling? One per episode: a later one takes its place.
struct IssueVerdict {
  IssueEpisode of;
  std::string verdict;  // one of kVerdicts
  std::string by;
  WallTime at{};
  std::string note;
  std::string origin;  // cli, api
};

struct IssueNote {
  std::string id;  // note_…
  IssueEpisode of;
  std::string by;
  WallTime at{};
  std::string text;
  std::string origin;  // cli, api
};

/// useful: it was right to tell; noise: it was not; known: right, and no news.
inline constexpr std::array<std::string_view, 3> kVerdicts{"useful", "noise", "known"};
inline constexpr std::size_t kMostOfANote = 4096;        // bytes; of a verdict's note too
inline constexpr std::size_t kMostNotesOfAnIssue = 100;  // of one episode; one more is refused

inline constexpr std::string_view kVerdictPrefix = "verdict/";
inline constexpr std::string_view kNotePrefix = "note/";

}  // namespace tocsin::core
