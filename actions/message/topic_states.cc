#include "actions/message/topic_states.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/json.h"

namespace tocsin::actions {
namespace {

using nlohmann::json;

std::string text_of(const json& stored, const char* key) {
  const auto found = stored.find(key);
  return found != stored.end() && found->is_string() ? found->get<std::string>() : std::string();
}

bool flag_of(const json& stored, const char* key, bool otherwise) {
  const auto found = stored.find(key);
  return found != stored.end() && found->is_boolean() ? found->get<bool>() : otherwise;
}

TopicState state_from(const json& stored) {
  return {text_of(stored, "topic"), "", flag_of(stored, "firing", true), text_of(stored, "subject"),
          flag_of(stored, "smallest", false)};
}

core::Result<std::vector<TopicState>> read_array(const std::string& body) {
  if (const auto bounds = core::check_json_bounds(body, kMaxRendered); !bounds) {
    return bounds.error();
  }
  const json stored = json::parse(body, nullptr, false);
  if (!stored.is_array()) return core::invalid_argument("the stored message is no list of topics");
  std::vector<TopicState> out;
  for (const json& one : stored) {
    if (!one.is_object()) return core::invalid_argument("the stored message is no list of topics");
    out.push_back(state_from(one));
    out.back().payload = text_of(one, "payload");
  }
  return out;
}

}  // namespace

std::string write_topic_states(const std::vector<TopicState>& states) {
  std::string out;
  for (const TopicState& state : states) {
    out +=
        core::to_json(core::ValueMap{{"topic", state.topic},
                                     {"firing", state.firing},
                                     {"subject", state.subject},
                                     {"smallest", state.smallest},
                                     {"bytes", static_cast<std::uint64_t>(state.payload.size())}});
    out += '\n';
    out += state.payload;
    out += '\n';
  }
  return out;
}

core::Result<std::vector<TopicState>> read_topic_states(const Rendered& rendered) {
  if (rendered.content_type != kTopicStates) return read_array(rendered.body);
  const core::Error broken = core::invalid_argument("the stored message is cut or changed");
  std::vector<TopicState> out;
  std::string_view rest = rendered.body;
  while (!rest.empty()) {
    const std::size_t end = rest.find('\n');
    if (end == std::string_view::npos) return broken;
    const json head = json::parse(rest.substr(0, end), nullptr, false);
    if (!head.is_object() || !head.contains("bytes") || !head["bytes"].is_number_unsigned()) {
      return broken;
    }
    rest.remove_prefix(end + 1);
    const auto bytes = head["bytes"].get<std::size_t>();
    if (rest.size() <= bytes || rest[bytes] != '\n') return broken;
    out.push_back(state_from(head));
    out.back().payload = rest.substr(0, bytes);
    rest.remove_prefix(bytes + 1);
  }
  return out;
}

std::set<std::string> ArrivedTopics::of(const std::string& notification_id) const {
  const core::MutexLock lock(mutex_);
  const auto found = topics_.find(notification_id);
  return found == topics_.end() ? std::set<std::string>{} : found->second;
}

void ArrivedTopics::add(const std::string& notification_id,
                        const std::vector<std::string>& topics) {
  const core::MutexLock lock(mutex_);
  const auto [entry, fresh] = topics_.try_emplace(notification_id);
  entry->second.insert(topics.begin(), topics.end());
  if (!fresh) return;
  order_.push_back(notification_id);
  if (order_.size() <= kMostNotifications) return;
  topics_.erase(order_.front());
  order_.pop_front();
}

void ArrivedTopics::forget(const std::string& notification_id) {
  const core::MutexLock lock(mutex_);
  if (topics_.erase(notification_id) > 0) std::erase(order_, notification_id);
}

}  // namespace tocsin::actions
