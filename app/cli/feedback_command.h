// `tocsin verdict`, `tocsin note`: what somebody says of an issue (docs/verdicts.md).
#pragma once

#include <string>

namespace tocsin::app {

struct FeedbackOptions {
  std::string config_file;  // empty: $TOCSIN_CONFIG, then ./tocsin.yaml
  std::string out;          // kafka://host:9092 or a directory, before any file
  std::string id;           // of an issue or of a report of it, or the beginning of one
  std::string verdict;      // of `tocsin verdict`; with take_back: empty
  std::string text;         // the note
  std::string author;       // empty: user and host
  bool take_back = false;
  bool dry_run = false;
  bool json = false;
};

// 0: written; 1: no issue of this id, or several, or nothing to take back; 2: usage; 4: unreachable.
int verdict_command(const FeedbackOptions& options);
int note_command(const FeedbackOptions& options);

}  // namespace tocsin::app
