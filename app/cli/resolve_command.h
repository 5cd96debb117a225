// `tocsin issues resolve`: a person ends an issue that its producer will not end (docs/routing.md).
#pragma once

#include <string>

namespace tocsin::app {

struct ResolveOptions {
  std::string config_file;  // empty: $TOCSIN_CONFIG, then ./tocsin.yaml
  std::string out;          // kafka://host:9092 or a directory, before any file
  std::string id;           // any id or fingerprint of it, or the beginning of one
  std::string note;
  std::string author;  // empty: user and host
  bool dry_run = false;
  bool json = false;
};

/// 0: written; 1: no issue of this id, or several, or it does not fire; 4: unreachable.
int issues_resolve(const ResolveOptions& options);

}  // namespace tocsin::app
