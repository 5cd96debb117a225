// `tocsin issues reproduce`: the verdict of one issue, from the records and the parameters that it
// names.
#pragma once

#include <string>

namespace tocsin::app {

struct ReproduceOptions {
  std::string config_file;  // empty: $TOCSIN_CONFIG, then ./tocsin.yaml
  std::string out;          // kafka://host:9092 or a directory, before any file
  std::string id;           // any id or fingerprint of the issue, or the beginning of one
  std::string from;         // where telemetry is, and the issue if it is there and no file is named
  std::string save;         // copy the telemetry that was judged into this directory
  bool json = false;
};

/// 0: the same rule found the same again; 1: it did not, or there is no such issue; 2, 3, 4 as
/// `replay`.
int reproduce_command(const ReproduceOptions& options);

}  // namespace tocsin::app
