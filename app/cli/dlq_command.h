// `tocsin dlq`: notifications that were given up and records that could not be read, and what to do about
// them (docs/dead-letters.md).
#pragma once

#include <string>
#include <vector>

namespace tocsin::app {

struct DlqOptions {
  std::string config_file;  // empty: $TOCSIN_CONFIG, then ./tocsin.yaml
  std::string out;          // kafka://host:9092 or a directory, before any file
  bool json = false;
  bool all = false;              // list: those that somebody has seen to, too
  std::string integration;       // of notifications: its id, or a receiver
  std::vector<std::string> ids;  // or the beginning of one
  bool as_was = false;           // replay: the message as it was decided
  bool force = false;            // replay: although its issues are over
  bool dry_run = false;
  std::string note;
};

// Each returns an exit code; 1: no such letter, or one was refused; 4: unreachable.
int dlq_list(const DlqOptions& options);
int dlq_show(const DlqOptions& options);
int dlq_replay(const DlqOptions& options);
int dlq_discard(const DlqOptions& options);

}  // namespace tocsin::app
