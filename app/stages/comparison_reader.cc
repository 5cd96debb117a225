#include "app/stages/comparison_reader.h"

#include <optional>
#include <utility>

namespace tocsin::app {
namespace {

constexpr std::size_t kHandedPerTurn = 1000;

}  // namespace

ComparisonReader::ComparisonReader(TopicTail::Open open, core::Log& log)
    : tail_(std::move(open), log, "comparisons_not_read") {}

void ComparisonReader::start_over() {
  tail_.start_over();
  records_.clear();
  places_.clear();
  handed_.clear();
}

void ComparisonReader::keep(const core::RecordView& record) {
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
}

bool ComparisonReader::feed(std::int32_t partition, std::uint64_t want, core::Duration now,
                            core::FunctionRef<void(const rules::Comparison&)> learn) {
  tail_.read(now, [this](const core::RecordView& record) { keep(record); });
  Handed& handed = handed_[partition];
  if (handed.want != want) handed = {want, 0};
  std::uint64_t& next = handed.next;
  std::size_t count = 0;
  auto at = records_.lower_bound(next);
  for (; at != records_.end() && count < kHandedPerTurn; ++at, ++count) {
    learn(at->second);
    next = at->first + 1;
  }
  return at != records_.end();
}

}  // namespace tocsin::app
