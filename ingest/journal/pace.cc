#include "ingest/journal/pace.h"

#include <algorithm>

namespace tocsin::ingest {
namespace {

using namespace std::chrono_literals;

constexpr JournalPace::Pause kFirst = 200us;
constexpr JournalPace::Pause kSecond = 1ms;
constexpr JournalPace::Pause kWithoutSigns = 50ms;
constexpr JournalPace::Pause kAnyway = 1s;
constexpr int kDistrust = 3;
constexpr int kMostlyForOthers = 16;

}  // namespace

bool JournalPace::distrusts() const noexcept { return unannounced_ >= kDistrust; }

void JournalPace::changed() {
  unannounced_ = 0;
  announced_ = true;
  const bool close = pause_ != Pause{0} && pause_ < kWithoutSigns;
  for_others_ = close ? std::min(for_others_ + 1, kMostlyForOthers) : 0;
  pause_ = pause_ < kWithoutSigns ? kSecond : kFirst;
  next_ = {};
}

void JournalPace::wanted() {
  announced_ = true;
  next_ = {};
}

void JournalPace::looked(std::size_t found, bool signs, Time now) {
  if (found > 0) {
    for_others_ = 0;
    if (signs && !announced_) ++unannounced_;
    next_ = {};
    return;
  }
  const Pause longest = signs && !distrusts() ? kAnyway : kWithoutSigns;
  if (pause_ >= longest) announced_ = false;  // whatever was announced has been looked for
  pause_ = std::min(pause_, longest);
  const bool for_others = for_others_ >= kMostlyForOthers && pause_ < kWithoutSigns;
  next_ = now + (for_others ? std::max(pause_, others_) : pause_);
  deaf_until_ = for_others               ? now + others_
                : pause_ < kWithoutSigns ? now + std::min(pause_, kSecond)
                                         : now;
  // 0.2, 1, 2, 4 … ms: a commit that is synced to a slow disk is seen within twice its time.
  pause_ = pause_ < kSecond ? kSecond : std::min(pause_ * 2, longest);
}

bool JournalPace::hears(Time now, bool asked) const noexcept {
  return now >= deaf_until_ || (asked && others_ <= kForOthers);
}

bool JournalPace::due(Time now, bool asked) const {
  return now >= next_ || (asked && pause_ < kWithoutSigns);
}

}  // namespace tocsin::ingest
