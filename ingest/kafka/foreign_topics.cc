#include "ingest/kafka/foreign_topics.h"

#include <algorithm>
#include <utility>

#include "ingest/kafka/deadline.h"

namespace tocsin::ingest {
namespace {

constexpr std::chrono::milliseconds kTrial{4'500};
// What a topic takes where nobody has said otherwise; a smaller one answers for itself.
constexpr const char* kTopicTakes = "1048588";

core::Error kafka_failure(rd_kafka_error_t* error, const std::string& doing) {
  const Kafka<rd_kafka_error_t> owned(error);
  return {kafka_code(rd_kafka_error_code(error)), doing + ": " + rd_kafka_error_string(error)};
}

}  // namespace

core::Result<std::vector<TopicSpec>> foreign_topics(const std::vector<std::string>& names,
                                                    const std::string& prefix) {
  std::vector<TopicSpec> out;
  for (const std::string& name : names) {
    if (name.empty() || name.find('/') != std::string::npos) {
      return core::invalid_argument("\"" + name + "\" is no name of a topic");
    }
    if (name.starts_with(prefix + ".")) {
      return core::invalid_argument("topic " + name + " is one of Tocsin's own");
    }
    TopicSpec spec;
    spec.name = "/" + name;
    spec.full_name = name;
    spec.settings = {{"max.message.bytes", kTopicTakes}};
    out.push_back(std::move(spec));
  }
  return out;
}

core::Status KafkaTrial::take(const core::OutRecord& record) {
  const core::MutexLock lock(mutex_);
  auto status = write_and_take_back(record);
  // Whatever went wrong, the next one begins with a producer that is whole.
  if (!status) producer_.reset();
  return status;
}

core::Status KafkaTrial::ready(int timeout_ms) {
  if (producer_) return core::ok();
  PublisherOptions options;
  options.writer = "try";
  auto opened =
      KafkaProducer::open(context_, options, context_.prefix + "-try-" + kafka_client_id("try"));
  if (!opened) return opened.error();
  producer_ = std::move(*opened);
  if (rd_kafka_error_t* error = rd_kafka_init_transactions(producer_->get(), timeout_ms)) {
    return kafka_failure(error, "registering the transactional id");
  }
  return core::ok();
}

core::Status KafkaTrial::write_and_take_back(const core::OutRecord& record) {
  const auto deadline = deadline_in(kTrial);
  if (auto status = ready(ms_until(deadline)); !status) return status;
  if (auto status = producer_->warm_up(record.topic, left_until(deadline)); !status) return status;
  if (rd_kafka_error_t* error = rd_kafka_begin_transaction(producer_->get())) {
    return kafka_failure(error, "beginning a transaction");
  }
  auto status = producer_->produce(record);
  if (status) status = producer_->deliver(deadline);
  if (rd_kafka_error_t* error = rd_kafka_abort_transaction(producer_->get(), 2'000)) {
    const core::Error failed = kafka_failure(error, "taking a trial back");
    if (status) return failed;
    producer_.reset();
  }
  return status;
}

}  // namespace tocsin::ingest
