// What a lane starts next. Messages that were never tried go before those that failed, so that what
// the far side cannot take keeps nobody else waiting.
#include <algorithm>
#include <tuple>

#include "actions/delivery/digest.h"
#include "actions/delivery/lane.h"

namespace tocsin::actions {

using core::WallTime;

namespace {

// One start of so many is for what failed before, when both kinds are due; none for a message that is
// known to fail alone, and none where one call at a time is made: it may last as long as it may.
constexpr std::uint32_t kTurns = 3;

}  // namespace

std::vector<std::string> Lane::choose(WallTime now) {
  if (!disabled.empty() || in_flight >= width.now() || now < paused_until || !bucket.ready(now)) {
    return {};
  }
  if (auto many = digest(now); !many.empty()) return many;
  std::string group = one(now);
  return group.empty() ? std::vector<std::string>{} : std::vector<std::string>{std::move(group)};
}

std::string Lane::one(WallTime now) {
  const std::string* first = breaker.ready(now, true) ? index.best(now) : nullptr;
  const bool may = failed_under_way.size() < failed_width() && breaker.ready(now, false);
  if (breaker.state() != Breaker::State::closed) {
    if (first != nullptr) return *first;
    return may ? probe_of(now) : "";
  }
  const std::string* again = may ? failed.best(now) : nullptr;
  if (first == nullptr) return again == nullptr ? "" : *again;
  if (again == nullptr) return *first;
  const bool may_last = options.common.concurrency == 1 || groups.at(*again).front().fault.alone();
  return !may_last && ++turn % kTurns == 0 ? *again : *first;
}

// Another one each time: the message that was tried least, and least through its own fault.
std::string Lane::probe_of(WallTime now) {
  std::string best;
  std::tuple<std::uint32_t, std::uint32_t> least{};
  for (std::string& group : failed.due(now)) {
    const Item& item = groups.at(group).front();
    const std::tuple rank{item.fault.own(), item.failures};
    if (!best.empty() && rank >= least) continue;
    best = std::move(group);
    least = rank;
  }
  return best;
}

// The oldest of those that may be told of together, and at most as many as that one may.
std::vector<std::string> Lane::digest(WallTime now) {
  if (!options.traits.human) return {};
  splitting = splitting && std::any_of(groups.begin(), groups.end(), [](const auto& queue) {
                return queue.second.front().together > 1;
              });
  if (waiting <= kDigestAbove && !splitting) return {};
  std::vector<std::string> due;
  if (breaker.ready(now, true)) due = index.due(now);
  if (breaker.ready(now, false) && failed_under_way.size() < failed_width()) {
    for (std::string& group : failed.due(now)) due.push_back(std::move(group));
  }
  const auto head = [&](const std::string& group) -> const Item& {
    return groups.at(group).front();
  };
  std::erase_if(due, [&](const auto& group) {
    const Item& item = head(group);
    return item.together == 1 || !item.only_to.empty() || item.notification->minimal;
  });
  std::sort(due.begin(), due.end(),
            [&](const auto& a, const auto& b) { return head(a).ticket < head(b).ticket; });
  if (due.empty()) return {};
  const auto split = std::find_if(due.begin(), due.end(),
                                  [&](const auto& group) { return head(group).together > 1; });
  const std::uint32_t limit = split == due.end() ? 0 : head(*split).together;
  std::erase_if(due, [&](const auto& group) { return head(group).together != limit; });
  if (limit == 0) return due.size() > kDigestAbove ? due : std::vector<std::string>{};
  if (due.size() > limit) due.resize(limit);
  return due;
}

std::optional<WallTime> Lane::wake(WallTime now) {
  std::optional<WallTime> out = index.next_expiry();
  const auto offer = [&](WallTime at) { out = out ? std::min(*out, at) : at; };
  if (const auto at = failed.next_expiry()) offer(*at);
  // A full lane, or a probe under way, goes on when an attempt comes back.
  const bool held =
      !disabled.empty() || in_flight >= width.now() || breaker.state() == Breaker::State::half_open;
  if (!held) {
    const WallTime open = std::max(paused_until, bucket.next(now));
    if (const auto due = index.next_due()) offer(std::max({*due, open, breaker.next(now, true)}));
    const auto again = failed.next_due();
    if (again && failed_under_way.size() < failed_width()) {
      offer(std::max({*again, open, breaker.next(now, false)}));
    }
  }
  if (out) out = std::max(*out, now);
  return out;
}

}  // namespace tocsin::actions
