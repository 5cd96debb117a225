// `tocsin ack`: somebody takes issues on (docs/acknowledge.md).
#pragma once

#include <string>

#include "core/time.h"

namespace tocsin::app {

struct AckOptions {
  std::string config_file;  // empty: $TOCSIN_CONFIG, then ./tocsin.yaml
  std::string out;          // kafka://host:9092 or a directory, before any file
  std::string what;         // an issue, a run, a notification or the hash of a group
  std::string job;          // of the run
  std::string note;
  std::string author;      // empty: user and host
  core::Duration lasts{};  // zero: as long as the router lets it
  std::string until;       // a time instead; empty: none
  bool take_back = false;
  bool dry_run = false;
  bool json = false;
};

/// 0: written; 1: `what` is nothing that fires, or several things; 2: usage; 4: unreachable.
int ack_command(const AckOptions& options);

}  // namespace tocsin::app
