#include "collectors/hook/client/settings.h"

#include <unistd.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <span>
#include <utility>

#include "collectors/hook/client/out_place.h"
#include "collectors/hook/client/shared_sections.h"
#include "collectors/hook/identity/bounded_json.h"
#include "config/config.h"
#include "core/limits.h"
#include "core/topics.h"

namespace tocsin::hook {
namespace {

using core::Result;
using core::Value;
using core::ValueMap;

constexpr const char* kKafkaScheme = "kafka://";
constexpr std::uint64_t kPublisherBytes = 16ULL << 20;  // beside the client's own queue
constexpr std::chrono::milliseconds kLinger{5};
constexpr std::chrono::milliseconds kPingTimeout{300};
constexpr std::chrono::milliseconds kAnswerTimeout{1'000};
constexpr std::chrono::milliseconds kFetchWait{1'000};
constexpr int kRegistryTurns = 20;
constexpr std::size_t kRegistryBatch = 1024;
constexpr std::chrono::seconds kEngineOfJournal{2};   // it is asked for so long after the start,
constexpr std::chrono::seconds kEngineOfCluster{15};  // or so: until then a run may not be known
constexpr const char* kSpoolVariable = "TOCSIN_SPOOL";
constexpr const char* kSpoolFolder = "./tocsin-spool";
constexpr const char* kSpoolLimitVariable = "TOCSIN_SPOOL_LIMIT";
constexpr std::uint64_t kSpoolBytes = 96ULL << 20;  // more than the queue and the unconfirmed hold

core::Status add_labels(const std::string& json, core::Labels& labels) {
  const auto parsed = parse_given(json);
  if (!parsed.is_object()) return core::invalid_argument("labels: expected an object of texts");
  for (const auto& [name, value] : parsed.items()) {
    labels.set(name, value.is_string() ? value.get<std::string>() : value.dump());
  }
  return core::ok();
}

std::string words_of(const core::LabelsBound& bound) {
  std::string out = "labels:";
  if (bound.changed > 0) {
    out += " " + std::to_string(bound.changed) +
           " names or values are too long or no text and were cut";
  }
  if (bound.left_out > 0) {
    out += std::string(bound.changed > 0 ? "," : "") + " " + std::to_string(bound.left_out) +
           " labels are left out";
  }
  return out + " (at most " + std::to_string(core::limit::kRunLabels) + " labels, names of " +
         std::to_string(core::limit::kLabelNameBytes) + " and values of " +
         std::to_string(core::limit::kLabelValueBytes) + " bytes, " +
         std::to_string(core::limit::kLabelsBytes / 1024) + " KiB together)";
}

// Keeps what the file says about security, replaces where to.
void use_brokers(const std::string& brokers, ingest::TransportConfig& transport) {
  ValueMap kafka;
  if (const auto* given = core::as<ValueMap>(transport.kafka)) kafka = *given;
  std::erase_if(kafka, [](const auto& item) { return item.first == "bootstrap.servers"; });
  kafka.emplace_back("bootstrap.servers", brokers);
  transport.kafka = std::move(kafka);
}

// "1GiB", as in a configuration.
std::optional<std::uint64_t> size_of(const std::string& text) {
  config::Diagnostics diagnostics;
  config::Bytes bytes;
  const auto document = config::Document::parse(
      "size: " + text, "size", [](const std::string&) { return std::optional<std::string>(); },
      diagnostics);
  if (document) {
    document->read(diagnostics, [&](config::Reader& in) { in.optional("size", bytes, "a size"); });
  }
  if (!document || diagnostics.has_errors() || bytes.count == 0) return std::nullopt;
  return bytes.count;
}

core::Status use_out(const std::string& what, const std::string& out,
                     ingest::TransportConfig& transport) {
  const auto place = parse_place(what, out);
  if (!place) return place.error();
  if (!place->brokers.empty()) {
    use_brokers(place->brokers, transport);
  } else {
    transport.kafka = Value();
    transport.journal = place->directory;
  }
  return core::ok();
}

// Of a dry run: takes everything, and nothing comes of it.
class Discard final : public core::RecordPublisher {
 public:
  core::Status publish(const core::OutRecord& /*record*/) override { return core::ok(); }
  core::Status flush(std::chrono::milliseconds /*timeout*/) override { return core::ok(); }
  core::Status commit(std::span<const core::OutRecord> /*records*/,
                      std::span<const core::Position> /*positions*/) override {
    return core::ok();
  }
  core::Result<std::int32_t> partitions(std::string_view /*topic*/) override { return 1; }
};

// Opened at the first try and then shared by publisher and source.
struct SharedTransport {
  Settings settings;
  std::shared_ptr<Trouble> trouble;
  core::NullTelemetry telemetry;
  std::string writer;
  core::RunUid run;
  std::unique_ptr<ingest::Transport> transport;
  std::unique_ptr<ingest::Transport> left;  // the spool's
  bool reached = false;

  Result<std::unique_ptr<ingest::Transport>> open() {
    return ingest::Transport::open(settings.transport, settings.topics, *trouble, telemetry);
  }

  // Until a broker has answered, records wait in the client's own queue, where precedence decides
  // what is dropped, and not in librdkafka's, which would lose `start` and the first names after
  // its time-out. A client of its own: it is gone as soon as it has answered.
  core::Status reach() {
    if (reached) return core::ok();
    auto probe = open();
    if (!probe) return probe.error();
    if (auto answered = (*probe)->ping(kPingTimeout); !answered) return answered;
    reached = true;
    return core::ok();
  }

  // Without a transport nothing was sent yet, and the first look is reach()'s.
  bool answers() { return transport == nullptr || transport->ping(kAnswerTimeout).has_value(); }

  Result<std::unique_ptr<core::RecordPublisher>> publisher() {
    if (auto ok = reach(); !ok) return ok.error();
    if (transport == nullptr) {
      auto opened = open();
      if (!opened) return opened.error();
      transport = *std::move(opened);
    }
    ingest::PublisherOptions options;
    options.writer = writer;
    options.linger = kLinger;
    options.max_queued_bytes = kPublisherBytes;
    auto made = transport->publisher(options);
    if (!made) return made;
    // A topic that does not exist yet is waited for in the same way.
    if (auto partitions = (*made)->partitions(core::topic::kTelemetry); !partitions)
      return partitions.error();
    reached = false;  // whoever asks for another one has lost this one
    return made;
  }

  // Of a cluster: what an engine has read of this run stands in the registry, which is small.
  std::optional<bool> in_registry() const {
    if (transport == nullptr) return std::nullopt;
    ingest::SourceOptions options;
    options.topics = {core::topic::kRegistry};
    options.start = ingest::Start::beginning;
    auto source = transport->source(options);
    if (!source) return std::nullopt;
    const std::string key = core::to_text(run);
    bool found = false;
    for (int turn = 0; turn < kRegistryTurns; ++turn) {
      const auto read = (*source)->poll(
          kAnswerTimeout / kRegistryTurns, kRegistryBatch,
          [&](const core::RecordView& record) { found = found || record.key == key; });
      if (found) return true;
      if (!read) return std::nullopt;
      if (*read == 0 && (*source)->at_end()) return false;
    }
    return std::nullopt;
  }

  core::Status open_spool(const std::string& directory) {
    if (left != nullptr) return core::ok();
    ingest::TransportConfig place;
    place.journal = directory;
    auto opened = ingest::Transport::open(place, settings.topics, *trouble, telemetry);
    if (!opened) return opened.error();
    left = *std::move(opened);
    return core::ok();
  }

  // The transport is kept as long as what it has given may live: until remove_spool().
  Result<std::unique_ptr<core::RecordPublisher>> write_spool(const std::string& directory) {
    if (auto ok = open_spool(directory); !ok) return ok.error();
    ingest::PublisherOptions options;
    options.writer = writer;
    options.max_queued_bytes = kSpoolBytes;
    options.max_queued_records = 1'000'000;
    return left->publisher(options);
  }

  Result<std::unique_ptr<core::RecordSource>> read_spool(const std::string& directory) {
    if (auto ok = open_spool(directory); !ok) return ok.error();
    ingest::SourceOptions options;
    options.topics = {core::topic::kTelemetry};
    options.start = ingest::Start::beginning;
    return left->source(options);
  }

  // And the folder around it, when it was the last one.
  void remove_spool(const std::string& directory) {
    left.reset();
    std::error_code ignored;
    std::filesystem::remove_all(directory, ignored);
    std::filesystem::remove(std::filesystem::path(directory).parent_path(), ignored);
  }

  Result<std::unique_ptr<core::RecordSource>> commands(core::RecordPublisher& publisher) const {
    const auto partitions = publisher.partitions(core::topic::kCommands);
    if (!partitions) return partitions.error();
    ingest::SourceOptions options;
    options.topics = {core::topic::kCommands};
    options.start = ingest::Start::beginning;
    // The broker holds the request until something comes: an idle run asks it once a second.
    options.fetch_wait = kFetchWait;
    // The partition of the run's uid, whatever the key's suffix (docs/wire.md).
    options.partition = core::partition_for(core::to_text(run), std::max(*partitions, 1));
    return transport->source(options);
  }
};

std::string variable_of(const ProcessFacts& facts, const char* name) {
  return facts.environment(name).value_or("");
}

// Where records go, by what the caller says or else by the environment.
core::Status read_destination(const SettingsInput& input, const ProcessFacts& facts,
                              decltype(Settings::transport)& transport) {
  if (!input.out.empty()) return use_out("out", input.out, transport);
  if (const std::string brokers = variable_of(facts, "TOCSIN_BROKERS"); !brokers.empty()) {
    if (auto ok = check_brokers("TOCSIN_BROKERS", brokers); !ok) return ok;
    use_brokers(brokers, transport);
    return core::ok();
  }
  const std::string given = variable_of(facts, "TOCSIN_OUT");
  return given.empty() ? core::ok() : use_out("TOCSIN_OUT", given, transport);
}

// Names the brokers, and says what is kept on disk while they are away.
void use_kafka(const ValueMap& kafka, const ProcessFacts& facts, Settings& out) {
  const std::string spool = variable_of(facts, kSpoolVariable);
  if (spool != "off") out.spool = spool.empty() ? kSpoolFolder : spool;
  if (const std::string limit = variable_of(facts, kSpoolLimitVariable); !limit.empty()) {
    const auto bytes = size_of(limit);
    out.spool_limit = bytes.value_or(out.spool_limit);
    if (!bytes) {
      out.warnings.push_back(std::string(kSpoolLimitVariable) + " \"" + limit +
                             "\": give a size such as 1GiB");
    }
  }
  out.out = "kafka";
  for (const auto& [key, value] : kafka) {
    const auto* text = core::as<std::string>(value);
    if (key == "bootstrap.servers" && text != nullptr) out.out = std::string(kKafkaScheme) + *text;
  }
}

}  // namespace

Result<Settings> load_settings(const SettingsInput& input, const ProcessFacts& facts) {
  Settings out;
  const std::string file =
      !input.config_file.empty() ? input.config_file : variable_of(facts, "TOCSIN_CONFIG");
  if (!file.empty()) {
    SharedSections sections;
    out.warnings = read_shared(file, facts.environment, sections);
    out.transport = std::move(sections.transport);
    out.topics = std::move(sections.topics);
    out.capture = std::move(sections.capture);
    out.cluster = std::move(sections.cluster);
    for (const auto& [name, text] : sections.labels) out.labels.set(name, text);
  }
  if (auto ok = read_destination(input, facts, out.transport); !ok) return ok.error();
  if (!input.capture.empty()) {
    auto capture = parse_capture(input.capture, out.capture);
    if (!capture) return capture.error();
    out.capture = *std::move(capture);
  }
  if (!input.labels.empty()) {
    if (auto ok = add_labels(input.labels, out.labels); !ok) return ok.error();
  }
  if (const core::LabelsBound bound = core::bound_run_labels(out.labels); !bound.fits()) {
    out.warnings.push_back(words_of(bound));
  }
  if (out.capture.dry_run) {
    out.out = "nowhere (dry run)";
  } else if (const auto* kafka = core::as<ValueMap>(out.transport.kafka)) {
    use_kafka(*kafka, facts, out);
  } else {
    out.out = out.transport.journal;
  }
  return out;
}

std::string journal_writer(const Identity& identity, std::uint64_t incarnation) {
  std::array<char, 17> hex{};
  std::snprintf(hex.data(), hex.size(), "%016llx", static_cast<unsigned long long>(incarnation));
  return "hook-" + core::to_text(identity.run).substr(0, 8) + "-" +
         std::to_string(identity.attempt) + "-" + std::to_string(identity.rank) + "-" + hex.data();
}

std::string spool_directory(const Settings& settings, const Identity& identity,
                            std::uint64_t incarnation) {
  if (settings.spool.empty()) return {};
  return settings.spool + "/" + journal_writer(identity, incarnation);
}

std::string command_share(const Settings& settings, const core::RunUid& run) {
  std::string place = settings.out;
  if (settings.transport.kafka.is_null()) {
    std::error_code ignored;
    place = std::filesystem::weakly_canonical(std::filesystem::absolute(place, ignored), ignored)
                .string();
  }
  const auto digest =
      core::sha256(place + '\x1f' + settings.topics.prefix + '\x1f' + core::to_text(run));
  return "tocsin/" + std::to_string(geteuid()) + "/" + core::hex(std::span(digest).first(16));
}

Endpoints make_endpoints(const Settings& settings, const Identity& identity,
                         std::shared_ptr<Trouble> trouble, std::uint64_t incarnation) {
  auto shared = std::make_shared<SharedTransport>();
  shared->settings = settings;
  shared->trouble = std::move(trouble);
  shared->run = identity.run;
  shared->writer = journal_writer(identity, incarnation);
  Endpoints out;
  if (settings.capture.dry_run) {
    out.publisher = []() -> Result<std::unique_ptr<core::RecordPublisher>> {
      return std::unique_ptr<core::RecordPublisher>(std::make_unique<Discard>());
    };
    out.commands = [](core::RecordPublisher&) -> Result<std::unique_ptr<core::RecordSource>> {
      return core::Error{core::Code::not_found, "nobody is asked in a dry run"};
    };
    return out;
  }
  out.publisher = [shared] { return shared->publisher(); };
  out.commands = [shared](core::RecordPublisher& publisher) { return shared->commands(publisher); };
  out.answers = [shared] { return shared->answers(); };
  if (settings.transport.kafka.is_null()) {
    out.judged.ask = [journal = settings.transport.journal, prefix = settings.topics.prefix] {
      return std::optional(engine_reads(journal, prefix));
    };
    out.judged.first = kEngineOfJournal;
    out.judged.quick = true;
  } else if (identity.rank == 0) {  // one of a run asks
    out.judged.ask = [shared] { return shared->in_registry(); };
    out.judged.first = kEngineOfCluster;
  }
  const std::string directory = spool_directory(settings, identity, incarnation);
  if (directory.empty()) return out;
  out.spool.directory = directory;
  out.spool.write = [shared, directory] { return shared->write_spool(directory); };
  out.spool.read = [shared, directory] { return shared->read_spool(directory); };
  out.spool.remove = [shared, directory] { shared->remove_spool(directory); };
  out.spool.most_bytes = settings.spool_limit;
  return out;
}

}  // namespace tocsin::hook
