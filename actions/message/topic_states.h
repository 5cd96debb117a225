// What an MQTT message of the outbox holds: a state for each topic; and which of them have arrived.
// Internal to actions.
#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "actions/message/rendered.h"
#include "core/mutex.h"
#include "core/result.h"

namespace tocsin::actions {

struct TopicState {
  std::string topic;
  std::string payload;
  bool firing = true;
  std::string subject;    // uid of the run
  bool smallest = false;  // the payload is the short form
};

/// Content type of the stored form.
inline constexpr std::string_view kTopicStates = "application/x-tocsin-topics";
/// For each topic a line of JSON, and behind it the payload as it is: escaped once more it might not
/// fit into a record.
std::string write_topic_states(const std::vector<TopicState>& states);
/// Also reads what once was stored, an array of JSON. invalid_argument: what is wrong.
core::Result<std::vector<TopicState>> read_topic_states(const Rendered& rendered);

/// Topics that earlier attempts of a notification have brought there. Thread-safe; of the oldest
/// notifications forgotten beyond a limit, whose topics are then sent again.
class ArrivedTopics {
 public:
  [[nodiscard]] std::set<std::string> of(const std::string& notification_id) const;
  void add(const std::string& notification_id, const std::vector<std::string>& topics);
  void forget(const std::string& notification_id);

 private:
  static constexpr std::size_t kMostNotifications = 256;
  mutable core::Mutex mutex_;
  std::map<std::string, std::set<std::string>> topics_ GUARDED_BY(mutex_);
  std::deque<std::string> order_ GUARDED_BY(mutex_);
};

}  // namespace tocsin::actions
