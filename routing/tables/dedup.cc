#include "routing/tables/dedup.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <iterator>
#include <utility>

#include "core/identity.h"

namespace tocsin::routing {
namespace {

using core::WallTime;

/// Events of one batch: a fifth of what a record may hold.
constexpr std::size_t kMaxSeenBatch = 8192;

SeenEvent seen_of(std::string_view source, std::string_view event_id, WallTime now) {
  std::string both;
  both.reserve(source.size() + 1 + event_id.size());
  both.append(source).append(1, '\x1f').append(event_id);
  const auto sum = core::sha256(both);
  SeenEvent out;
  std::copy_n(sum.begin(), out.hash.size(), out.hash.begin());
  out.at = now;
  return out;
}

std::uint64_t first_bytes_of(const SeenEvent::Hash& hash) noexcept {
  std::uint64_t out = 0;
  std::memcpy(&out, hash.data(), sizeof out);
  return out;
}

}  // namespace

Dedup::Dedup(core::Duration window, std::uint64_t most)
    : window_(window), most_(std::max<std::uint64_t>(1, most)) {}

/// The lower half of a number says which one it is: far fewer are remembered.
const SeenEvent& Dedup::event_of(std::uint32_t number) const {
  const std::uint64_t oldest = batches_.front().first;
  const std::uint64_t whole = oldest + (number - static_cast<std::uint32_t>(oldest));
  const auto behind = std::upper_bound(
      batches_.begin(), batches_.end(), whole,
      [](std::uint64_t wanted, const Batch& batch) { return wanted < batch.first; });
  const Batch& batch = *std::prev(behind);
  return batch.events[whole - batch.first];
}

std::uint32_t& Dedup::find_or_add(const SeenEvent& event, std::uint32_t fresh) {
  return index_.find_or_add(first_bytes_of(event.hash), fresh, [&](std::uint32_t number) {
    return event_of(number).hash == event.hash;
  });
}

bool Dedup::seen(std::string_view source, std::string_view event_id, WallTime now) {
  if (event_id.empty()) return false;
  const SeenEvent one = seen_of(source, event_id, now);
  const auto fresh = static_cast<std::uint32_t>(next_);
  std::uint32_t& number = find_or_add(one, fresh);
  if (number != fresh && now - event_of(number).at <= window_) return true;
  number = fresh;
  remember(one);
  return false;
}

void Dedup::remember(const SeenEvent& event) {
  if (unwritten_ == 0 || batches_.back().events.size() >= kMaxSeenBatch) {
    last_key_ = std::max(core::nanoseconds(event.at), last_key_ + 1);
    batches_.push_back({std::to_string(last_key_), {}, 0, next_});
    ++unwritten_;
  }
  batches_.back().events.push_back(event);
  ++next_;
  forget(event.at);
}

void Dedup::forget_first() {
  Batch& batch = batches_.front();
  const std::uint64_t number = batch.first + batch.forgotten;
  const SeenEvent& event = batch.events[batch.forgotten++];
  // It may have come again since, after the window: then another number is known.
  index_.erase(first_bytes_of(event.hash), static_cast<std::uint32_t>(number));
  if (batch.forgotten < batch.events.size()) return;
  if (batches_.size() > unwritten_) gone_.push_back(std::move(batch.key));
  batches_.pop_front();
  unwritten_ = std::min(unwritten_, batches_.size());
}

void Dedup::forget(WallTime now) {
  while (!batches_.empty()) {
    const Batch& batch = batches_.front();
    const bool old = now - batch.events[batch.forgotten].at > window_;
    if (!old && index_.size() <= most_) return;
    evicted_ += old ? 0 : 1;
    forget_first();
  }
}

core::Status Dedup::restore(std::string_view key, std::string_view value) {
  auto events = read_seen_record(key, value);
  if (!events) return events.error();
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), number);
  if (error == std::errc{} && end == key.data() + key.size()) {
    last_key_ = std::max(last_key_, number);
  }
  const std::uint64_t first = next_;
  next_ += events->size();
  batches_.push_back({std::string(key), std::move(*events), 0, first});
  return core::ok();
}

void Dedup::restored() {
  std::sort(batches_.begin(), batches_.end(), [](const Batch& a, const Batch& b) {
    return std::pair(a.events.front().at, std::string_view(a.key)) <
           std::pair(b.events.front().at, std::string_view(b.key));
  });
  index_ = SeenIndex();
  next_ = 0;
  for (Batch& batch : batches_) {
    batch.first = next_;
    next_ += batch.events.size();
  }
  index_.reserve(next_);
  for (const Batch& batch : batches_) {
    auto fresh = static_cast<std::uint32_t>(batch.first);
    for (const SeenEvent& event : batch.events) {
      std::uint32_t& number = find_or_add(event, fresh);
      if (number != fresh && event_of(number).at <= event.at) number = fresh;
      ++fresh;
    }
  }
}

void Dedup::take(std::vector<StateRecord>& out) {
  std::vector<StateRecord> records;
  for (std::string& key : std::exchange(gone_, {})) records.push_back({"seen/" + key, {}, true});
  for (std::size_t i = batches_.size() - std::exchange(unwritten_, 0); i < batches_.size(); ++i) {
    batches_[i].events.shrink_to_fit();  // no further one comes
    records.push_back({"seen/" + batches_[i].key, write_seen_record(batches_[i].events), true});
  }
  std::sort(records.begin(), records.end(),
            [](const StateRecord& a, const StateRecord& b) { return a.key < b.key; });
  std::move(records.begin(), records.end(), std::back_inserter(out));
}

void Dedup::snapshot(std::vector<StateRecord>& out) const {
  std::vector<StateRecord> records;
  records.reserve(batches_.size());
  for (const Batch& batch : batches_)
    records.push_back({"seen/" + batch.key, write_seen_record(batch.events)});
  std::sort(records.begin(), records.end(),
            [](const StateRecord& a, const StateRecord& b) { return a.key < b.key; });
  std::move(records.begin(), records.end(), std::back_inserter(out));
}

}  // namespace tocsin::routing
