#include "ingest/positions_since.h"

#include <algorithm>

#include "core/log.h"
#include "core/telemetry.h"
#include "ingest/journal/positions_since.h"
#include "ingest/kafka/positions_since.h"

namespace tocsin::ingest {

core::Result<std::vector<core::Position>> positions_since(const TransportConfig& cfg,
                                                          const TopicsConfig& topics,
                                                          const std::vector<std::string>& names,
                                                          core::WallTime since) {
  if (cfg.kafka.is_null()) return journal_positions_since(cfg.journal, topics, names, since);
  core::NullLog log;
  core::NullTelemetry telemetry;
  auto transport = Transport::open(cfg, topics, log, telemetry);
  if (!transport) return transport.error();
  const auto states = (*transport)->topic_states();
  if (!states) return states.error();
  std::vector<core::StreamPartition> asked;
  for (const TopicState& state : *states) {
    if (std::find(names.begin(), names.end(), state.wanted.name) == names.end()) continue;
    for (std::int32_t i = 0; i < state.partitions.value_or(0); ++i)
      asked.push_back({state.wanted.name, i});
  }
  return kafka_positions_since(cfg, topics, asked, since);
}

}  // namespace tocsin::ingest
