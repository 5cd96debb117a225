// `tocsin sync DIR`: what a finished training left in a directory is sent to Kafka later.
#pragma once

#include <string>

namespace tocsin::app {

struct SyncOptions {
  std::string directory;    // a journal, finished or still written
  std::string out;          // kafka://host:9092; empty: environment, configuration
  std::string config_file;  // empty: TOCSIN_CONFIG, then ./tocsin.yaml
  bool json = false;
};
/// Sends the telemetry of the directory in its order, with the identities and sequence numbers that
/// the hook gave it, and remembers in `synced.json` there how far it came: a second time sends only
/// what is new. After an interruption the records of one batch may be sent again; the engine knows
/// them by their sequence numbers. 0: all is there; 2: the target is no Kafka, or somebody else
/// syncs the directory; 3: configuration; 4: the directory cannot be read, or the cluster does not
/// answer.
int sync_command(const SyncOptions& options);

}  // namespace tocsin::app
