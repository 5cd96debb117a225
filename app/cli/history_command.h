// `tocsin history`: who was told what, when, and how it went (docs/history.md).
#pragma once

#include <string>

namespace tocsin::app {

struct HistoryOptions {
  std::string config_file;  // empty: $TOCSIN_CONFIG, then ./tocsin.yaml
  std::string out;          // kafka://host:9092 or a directory, before any file
  bool json = false;
  bool all = false;         // not only the newest
  std::string issue;        // an id of it, or the beginning of one
  std::string integration;  // its id, or a receiver
  std::string state;        // that notifications are in
  std::string since;        // a time, or a span back from now
  std::string run;          // as which_run.h finds it
  std::string job;          // of `run`
  bool audit = false;
};

/// An exit code; 1: with `audit`, a notification without exactly one state; no such run; 4: unreachable.
int history_command(const HistoryOptions& options);

}  // namespace tocsin::app
