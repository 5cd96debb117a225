#include "routing/suppress/silences.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "core/fields/json_in.h"
#include "core/fields/out.h"

namespace tocsin::routing {

using core::How;
using core::Of;
using core::Status;
using core::WallTime;

namespace {

constexpr std::size_t kMaxSilence = std::size_t{16} << 10;

Reach reach_of(const Silence& silence) {
  if (silence.actions.empty()) return Reach::all;
  return silence.actions == "notify" ? Reach::notify : Reach::stop;
}

}  // namespace

template <typename A>
void fields(A& io, Of<A, Silence>& silence) {
  io.field("id", silence.id, "its name in commands", How::required);
  io.field("matchers", silence.matchers, "all of them hold for an issue that it silences",
           How::required);
  io.field("starts_at", silence.starts_at, "from when on");
  io.field("ends_at", silence.ends_at, "until when");
  io.field("created_at", silence.created_at, "when it was asked for");
  io.field("created_by", silence.created_by, "by whom");
  io.field("comment", silence.comment, "why");
  io.field("actions", silence.actions, "what it holds back: notify, stop_training; else both",
           How::omit_if_empty);
}

namespace {

struct StoredSilence {
  Silence silence;
  WallTime changed_at{};
};
template <typename A>
void fields(A& io, Of<A, StoredSilence>& stored) {
  io.field("silence", stored.silence);
  io.field("changed_at", core::Nanoseconds{stored.changed_at}, "", How::required);
}

}  // namespace

bool in_force(const Silence& silence, WallTime at) noexcept {
  return silence.starts_at <= at && at < silence.ends_at;
}

std::string silence_json(const Silence& silence) { return core::write_json(silence); }

core::Result<Silence> read_silence(std::string_view json) {
  Silence out;
  if (const Status read = core::read_json(json, kMaxSilence, out); !read) return read.error();
  if (const Status good = check(out); !good) return good.error();
  return out;
}

Status check(const Silence& silence) {
  const auto matchers = Matchers::parse(silence.matchers);
  if (!matchers) return matchers.error();
  const auto& terms = matchers->terms();
  bool some = false;  // one that a missing label does not meet
  for (std::size_t i = 0; i < terms.size(); ++i) some = some || !matchers->holds(i, "");
  if (!some) {
    return core::invalid_argument(
        terms.empty() ? "a silence without matchers would silence everything"
                      : "every matcher also holds where the label is missing: it would silence "
                        "nearly everything");
  }
  if (silence.ends_at <= silence.starts_at) {
    return core::invalid_argument("a silence that ends before it begins");
  }
  if (!silence.actions.empty() && silence.actions != "notify" &&
      silence.actions != "stop_training") {
    return core::invalid_argument("actions is \"" + silence.actions +
                                  "\": expected notify or stop_training");
  }
  return core::ok();
}

std::string encode(const SilenceState& state) {
  return core::write_json(StoredSilence{state.silence, state.changed_at});
}

Status decode(std::string_view value, SilenceState& state) {
  StoredSilence stored;
  if (const Status read = core::read_json(value, kMaxSilence, stored); !read) {
    return core::Error{core::Code::data_loss, read.error().message};
  }
  auto matchers = Matchers::parse(stored.silence.matchers);
  if (!matchers) return core::Error{core::Code::data_loss, matchers.error().message};
  state = {std::move(stored.silence), std::move(*matchers), stored.changed_at};
  return core::ok();
}

Status Silences::apply(std::string_view id, std::optional<std::string_view> value, WallTime now) {
  const std::string key(id);
  if (!value) {
    if (table_.find(key) == nullptr) return core::ok();
    taken_back_ = now;
    table_.erase(key);
    index();
    return core::ok();
  }
  auto silence = read_silence(*value);
  if (!silence) return silence.error();
  if (silence->id != id) return core::invalid_argument("its id is not that of its key");
  if (table_.find(key) == nullptr && table_.size() >= kMaxSilences) {
    return core::Error{core::Code::resource_exhausted,
                       "more than " + std::to_string(kMaxSilences) + " silences"};
  }
  SilenceState& kept = table_.make(key);
  kept.matchers = *Matchers::parse(silence->matchers);
  kept.silence = std::move(*silence);
  kept.changed_at = now;
  table_.touch(key);
  index();
  return core::ok();
}

Status Silences::restore(std::string_view id, std::string_view value) {
  const Status read = table_.restore(id, value);
  index();
  return read;
}

void Silences::forget(WallTime now) {
  const auto old = [&](const auto& one) {
    return one.second->silence.ends_at + kSilenceKept < now;
  };
  if (std::none_of(order_.begin(), order_.end(), old)) return;
  for (const auto& one : order_) {
    if (old(one)) table_.erase(std::string(one.first));
  }
  index();
}

void Silences::index() {
  order_ = table_.in_order();
  matchers_.reset();
}

const MatcherIndex& Silences::matchers() const {
  if (!matchers_) {
    std::vector<Matchers> sets;
    sets.reserve(order_.size());
    for (const auto& one : order_) sets.push_back(one.second->matchers);
    matchers_.emplace(std::move(sets));
  }
  return *matchers_;
}

void Silences::reasons(const core::Issue& issue, WallTime tick,
                       std::vector<Suppression>& out) const {
  if (order_.empty()) return;
  matchers().match(issue.labels, matching_);
  for (const std::size_t i : matching_) {
    const Silence& silence = order_[i].second->silence;
    if (!in_force(silence, tick)) continue;
    out.push_back({"silence:" + std::string(order_[i].first), reach_of(silence)});
  }
}

void Silences::count(Stats& stats, WallTime now) const {
  stats.silences =
      static_cast<std::uint64_t>(std::count_if(order_.begin(), order_.end(), [&](const auto& one) {
        return in_force(one.second->silence, now);
      }));
}

bool Silences::may_differ(const AnyMember& /*any_member*/, WallTime since, WallTime now) const {
  const auto within = [&](WallTime at) { return since < at && at <= now; };
  if (within(taken_back_)) return true;
  return std::any_of(order_.begin(), order_.end(), [&](const auto& one) {
    const SilenceState& state = *one.second;
    return within(state.silence.starts_at) || within(state.silence.ends_at) ||
           within(state.changed_at);
  });
}

}  // namespace tocsin::routing
