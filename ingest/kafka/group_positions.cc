#include "ingest/kafka/group_positions.h"

#include <chrono>
#include <utility>

#include "core/log.h"
#include "core/telemetry.h"
#include "ingest/kafka/config.h"
#include "ingest/kafka/consumer.h"

namespace tocsin::ingest {
namespace {

constexpr std::chrono::milliseconds kPositionsPatience{20'000};

}  // namespace

core::Result<std::vector<core::Position>> kafka_positions(
    const TransportConfig& cfg, const TopicsConfig& topics, const std::string& group,
    std::span<const core::StreamPartition> asked) {
  core::NullLog log;
  core::NullTelemetry telemetry;
  const KafkaContext context{
      cfg.kafka, kafka_address(cfg.kafka), topics.prefix, topic_plan(topics), log, telemetry};
  const auto settings =
      consumer_settings(group, kafka_client_id("positions"), std::chrono::milliseconds{10});
  auto conf = make_kafka_conf(context.properties, KafkaRole::consumer, settings);
  if (!conf) return conf.error();
  auto client = KafkaClient::start(std::move(*conf), KafkaRole::consumer, nullptr, context.log);
  if (!client) return client.error();
  rd_kafka_poll_set_consumer((*client)->get());
  const auto list = partition_list(context, asked);
  const auto error = rd_kafka_committed((*client)->get(), list.get(),
                                        static_cast<int>(kPositionsPatience.count()));
  if (error != RD_KAFKA_RESP_ERR_NO_ERROR) {
    return kafka_error(error, "asking where group " + group + " stands");
  }
  std::vector<core::Position> out;
  for (int i = 0; i < list->cnt; ++i) {
    const auto& one = list->elems[i];
    if (one.err != RD_KAFKA_RESP_ERR_NO_ERROR || one.offset < 0) continue;
    out.push_back({{std::string(context.short_name(one.topic)), one.partition}, one.offset});
  }
  return out;
}

}  // namespace tocsin::ingest
