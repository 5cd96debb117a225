#include "ingest/kafka/pulse.h"

#include "ingest/kafka/config.h"

namespace tocsin::ingest {
namespace {

using namespace std::chrono_literals;

constexpr auto kEvery = 700ms;
constexpr int kQueryPatience = 1000;  // ms
constexpr std::chrono::nanoseconds kFresh = 2s;
constexpr std::chrono::nanoseconds kSteady = 1s;

std::int64_t now() { return std::chrono::steady_clock::now().time_since_epoch().count(); }

}  // namespace

KafkaPulse::KafkaPulse(rd_kafka_t* client)
    : client_(client), thread_([this](const std::stop_token& stop) { run(stop); }) {}

KafkaPulse::~KafkaPulse() {
  thread_.request_stop();
  changed_.notify_all();
}

void KafkaPulse::watch(std::vector<Topic> partitions) {
  const core::MutexLock lock(mutex_);
  partitions_ = std::move(partitions);
  changed_.notify_all();
}

bool KafkaPulse::steady() const {
  const std::int64_t at = answered_at_.load();
  const std::int64_t time = now();
  return at != 0 && time - at <= kFresh.count() && time - since_.load() >= kSteady.count();
}

/// Where the partition ends. Not by rd_kafka_query_watermark_offsets: that one waits for an answer
/// without end when its question was under way as the broker froze (2.0.2 and later).
bool KafkaPulse::answered(const Topic& topic) const {
  const Kafka<rd_kafka_topic_partition_list_t> list(rd_kafka_topic_partition_list_new(1));
  rd_kafka_topic_partition_list_add(list.get(), topic.first.c_str(), topic.second)->offset =
      RD_KAFKA_OFFSET_END;
  const auto error = rd_kafka_offsets_for_times(client_, list.get(), kQueryPatience);
  return error == RD_KAFKA_RESP_ERR_NO_ERROR && list->elems[0].err == RD_KAFKA_RESP_ERR_NO_ERROR;
}

void KafkaPulse::run(const std::stop_token& stop) {
  std::size_t turn = 0;
  while (!stop.stop_requested()) {
    Topic topic;
    {
      const core::MutexLock lock(mutex_);
      if (!changed_.wait(mutex_, stop, [this]() REQUIRES(mutex_) { return !partitions_.empty(); }))
        return;
      topic = partitions_[turn++ % partitions_.size()];
    }
    if (answered(topic)) {
      const std::int64_t time = now();
      const std::int64_t before = answered_at_.load();
      if (before == 0) {
        since_ = time - kSteady.count();
      } else if (time - before > kFresh.count()) {
        since_ = time;
      }
      answered_at_ = time;
    }
    const core::MutexLock lock(mutex_);
    changed_.wait_for(mutex_, stop, kEvery, [] { return false; });
  }
}

}  // namespace tocsin::ingest
