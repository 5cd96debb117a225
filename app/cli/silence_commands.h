// `tocsin silence`: for a time nobody is told of issues that match (docs/silences.md).
#pragma once

#include <string>
#include <vector>

#include "app/cli/silence_request.h"
#include "core/time.h"

namespace tocsin::app {

struct SilenceOptions {
  std::string config_file;  // empty: $TOCSIN_CONFIG, then ./tocsin.yaml
  std::string out;          // kafka://host:9092 or a directory, before any file
  bool json = false;
  bool all = false;           // list, query, export: ended ones too
  SilenceTerms terms;         // add, update, preview; query: its matchers
  bool dry_run = false;       // add, update
  bool force = false;         // add, update, import: although most would not mean it
  bool ids_only = false;      // query
  std::string id;             // update, expire: or its beginning
  std::uint64_t version = 0;  // update: that the change follows from; 0: any
  std::string file;           // import
};

// Each returns an exit code; 1: no such run or silence, or somebody changed it first; 2: what is asked
// for is no silence; 4: unreachable.
int silence_add(const SilenceOptions& options);
int silence_update(const SilenceOptions& options);
int silence_preview(const SilenceOptions& options);
int silence_list(const SilenceOptions& options);
int silence_query(const SilenceOptions& options);
int silence_expire(const SilenceOptions& options);
int silence_export(const SilenceOptions& options);
int silence_import(const SilenceOptions& options);

}  // namespace tocsin::app
