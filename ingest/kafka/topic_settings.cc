#include "ingest/kafka/topic_settings.h"

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "ingest/kafka/deadline.h"
#include "ingest/kafka/topic_differences.h"

namespace tocsin::ingest {
namespace {

constexpr int kAnswer = 10'000;  // ms

struct Deleter {
  void operator()(rd_kafka_ConfigResource_t* one) const noexcept {
    rd_kafka_ConfigResource_destroy(one);
  }
  void operator()(rd_kafka_AdminOptions_t* one) const noexcept {
    rd_kafka_AdminOptions_destroy(one);
  }
  void operator()(rd_kafka_queue_t* one) const noexcept { rd_kafka_queue_destroy(one); }
  void operator()(rd_kafka_event_t* one) const noexcept { rd_kafka_event_destroy(one); }
};
template <typename T>
using Owned = std::unique_ptr<T, Deleter>;

using Settings = std::map<std::string, std::string>;
struct Described {
  Settings effective;
  Settings own;  // set on the topic itself
};

class Resources {
 public:
  rd_kafka_ConfigResource_t* add(const std::string& topic) {
    owned_.emplace_back(rd_kafka_ConfigResource_new(RD_KAFKA_RESOURCE_TOPIC, topic.c_str()));
    list_.push_back(owned_.back().get());
    return list_.back();
  }
  [[nodiscard]] bool empty() const { return list_.empty(); }
  rd_kafka_ConfigResource_t** data() { return list_.data(); }
  [[nodiscard]] std::size_t size() const { return list_.size(); }

 private:
  std::vector<Owned<rd_kafka_ConfigResource_t>> owned_;
  std::vector<rd_kafka_ConfigResource_t*> list_;
};

// Sends one admin request and waits for its answer.
template <typename Send>
core::Result<Owned<rd_kafka_event_t>> ask(rd_kafka_t* client, rd_kafka_admin_op_t what,
                                          const std::string& doing, Send send) {
  const Owned<rd_kafka_queue_t> queue(rd_kafka_queue_new(client));
  const Owned<rd_kafka_AdminOptions_t> options(rd_kafka_AdminOptions_new(client, what));
  std::array<char, 256> text{};
  rd_kafka_AdminOptions_set_request_timeout(options.get(), kAnswer, text.data(), text.size());
  send(options.get(), queue.get());
  Owned<rd_kafka_event_t> event(rd_kafka_queue_poll(queue.get(), kAnswer + 1000));
  if (!event) return core::Error{core::Code::deadline_exceeded, doing + ": no answer in time"};
  if (const auto error = rd_kafka_event_error(event.get()); error != RD_KAFKA_RESP_ERR_NO_ERROR) {
    return kafka_error(error, doing);
  }
  return event;
}

core::Status failure_of(const rd_kafka_ConfigResource_t& resource, const std::string& doing) {
  const auto error = rd_kafka_ConfigResource_error(&resource);
  if (error == RD_KAFKA_RESP_ERR_NO_ERROR) return core::ok();
  const char* why = rd_kafka_ConfigResource_error_string(&resource);
  return core::Error{kafka_code(error), doing + " of " + rd_kafka_ConfigResource_name(&resource) +
                                            ": " +
                                            (why != nullptr ? why : rd_kafka_err2str(error))};
}

Described settings_of(const rd_kafka_ConfigResource_t& resource) {
  Described out;
  std::size_t count = 0;
  const auto* entries = rd_kafka_ConfigResource_configs(&resource, &count);
  for (std::size_t i = 0; i < count; ++i) {
    const char* value = rd_kafka_ConfigEntry_value(entries[i]);
    if (value == nullptr) continue;
    const char* name = rd_kafka_ConfigEntry_name(entries[i]);
    out.effective[name] = value;
    if (rd_kafka_ConfigEntry_source(entries[i]) == RD_KAFKA_CONFIG_SOURCE_DYNAMIC_TOPIC_CONFIG) {
      out.own[name] = value;
    }
  }
  return out;
}

core::Result<std::map<std::string, Described>> describe(rd_kafka_t* client,
                                                        const KafkaContext& context,
                                                        const std::vector<std::string>& names) {
  const std::string doing = "reading the settings of topics at " + context.address;
  std::map<std::string, Described> out;
  Resources topics;
  for (const std::string& name : names) topics.add(name);
  if (topics.empty()) return out;
  auto event = ask(client, RD_KAFKA_ADMIN_OP_DESCRIBECONFIGS, doing,
                   [&](const rd_kafka_AdminOptions_t* options, rd_kafka_queue_t* queue) {
                     rd_kafka_DescribeConfigs(client, topics.data(), topics.size(), options, queue);
                   });
  if (!event) return event.error();
  std::size_t count = 0;
  const auto* found = rd_kafka_DescribeConfigs_result_resources(
      rd_kafka_event_DescribeConfigs_result(event->get()), &count);
  for (std::size_t i = 0; i < count; ++i) {
    if (auto status = failure_of(*found[i], doing); !status) return status.error();
    out[rd_kafka_ConfigResource_name(found[i])] = settings_of(*found[i]);
  }
  return out;
}

// Of the topics of the plan that exist.
std::map<std::string, TopicFound> shapes_of(const rd_kafka_metadata_t& metadata,
                                            const std::vector<TopicSpec>& plan) {
  std::map<std::string, TopicFound> out;
  for (int i = 0; i < metadata.topic_cnt; ++i) {
    const auto& topic = metadata.topics[i];
    const bool ours = std::any_of(plan.begin(), plan.end(), [&](const TopicSpec& one) {
      return one.full_name == topic.topic;
    });
    if (!ours || topic.partition_cnt == 0) continue;
    TopicFound& found = out[topic.topic];
    found.partitions = topic.partition_cnt;
    found.replication = topic.partitions[0].replica_cnt;
    for (int p = 1; p < topic.partition_cnt; ++p) {
      found.replication =
          std::min<std::int32_t>(found.replication, topic.partitions[p].replica_cnt);
    }
  }
  return out;
}

}  // namespace

core::Result<std::vector<core::TopicComparison>> compare_kafka_settings(
    rd_kafka_t* client, const KafkaContext& context) {
  const auto metadata = kafka_metadata(client, kMetadataTimeout, context.address);
  if (!metadata) return metadata.error();
  auto shapes = shapes_of(**metadata, context.plan);
  std::vector<std::string> names;
  for (const auto& [name, shape] : shapes) names.push_back(name);
  auto described = describe(client, context, names);
  if (!described) return described.error();
  std::vector<core::TopicComparison> out;
  for (const TopicSpec& wanted : context.plan) {
    const auto found = shapes.find(wanted.full_name);
    if (found == shapes.end()) continue;
    found->second.settings = std::move((*described)[wanted.full_name].effective);
    out.push_back({wanted.full_name, find_differences(wanted, found->second)});
  }
  return out;
}

// The request that this library has sets all settings of a topic at once: those that were set by others
// are sent along.
core::Status apply_kafka_settings(rd_kafka_t* client, const KafkaContext& context,
                                  const std::vector<core::TopicComparison>& comparisons) {
  const std::string doing = "setting topics at " + context.address;
  std::vector<std::string> names;
  for (const core::TopicComparison& one : comparisons) {
    const bool any = std::any_of(one.differences.begin(), one.differences.end(),
                                 [](const core::TopicDifference& each) { return each.safe; });
    if (any) names.push_back(one.topic);
  }
  if (names.empty()) return core::ok();
  auto described = describe(client, context, names);
  if (!described) return described.error();
  Resources topics;
  for (const core::TopicComparison& one : comparisons) {
    if (std::find(names.begin(), names.end(), one.topic) == names.end()) continue;
    Settings settings = (*described)[one.topic].own;
    for (const core::TopicDifference& each : one.differences) {
      if (each.safe) settings[each.key] = each.wanted;
    }
    auto* resource = topics.add(one.topic);
    for (const auto& [name, value] : settings) {
      rd_kafka_ConfigResource_set_config(resource, name.c_str(), value.c_str());
    }
  }
  auto event = ask(client, RD_KAFKA_ADMIN_OP_ALTERCONFIGS, doing,
                   [&](const rd_kafka_AdminOptions_t* options, rd_kafka_queue_t* queue) {
                     rd_kafka_AlterConfigs(client, topics.data(), topics.size(), options, queue);
                   });
  if (!event) return event.error();
  std::size_t count = 0;
  const auto* set = rd_kafka_AlterConfigs_result_resources(
      rd_kafka_event_AlterConfigs_result(event->get()), &count);
  for (std::size_t i = 0; i < count; ++i) {
    if (auto status = failure_of(*set[i], doing); !status) return status;
  }
  return core::ok();
}

}  // namespace tocsin::ingest
