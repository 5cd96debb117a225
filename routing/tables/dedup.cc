#include "routing/tables/dedup.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <optional>
#include <span>
#include <utility>

#include "core/fields/json_in.h"
#include "core/fields/out.h"
#include "core/identity.h"

namespace tocsin::routing {
namespace {

using core::WallTime;

constexpr std::size_t kMaxRecordBytes = std::size_t{1} << 20;
/// Events of one batch: about half of what a record may hold.
constexpr std::size_t kMaxBatch = 8192;

struct Rows {
  std::vector<std::pair<std::string, std::int64_t>> seen;  // hash, nanoseconds
};
template <typename A>
void fields(A& io, core::Of<A, Rows>& rows) {
  io.rows("seen", rows.seen);
}

/// Of core::base32().
std::optional<std::array<std::uint8_t, 16>> bytes_of(std::string_view text) {
  constexpr std::string_view kAlphabet = "abcdefghijklmnopqrstuvwxyz234567";
  std::array<std::uint8_t, 16> out{};
  if (text.size() != (out.size() * 8 + 4) / 5) return std::nullopt;
  std::size_t filled = 0;
  std::uint32_t buffer = 0;
  unsigned bits = 0;
  for (const char letter : text) {
    const std::size_t digit = kAlphabet.find(letter);
    if (digit == std::string_view::npos) return std::nullopt;
    buffer = (buffer << 5) | static_cast<std::uint32_t>(digit);
    bits += 5;
    if (bits < 8) continue;
    bits -= 8;
    out[filled++] = static_cast<std::uint8_t>(buffer >> bits);
  }
  return out;
}

core::Error damaged() { return {core::Code::data_loss, "not what was seen"}; }

}  // namespace

Dedup::Dedup(core::Duration window, std::uint64_t most)
    : window_(window), most_(std::max<std::uint64_t>(1, most)) {}

Dedup::Hash Dedup::hash_of(const core::Issue& event) {
  const auto sum = core::sha256(event.source + '\x1f' + event.event_id);
  Hash out{};
  std::copy_n(sum.begin(), out.size(), out.begin());
  return out;
}

bool Dedup::seen(const core::Issue& event, WallTime now) {
  if (event.event_id.empty()) return false;
  const Hash hash = hash_of(event);
  const auto known = known_.find(hash);
  if (known != known_.end() && now - known->second <= window_) return true;
  remember(hash, now);
  return false;
}

void Dedup::remember(const Hash& hash, WallTime now) {
  known_[hash] = now;
  if (unwritten_ == 0 || batches_.back().events.size() >= kMaxBatch) {
    last_key_ = std::max(core::nanoseconds(now), last_key_ + 1);
    batches_.push_back({std::to_string(last_key_), {}, 0});
    ++unwritten_;
  }
  batches_.back().events.push_back({hash, now});
  forget(now);
}

void Dedup::forget_first() {
  Batch& batch = batches_.front();
  const Event& event = batch.events[batch.forgotten++];
  // It may have come again since, after the window.
  const auto known = known_.find(event.hash);
  if (known != known_.end() && known->second == event.at) known_.erase(known);
  if (batch.forgotten < batch.events.size()) return;
  if (batches_.size() > unwritten_) gone_.push_back(std::move(batch.key));
  batches_.pop_front();
  unwritten_ = std::min(unwritten_, batches_.size());
}

void Dedup::forget(WallTime now) {
  while (!batches_.empty()) {
    const Batch& batch = batches_.front();
    const bool old = now - batch.events[batch.forgotten].at > window_;
    if (!old && known_.size() <= most_) return;
    evicted_ += old ? 0 : 1;
    forget_first();
  }
}

core::Status Dedup::restore(std::string_view key, std::string_view value) {
  Batch batch{std::string(key), {}, 0};
  Rows rows;
  if (value.starts_with('{')) {
    const core::Status read = core::read_json(value, kMaxRecordBytes, rows);
    if (!read || rows.seen.empty()) return damaged();
    std::int64_t number = 0;
    std::from_chars(key.data(), key.data() + key.size(), number);
    last_key_ = std::max(last_key_, number);
  } else {
    std::int64_t time = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), time);
    if (error != std::errc{} || end != value.data() + value.size()) return damaged();
    rows.seen.emplace_back(key, time);
  }
  for (const auto& [text, time] : rows.seen) {
    const auto hash = bytes_of(text);
    if (!hash) return damaged();
    batch.events.push_back({*hash, core::wall_time(time)});
  }
  for (const Event& event : batch.events) {
    WallTime& newest = known_[event.hash];
    newest = std::max(newest, event.at);
  }
  batches_.push_back(std::move(batch));
  return core::ok();
}

void Dedup::restored() {
  std::sort(batches_.begin(), batches_.end(), [](const Batch& a, const Batch& b) {
    return std::pair(a.events.front().at, std::string_view(a.key)) <
           std::pair(b.events.front().at, std::string_view(b.key));
  });
}

std::string Dedup::encode(const Batch& batch) {
  Rows rows;
  rows.seen.reserve(batch.events.size());
  for (const Event& event : batch.events) {
    rows.seen.emplace_back(core::base32(event.hash), core::nanoseconds(event.at));
  }
  return core::write_json(rows);
}

void Dedup::take(std::vector<StateRecord>& out) {
  std::vector<StateRecord> records;
  for (std::string& key : std::exchange(gone_, {})) records.push_back({"seen/" + key, {}});
  for (std::size_t i = batches_.size() - std::exchange(unwritten_, 0); i < batches_.size(); ++i) {
    batches_[i].events.shrink_to_fit();  // no further one comes
    records.push_back({"seen/" + batches_[i].key, encode(batches_[i])});
  }
  std::sort(records.begin(), records.end(),
            [](const StateRecord& a, const StateRecord& b) { return a.key < b.key; });
  std::move(records.begin(), records.end(), std::back_inserter(out));
}

void Dedup::snapshot(std::vector<StateRecord>& out) const {
  std::vector<StateRecord> records;
  records.reserve(batches_.size());
  for (const Batch& batch : batches_) records.push_back({"seen/" + batch.key, encode(batch)});
  std::sort(records.begin(), records.end(),
            [](const StateRecord& a, const StateRecord& b) { return a.key < b.key; });
  std::move(records.begin(), records.end(), std::back_inserter(out));
}

}  // namespace tocsin::routing
