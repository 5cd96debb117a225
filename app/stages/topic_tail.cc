#include "app/stages/topic_tail.h"

#include <chrono>

namespace tocsin::app {
namespace {

constexpr std::size_t kTailBatch = 1000;  // records per read()
constexpr core::Duration kTailRetry = std::chrono::seconds{5};

}  // namespace

void TopicTail::postpone(const core::Error& error, core::Duration now) {
  log_.warn(failure_, {{"error", error.message}});
  source_.reset();
  next_ = now + kTailRetry;
}

bool TopicTail::read(core::Duration now, core::RecordHandler take) {
  if (!open_ || (next_ && now < *next_)) return false;
  next_ = now + pause_;
  if (!source_) {
    auto source = open_();
    if (!source) {
      postpone(source.error(), now);
      return false;
    }
    source_ = std::move(*source);
  }
  std::size_t count = 0;
  const auto read =
      source_->poll(std::chrono::milliseconds{0}, kTailBatch, [&](const core::RecordView& record) {
        ++count;
        take(record);
      });
  // Compaction leaves gaps. Each record that is gone there has a newer one.
  if (!read && read.error().code != core::Code::data_loss) {
    postpone(read.error(), now);
    return false;
  }
  if (count > 0) next_ = now;
  return true;
}

void TopicTail::start_over() {
  source_.reset();
  next_.reset();
}

}  // namespace tocsin::app
