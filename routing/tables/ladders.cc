#include "routing/tables/ladders.h"

#include <algorithm>

#include "core/fields/json_in.h"
#include "core/fields/out.h"

namespace tocsin::routing {

using core::Duration;
using core::How;
using core::Nanoseconds;
using core::Of;
using core::WallTime;

namespace {

constexpr std::size_t kMaxLadder = std::size_t{1} << 20;

/// When the step's time comes for the n-th time. `paused`: in all, until now.
WallTime comes_at(const EscalationStep& step, const Ladder& ladder, std::uint64_t nth) {
  const Duration standing = step.unless_acked ? ladder.paused : Duration::zero();
  return ladder.since + standing + step.after + step.every * static_cast<std::int64_t>(nth);
}

std::uint64_t done_of(const Ladder& ladder, std::size_t index) {
  return index < ladder.done.size() ? ladder.done[index] : 0;
}

bool stands_still(const EscalationStep& step, const Ladder& ladder) {
  return step.unless_acked && ladder.paused_since.has_value();
}

/// How often the step's time has come until now.
std::uint64_t come(const EscalationStep& step, const Ladder& ladder, WallTime now) {
  const WallTime first = comes_at(step, ladder, 0);
  if (stands_still(step, ladder)) now = std::min(now, *ladder.paused_since);
  if (first > now) return 0;
  if (step.repeats == 0 || step.every <= Duration::zero()) return 1;
  const auto repeats = static_cast<std::uint64_t>((now - first) / step.every);
  return 1 + std::min<std::uint64_t>(repeats, step.repeats);
}

}  // namespace

template <typename A>
void row(A& io, Of<A, FailedDelivery>& failed) {
  io.item(failed.what);
  io.item(failed.told);
}

template <typename A>
void fields(A& io, Of<A, Ladder>& ladder) {
  io.field("since", Nanoseconds{ladder.since}, "", How::required);
  io.field("paused_since", Nanoseconds{ladder.paused_since}, "", How::omit_if_empty);
  std::int64_t paused = ladder.paused.count();
  io.field("paused_ns", paused, "", How::omit_if_empty);
  if constexpr (A::kReading) ladder.paused = Duration(paused);
  io.field("done", ladder.done, "", How::omit_if_empty);
  io.rows("failed", ladder.failed);
}

std::string encode(const Ladder& ladder) { return core::write_json(ladder); }

core::Status decode(std::string_view value, Ladder& ladder) {
  if (const core::Status read = core::read_json(value, kMaxLadder, ladder); !read) {
    return core::Error{core::Code::data_loss, read.error().message};
  }
  return core::ok();
}

Ladder& Ladders::begin(const std::string& group, WallTime tick) {
  Ladder& ladder = table_.make(group);
  ladder.since = tick;
  table_.touch(group);
  return ladder;
}

void Ladders::end(const std::string& group) {
  if (table_.find(group) != nullptr) table_.erase(group);
}

void Ladders::pause(const std::string& group, std::optional<WallTime> since, WallTime now) {
  Ladder* ladder = table_.find(group);
  if (ladder == nullptr || since.has_value() == ladder->paused_since.has_value()) return;
  if (since) {
    ladder->paused_since = std::clamp(*since, ladder->since, std::max(now, ladder->since));
  } else {
    ladder->paused += std::max(now - *ladder->paused_since, Duration::zero());
    ladder->paused_since.reset();
  }
  table_.touch(group);
}

std::optional<DueStep> Ladders::climb(const std::string& group, const Route& route, WallTime now) {
  Ladder* ladder = table_.find(group);
  if (ladder == nullptr) return std::nullopt;
  std::optional<DueStep> out;
  for (std::size_t i = 0; i < route.escalation.size(); ++i) {
    const std::uint64_t times = come(route.escalation[i], *ladder, now);
    if (times <= done_of(*ladder, i)) continue;
    out = DueStep{i, times - 1};
    ladder->done.resize(std::max(ladder->done.size(), i + 1));
    ladder->done[i] = times;
    table_.touch(group);
  }
  return out;
}

bool Ladders::due(const std::string& group, const Route& route, WallTime now) const {
  const Ladder* ladder = table_.find(group);
  if (ladder == nullptr) return false;
  for (std::size_t i = 0; i < route.escalation.size(); ++i) {
    if (come(route.escalation[i], *ladder, now) > done_of(*ladder, i)) return true;
  }
  return false;
}

std::optional<WallTime> Ladders::next(const std::string& group, const Route& route,
                                      WallTime now) const {
  const Ladder* ladder = table_.find(group);
  if (ladder == nullptr) return std::nullopt;
  std::optional<WallTime> first;
  for (std::size_t i = 0; i < route.escalation.size(); ++i) {
    const EscalationStep& step = route.escalation[i];
    if (stands_still(step, *ladder)) continue;
    const std::uint64_t nth = std::max(done_of(*ladder, i), come(step, *ladder, now));
    if (nth > step.repeats) continue;
    const WallTime at = comes_at(step, *ladder, nth);
    if (!first || at < *first) first = at;
  }
  return first;
}

bool Ladders::failed(const std::string& group, const std::string& integration, std::string what) {
  Ladder* ladder = table_.find(group);
  if (ladder == nullptr) return false;
  const bool fresh =
      ladder->failed.try_emplace(integration, FailedDelivery{std::move(what), false}).second;
  if (fresh) table_.touch(group);
  return fresh;
}

void Ladders::restored(core::FunctionRef<bool(const std::string&)> is_there) {
  for (const auto& [group, ladder] : table_.in_order()) {
    if (!is_there(std::string(group))) table_.erase(std::string(group));
  }
}

}  // namespace tocsin::routing
