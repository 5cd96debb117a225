// Port: the settings of topics as a cluster has them, beside those that are planned. What a transport
// offers whose topics can be made by others (Kafka); the journal has no such settings.
#pragma once

#include <string>
#include <vector>

#include "core/result.h"

namespace tocsin::core {

/// One setting of a topic that is not what it should be.
struct TopicDifference {
  /// note: costs nothing that matters. warning: costs something under load or in a failure. danger:
  /// loses records or state in normal operation.
  enum class Grade { note, warning, danger };
  Grade grade = Grade::note;
  std::string key;     // Kafka's name, or "partitions", "replication"
  std::string wanted;  // "" = not set
  std::string found;
  std::string cost;  // a sentence
  /// Whether apply() sets it; else `kept` says why not.
  bool safe = false;
  std::string kept = {};
};

/// A topic that exists.
struct TopicComparison {
  std::string topic;                         // its full name
  std::vector<TopicDifference> differences;  // the most dangerous first
};

class TopicSettings {
 public:
  virtual ~TopicSettings() = default;
  /// Errors: unavailable, deadline_exceeded; what the cluster says where it does not show settings to us.
  virtual Result<std::vector<TopicComparison>> compare() = 0;
  /// Sets what is safe to set of those differences; all other settings of the topics stay.
  virtual Status apply(const std::vector<TopicComparison>& comparisons) = 0;
};

}  // namespace tocsin::core
