#include "app/stages/comparison_reader.h"

#include <chrono>
#include <utility>

namespace tocsin::app {
namespace {

constexpr std::size_t kBatch = 1000;  // records per turn, read and handed on
constexpr core::Duration kRetry = std::chrono::seconds{5};

}  // namespace

void ComparisonReader::start_over() {
  source_.reset();
  next_try_ = {};
  records_.clear();
  places_.clear();
  handed_.clear();
}

void ComparisonReader::read(core::Duration now) {
  if (!open_ || now < next_try_) return;
  const auto failed = [&](const core::Error& error) {
    log_.warn("comparisons_not_read", {{"error", error.message}});
    source_.reset();  // what was read stays; what is read again is known by its key
    next_try_ = now + kRetry;
  };
  if (!source_) {
    auto source = open_();
    if (!source) return failed(source.error());
    source_ = std::move(*source);
  }
  const auto read =
      source_->poll(std::chrono::milliseconds{0}, kBatch, [&](const core::RecordView& record) {
        if (!record.key) return;
        rules::Comparison one{std::string(*record.key), std::nullopt};
        if (!record.tombstone) one.value = std::string(record.text());
        const auto known = places_.find(one.key);
        if (known != places_.end()) {
          if (records_.at(known->second).value == one.value) return;
          records_.erase(known->second);
        }
        places_[one.key] = next_place_;
        records_.emplace(next_place_++, std::move(one));
      });
  // Compaction leaves gaps behind: what is gone there had a newer record.
  if (!read && read.error().code != core::Code::data_loss) failed(read.error());
}

bool ComparisonReader::feed(std::int32_t partition, std::uint64_t want, core::Duration now,
                            core::FunctionRef<void(const rules::Comparison&)> learn) {
  read(now);
  Handed& handed = handed_[partition];
  if (handed.want != want) handed = {want, 0};
  std::uint64_t& next = handed.next;
  std::size_t count = 0;
  auto at = records_.lower_bound(next);
  for (; at != records_.end() && count < kBatch; ++at, ++count) {
    learn(at->second);
    next = at->first + 1;
  }
  return at != records_.end();
}

}  // namespace tocsin::app
