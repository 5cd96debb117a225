#include "tests/simulation/broker_log.h"

#include <algorithm>
#include <set>
#include <string_view>

namespace tocsin::simulation {

std::int64_t Log::append(core::OutRecord record, std::int32_t partition,
                         std::uint64_t transaction) {
  if (transaction != 0) open_.try_emplace(transaction, end_);
  entries_.push_back({{std::move(record), partition, end_}, transaction});
  return end_++;
}

void Log::decide(std::uint64_t transaction, bool committed, bool marker) {
  if (open_.erase(transaction) == 0) return;
  if (committed) {
    for (auto& entry : entries_) {
      if (entry.transaction == transaction) entry.transaction = 0;
    }
  } else {
    std::erase_if(entries_, [&](const Entry& entry) { return entry.transaction == transaction; });
  }
  if (marker) ++end_;
}

void Log::trim(std::int64_t offset) {
  first_ = std::max(first_, std::min(offset, end_));
  while (!entries_.empty() && entries_.front().stored.offset < first_) entries_.pop_front();
}

void Log::compact(double share, bool tombstones) {
  const auto upto = std::min(
      stable(), first_ + static_cast<std::int64_t>(static_cast<double>(end_ - first_) * share));
  std::set<std::string> newer;  // keys with a later committed record, also beyond `upto`
  std::set<std::int64_t> gone;
  for (auto it = entries_.rbegin(); it != entries_.rend(); ++it) {
    if (it->transaction != 0) continue;
    const bool superseded = !newer.insert(it->stored.record.key).second;
    if (it->stored.offset >= upto) continue;
    if (superseded || (tombstones && !it->stored.record.value)) gone.insert(it->stored.offset);
  }
  std::erase_if(entries_, [&](const Entry& entry) { return gone.contains(entry.stored.offset); });
}

std::int64_t Log::stable() const {
  std::int64_t stable = end_;
  for (const auto& [transaction, first] : open_) stable = std::min(stable, first);
  return stable;
}

std::deque<Log::Entry>::const_iterator Log::at(std::int64_t offset) const {
  return std::lower_bound(
      entries_.begin(), entries_.end(), offset,
      [](const Entry& entry, std::int64_t wanted) { return entry.stored.offset < wanted; });
}

std::optional<std::int64_t> Log::first_readable(std::int64_t offset) const {
  const auto it = at(offset);
  if (it == entries_.end() || it->stored.offset >= stable()) return std::nullopt;
  return it->stored.offset;
}

void Log::read(std::int64_t offset, const std::function<bool(const StoredRecord&)>& visit) const {
  const std::int64_t limit = stable();
  for (auto it = at(offset); it != entries_.end() && it->stored.offset < limit; ++it) {
    if (!visit(it->stored)) return;
  }
}

namespace {

std::optional<std::string_view> header_of(const void* native, std::string_view name) {
  const auto& headers = static_cast<const core::OutRecord*>(native)->headers;
  const auto it = std::find_if(headers.begin(), headers.end(),
                               [&](const auto& header) { return header.first == name; });
  return it == headers.end() ? std::nullopt : std::optional<std::string_view>(it->second);
}

}  // namespace

core::RecordView view_of(const StoredRecord& stored) {
  core::RecordView view;
  view.topic = stored.record.topic;
  view.stream = stored.record.topic;
  view.partition = stored.partition;
  view.offset = stored.offset;
  view.timestamp = stored.record.timestamp;
  if (!stored.record.key.empty()) view.key = stored.record.key;
  view.tombstone = !stored.record.value.has_value();
  if (stored.record.value) {
    view.value = std::as_bytes(std::span(stored.record.value->data(), stored.record.value->size()));
  }
  view.native = &stored.record;
  view.find_header = header_of;
  return view;
}

}  // namespace tocsin::simulation
