// Sections `transport` and the choice between Kafka and the journal.
#include "ingest/transport.h"

#include "ingest/journal/directory.h"
#include "ingest/journal/transport.h"
#include "ingest/kafka/config.h"
#include "ingest/kafka/transport.h"

namespace tocsin::ingest {

namespace {

// "transport.kafka.acks: …" → "kafka.acks", where it stands.
std::string property_of(const std::string& message) {
  constexpr std::string_view kSection = "transport.";
  if (!message.starts_with(kSection)) return "kafka";
  return message.substr(kSection.size(), message.find(": ") - kSection.size());
}

}  // namespace

void read(config::Reader& in, TransportConfig& cfg) {
  in.any("kafka", cfg.kafka,
         "librdkafka properties by their own names (bootstrap.servers, security.protocol, …); "
         "<property>_file reads a secret from a file; maps `consumer` and `producer` override for "
         "one role",
         R"({"type": "object", "minProperties": 1})");
  in.optional("journal", cfg.journal, config::not_empty(),
              "folder of the embedded journal, for one machine");
  in.optional("journal_retention", cfg.journal_retention, config::positive(),
              "journal: the oldest that telemetry and acks may become, beside their own retention");
  in.optional("journal_max_bytes", cfg.journal_max_bytes,
              "journal: size of telemetry.db beyond which the oldest telemetry is deleted");
  in.optional(
      "journal_control_bytes", cfg.journal_control_bytes,
      "journal: size of control.db beyond which the oldest records of its largest topic go; "
      "never what is still needed");
  in.optional(
      "journal_fsync", cfg.journal_fsync, config::one_of({"commit", "never"}),
      "journal: `commit` syncs issues, commands and notifications to the disk before they count");
  in.exactly_one_of({"kafka", "journal"});
  if (in.describing() || cfg.kafka.is_null()) return;
  for (const auto role : {KafkaRole::consumer, KafkaRole::producer}) {
    if (auto conf = make_kafka_conf(cfg.kafka, role, {}); !conf) {
      in.error(property_of(conf.error().message), conf.error().message);
      return;
    }
  }
}

core::Status Transport::allow_topics(const std::vector<std::string>& names) {
  if (names.empty()) return core::ok();
  return core::Error{core::Code::failed_precondition,
                     "topic " + names.front() + ": topics of yours need transport.kafka"};
}

core::Status Transport::try_record(const core::OutRecord& record) {
  return core::Error{core::Code::failed_precondition,
                     "topic " + record.topic.substr(1) + ": topics of yours need transport.kafka"};
}

core::Result<std::unique_ptr<Transport>> Transport::open(const TransportConfig& cfg,
                                                         const TopicsConfig& topics, core::Log& log,
                                                         core::Telemetry& telemetry) {
  if (!cfg.kafka.is_null()) return open_kafka(cfg, topics, log, telemetry);
  return open_journal(cfg, topics, log, telemetry, machine_hash());
}

core::Result<std::unique_ptr<Transport>> Transport::open_recording(const std::string& directory,
                                                                   const TopicsConfig& topics,
                                                                   core::Log& log,
                                                                   core::Telemetry& telemetry) {
  return open_journal_recording(directory, topics, log, telemetry);
}

}  // namespace tocsin::ingest
