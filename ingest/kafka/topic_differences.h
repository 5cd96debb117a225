// How a topic that exists differs from the plan, and what that costs: a topic made by hand, or by a
// broker's defaults, has the right name and loses records all the same.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/topic_settings.h"
#include "ingest/transport.h"

namespace tocsin::ingest {

/// A topic as the cluster has it.
struct TopicFound {
  std::int32_t partitions = 0;
  std::int32_t replication = 0;                 // the smallest of its partitions; 0: not known
  std::map<std::string, std::string> settings;  // effective ones, by Kafka's name
};

/// In the order of their weight, the most dangerous first. Settings that the cluster does not show are
/// no difference.
std::vector<core::TopicDifference> find_differences(const TopicSpec& wanted,
                                                    const TopicFound& found);

}  // namespace tocsin::ingest
