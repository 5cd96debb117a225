// `tocsin stops`: the stops that were asked for, and a person's word on those that wait for one
// (docs/approvals.md).
#pragma once

#include <string>

#include "core/time.h"

namespace tocsin::app {

struct StopWordOptions {
  std::string config_file;  // empty: $TOCSIN_CONFIG, then ./tocsin.yaml
  std::string out;          // kafka://host:9092 or a directory, before any file
  bool json = false;
  bool all = false;                                // list: those that are over too
  std::string id;                                  // a command id, or its beginning
  std::string comment;                             // is kept with the word
  core::Duration wait = std::chrono::seconds(10);  // approve: until the command is written
};

// Each returns an exit code; 1: there is no such stop, or it no longer waits; 4: unreachable.
int stops_list(const StopWordOptions& options);
int stops_show(const StopWordOptions& options);
/// 75: the word is written, and nobody has followed it within `wait`.
int stops_approve(const StopWordOptions& options);
int stops_cancel(const StopWordOptions& options);

}  // namespace tocsin::app
