// Reads numbers from telemetry and commits each with its position to issues and rules-state, until
// it is killed. usage: crash_worker SERVERS PREFIX
#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include "core/log.h"
#include "core/telemetry.h"
#include "ingest/ingest.h"

int main(int argc, char** argv) {
  using namespace tocsin;
  if (argc != 3) return 2;
  core::NullLog log;
  core::NullTelemetry telemetry;
  ingest::TransportConfig cfg;
  cfg.kafka = core::ValueMap{{"bootstrap.servers", argv[1]},
                             {"consumer", core::ValueMap{{"session.timeout.ms", 6000}}}};
  ingest::TopicsConfig topics;
  topics.prefix = argv[2];
  topics.partitions = 2;
  auto transport = ingest::Transport::open(cfg, topics, log, telemetry);
  if (!transport) return 3;
  ingest::SourceOptions reading;
  reading.group = topics.prefix + "-engine";
  reading.topics = {"telemetry"};
  auto source = (*transport)->source(reading);
  if (!source) return 3;
  ingest::PublisherOptions writing;
  writing.transactional_id = topics.prefix + "-engine-0";
  writing.source = source->get();
  auto publisher = (*transport)->publisher(writing);
  if (!publisher) return 3;
  for (;;) {
    std::vector<core::OutRecord> out;
    const auto polled =
        (*source)->poll(std::chrono::milliseconds{100}, 7, [&](const core::RecordView& view) {
          for (const char* topic : {"issues", "rules-state"}) {
            core::OutRecord record;
            record.topic = topic;
            record.key = std::string(view.key.value_or(""));
            record.value = std::string(view.text());
            out.push_back(std::move(record));
          }
        });
    if (!polled || out.empty()) continue;
    const auto positions = (*source)->positions();
    core::Status status = core::ok();
    do {
      status = (*publisher)->commit(out, positions);
    } while (!status && status.error().retryable());
    if (!status) return 4;
    std::puts("committed");
    std::fflush(stdout);
  }
}
