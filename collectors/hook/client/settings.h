// What the client takes from its options, the environment and the configuration file, and the
// transport that follows from it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "collectors/hook/capture/capture.h"
#include "collectors/hook/client/client.h"
#include "collectors/hook/identity/identity.h"
#include "core/labels.h"
#include "core/result.h"
#include "ingest/ingest.h"

namespace tocsin::hook {

/// Texts as given; empty = not given.
struct SettingsInput {
  std::string out;
  std::string config_file;
  std::string capture;
  std::string labels;  // JSON object of texts
};

struct Settings {
  ingest::TransportConfig transport;
  ingest::TopicsConfig topics;
  CaptureConfig capture;
  std::string cluster;
  core::Labels labels;
  std::string out;  // for people: "kafka host:9092", "journal ./tocsin-data"
  /// Below it what could not be delivered to Kafka is kept; empty: nowhere.
  std::string spool;
  std::uint64_t spool_limit = SpoolPlace::kMostBytes;
  /// What is not as it was asked for: defaults hold there. For people.
  std::vector<std::string> warnings;
};

/// Order of `out`: the argument, TOCSIN_BROKERS, TOCSIN_OUT, the file's `transport`,
/// ./tocsin-data. What is wrong in the file is a warning and leaves the default, for the training is worth more
/// than its settings. Errors, of what was given for this process alone: invalid_argument.
core::Result<Settings> load_settings(const SettingsInput& input, const ProcessFacts& facts);

/// Writer name of a hook in a journal (docs/transports.md).
std::string journal_writer(const Identity& identity, std::uint64_t incarnation);

/// The directory of this client below Settings::spool; empty: there is none.
std::string spool_directory(const Settings& settings, const Identity& identity,
                            std::uint64_t incarnation);

/// What clients of one node have in common that read the same commands:
/// ClientOptions::command_share.
std::string command_share(const Settings& settings, const core::RunUid& run);

/// Opens nothing yet: the functions do, on the client's threads.
Endpoints make_endpoints(const Settings& settings, const Identity& identity,
                         std::shared_ptr<Trouble> trouble, std::uint64_t incarnation);

}  // namespace tocsin::hook
