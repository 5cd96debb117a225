#include "ingest/group_positions.h"

#include <algorithm>

#include "core/log.h"
#include "core/telemetry.h"
#include "ingest/journal/group_positions.h"
#include "ingest/kafka/group_positions.h"

namespace tocsin::ingest {

core::Result<std::vector<core::Position>> group_positions(const TransportConfig& cfg,
                                                          const TopicsConfig& topics,
                                                          const std::string& group,
                                                          const std::vector<std::string>& names) {
  if (cfg.kafka.is_null()) return journal_positions(cfg.journal, group, names);
  core::NullLog log;
  core::NullTelemetry telemetry;
  auto transport = Transport::open(cfg, topics, log, telemetry);
  if (!transport) return transport.error();
  const auto states = (*transport)->topic_states();
  if (!states) return states.error();
  std::vector<core::StreamPartition> asked;
  for (const TopicState& state : *states) {
    if (std::find(names.begin(), names.end(), state.wanted.name) == names.end()) continue;
    for (std::int32_t i = 0; i < state.partitions.value_or(0); ++i) {
      asked.push_back({state.wanted.name, i});
    }
  }
  return kafka_positions(cfg, topics, group, asked);
}

}  // namespace tocsin::ingest
