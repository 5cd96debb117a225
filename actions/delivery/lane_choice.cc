#include "actions/delivery/lane_choice.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "actions/delivery/digest.h"

namespace tocsin::actions {

using core::WallTime;

namespace {

// One start of so many is for what failed before, when both kinds are due; none for a message that is
// known to fail alone, and none where one call at a time is made: it may last as long as it may.
constexpr std::uint32_t kTurns = 3;

}  // namespace

std::vector<std::string> LaneChoice::next(WallTime now) {
  if (!pace_.open(now)) return {};
  if (auto many = digest(now); !many.empty()) return many;
  std::string group = one(now);
  return group.empty() ? std::vector<std::string>{} : std::vector<std::string>{std::move(group)};
}

std::string LaneChoice::one(WallTime now) {
  const std::string* first = pace_.fresh_may(now) ? queue_.fresh().best(now) : nullptr;
  const bool may = pace_.failed_may(now);
  if (pace_.breaker() != Breaker::State::closed) {
    if (first != nullptr) return *first;
    return may ? probe(now) : "";
  }
  const std::string* again = may ? queue_.failed().best(now) : nullptr;
  if (first == nullptr) return again == nullptr ? "" : *again;
  if (again == nullptr) return *first;
  const bool may_last = options_.common.concurrency == 1 || queue_.head(*again).fault.alone();
  return !may_last && ++turn_ % kTurns == 0 ? *again : *first;
}

// Another one each time: the message that was tried least, and least through its own fault.
std::string LaneChoice::probe(WallTime now) {
  std::string best;
  std::tuple<std::uint32_t, std::uint32_t> least{};
  for (std::string& group : queue_.failed().due(now)) {
    const Item& item = queue_.head(group);
    const std::tuple rank{item.fault.own(), item.failures};
    if (!best.empty() && rank >= least) continue;
    best = std::move(group);
    least = rank;
  }
  return best;
}

// The oldest of those that may be told of together, and at most as many as that one may.
std::vector<std::string> LaneChoice::digest(WallTime now) {
  if (!options_.traits.human) return {};
  const auto& groups = queue_.groups();
  splitting_ = splitting_ && std::any_of(groups.begin(), groups.end(), [](const auto& group) {
                 return group.second.front().together > 1;
               });
  if (queue_.waiting() <= kDigestAbove && !splitting_) return {};
  std::vector<std::string> due;
  if (pace_.fresh_may(now)) due = queue_.fresh().due(now);
  if (pace_.failed_may(now)) {
    for (std::string& group : queue_.failed().due(now)) due.push_back(std::move(group));
  }
  const auto head = [&](const std::string& group) -> const Item& { return queue_.head(group); };
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

std::optional<WallTime> LaneChoice::wake(WallTime now) {
  std::optional<WallTime> out = queue_.fresh().next_expiry();
  const auto offer = [&](WallTime at) { out = out ? std::min(*out, at) : at; };
  if (const auto at = queue_.failed().next_expiry()) offer(*at);
  if (pace_.goes_on()) {
    const WallTime open = pace_.opens(now);
    if (const auto due = queue_.fresh().next_due()) {
      offer(std::max({*due, open, pace_.breaker_opens(now, true)}));
    }
    const auto again = queue_.failed().next_due();
    if (again && pace_.failed_fits()) {
      offer(std::max({*again, open, pace_.breaker_opens(now, false)}));
    }
  }
  if (out) out = std::max(*out, now);
  return out;
}

}  // namespace tocsin::actions
