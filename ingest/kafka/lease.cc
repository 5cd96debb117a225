#include "ingest/kafka/lease.h"

#include <utility>

namespace tocsin::ingest {

using std::chrono::milliseconds;

KafkaLease::KafkaLease(const KafkaContext& context, std::string topic)
    : context_(context), topic_(std::move(topic)) {}

KafkaLease::~KafkaLease() { release(); }

core::Status KafkaLease::join() {
  SourceOptions options;
  options.group = context_.prefix + "-" + topic_;
  options.topics = {topic_};
  options.listener = this;
  options.start = Start::end;
  options.fetch_wait = milliseconds{500};  // nothing is ever written there
  auto opened = KafkaSource::open(context_, std::move(options));
  if (!opened) return opened.error();
  source_ = std::move(*opened);
  return core::ok();
}

core::Status KafkaLease::step(core::Duration steady, milliseconds timeout) {
  if (valid_until_ && steady > *valid_until_) release();  // somebody else may hold it by now
  if (!source_) {
    if (const auto status = join(); !status) return status;
  }
  // Callbacks of a rebalance run inside poll(), so held_ is what the broker said last.
  const auto polled = source_->poll(timeout, 16, [](const core::RecordView&) {});
  if (!polled && polled.error().code == core::Code::failed_precondition) {
    release();
    return polled.error();
  }
  if (held_.empty()) return core::ok();
  const auto answer = source_->committed(held_, milliseconds{1500});
  if (!answer) return answer.error().in("renewing the lease");
  if (!held_.empty()) valid_until_ = steady + kSession * 2 / 3;
  return core::ok();
}

void KafkaLease::release() {
  valid_until_.reset();
  held_.clear();
  if (!source_) return;
  source_->close(milliseconds{2000});
  source_.reset();
}

void KafkaLease::assigned(std::span<const core::Position> committed) {
  held_.assign(committed.begin(), committed.end());
}

void KafkaLease::revoked(std::span<const core::StreamPartition> /*partitions*/) {
  held_.clear();
  valid_until_.reset();
}

void KafkaLease::lost(std::span<const core::StreamPartition> partitions) { revoked(partitions); }

}  // namespace tocsin::ingest
