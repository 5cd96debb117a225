// Which classes of one loss call are left out, as it goes on: left_out_class's state of one call in one mode.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "rules/builtin/data/count_bounds.h"
#include "rules/builtin/data/ledger_classes.h"
#include "rules/evidence/named_by_evidence.h"
#include "rules/evidence/share_evidence.h"

namespace tocsin::rules {

struct ClassBounds {
  double lead = 0.33;     // of what the usual class has above ½, that each must have
  double usual = 0.8;     // share of pairs from which on the usual class is known
  double samples = 50;    // labels and pairs of a class that is judged
  double alpha = 0.0005;  // per kind, call and mode
};

/// One window: the classes that have enough samples, and what is usual among them (the lower medians).
struct ClassWindow {
  static constexpr double kRare = 20;  // fewer than a so-many-th of the median's labels: it waits
  static constexpr std::size_t kFewest = 3;

  std::vector<std::uint32_t> judged;
  double labels = 0;
  double share = 0;  // of wins
  double right = 0;  // of samples

  ClassWindow(const LedgerClasses& all, const ClassBounds& bounds) {
    std::vector<double> counts;
    for (const auto& [number, one] : all.classes) {
      if (one[LedgerClass::labels] >= bounds.samples) counts.push_back(one[LedgerClass::labels]);
    }
    labels = middle(counts);
    std::vector<double> shares;
    std::vector<double> rights;
    for (const auto& [number, one] : all.classes) {
      if (one[LedgerClass::labels] < std::max(bounds.samples, labels / kRare) ||
          one[LedgerClass::pairs] < bounds.samples) {
        continue;
      }
      judged.push_back(number);
      shares.push_back(share_of(one));
      rights.push_back(one.right_share());
    }
    share = middle(shares);
    right = middle(rights);
  }
  [[nodiscard]] bool enough() const { return judged.size() >= kFewest; }
  [[nodiscard]] bool known(const ClassBounds& bounds) const {
    return enough() && share > bounds.usual;
  }
  /// The share of wins that each class must have.
  [[nodiscard]] double limit(const ClassBounds& bounds) const {
    return 0.5 + bounds.lead * (share - 0.5);
  }
  static double share_of(const LedgerClass& one) {
    return ShareCounts{one[LedgerClass::wins], one[LedgerClass::pairs]}.share();
  }

 private:
  static double middle(std::vector<double> values) {
    if (values.empty()) return 0;
    const auto at = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
    std::nth_element(values.begin(), at, values.end());
    return *at;
  }
};

struct ClassCourse {
  enum Kind : unsigned { kRandom, kNeverAnswered, kNeverSeen, kRarelySeen, kKinds };
  static constexpr double kFirst = 0.5;  // of the lead: the first share below it that is sought
  static constexpr double kUsualRight = 0.5;
  static constexpr double kSkill = 0.02;  // less than a class must cost below guessing by frequency
  static constexpr double kRarer = 4;     // times, in training
  static constexpr double kEnoughSeen = 0.5;      // of the labels that the usual class has needed
  using Since = std::map<std::uint32_t, double>;  // class: updates when it began to look so

  LedgerClasses window;  // the newest look of training, or pass of evaluation
  double at = -1;        // updates then
  double looks = 0;      // at which the usual class was known
  double passes = 0;
  double needed = 0;  // training: labels that the usual class had had when it was known; 0: not yet
  double counted = 0;  // 1: this window is among `looks`
  Since total;         // training: labels that each class has had
  std::vector<Since> before = std::vector<Since>(kKinds);  // that looked so at the look before
  std::vector<Since> now = std::vector<Since>(kKinds);
  std::vector<std::vector<std::uint32_t>> told = std::vector<std::vector<std::uint32_t>>(kKinds);

  template <typename A>
  friend void io(A& a, ClassCourse& c) {
    io_all(a, c.window, c.at, c.looks, c.passes, c.needed, c.counted, c.total, c.before, c.now,
           c.told);
  }

  [[nodiscard]] unsigned kinds() const {
    unsigned out = 0;
    for (unsigned kind = 0; kind < kKinds; ++kind) {
      if (!told[kind].empty()) out |= 1U << kind;
    }
    return out;
  }

  void train(const LedgerClasses& more, double updates, const ClassBounds& bounds) {
    // Too few samples of each: the window goes on.
    if (at >= 0 && !ClassWindow(window, bounds).enough()) {
      at = updates;
      window.add(more);
    } else {
      begin(updates);
      window = more;
    }
    for (const auto& [number, one] : more.classes) total[number] += one[LedgerClass::labels];
    const ClassWindow found(window, bounds);
    if (needed == 0 && found.known(bounds)) {
      std::vector<double> labels;
      for (const std::uint32_t one : found.judged) labels.push_back(total[one]);
      std::sort(labels.begin(), labels.end());
      needed = labels[(labels.size() - 1) / 2];
    }
    judge(found, bounds, this, false);
  }
  /// `training`: the course of the same call there; nullptr: there is none.
  void evaluate(const LedgerClasses& more, double updates, const ClassCourse* training,
                const ClassBounds& bounds) {
    if (updates != at) {
      begin(updates);
      window = {};
      ++passes;
    }
    window.add(more);
    judge(ClassWindow(window, bounds), bounds, training, true);
  }

 private:
  void begin(double updates) {
    before = std::move(now);
    now = std::vector<Since>(kKinds);
    at = updates;
    counted = 0;
  }
  // What looks so at two looks in a row, between which the updates have doubled, is told.
  void judge(const ClassWindow& found, const ClassBounds& bounds, const ClassCourse* training,
             bool evaluation) {
    for (Since& one : now) one.clear();
    for (std::vector<std::uint32_t>& one : told) one.clear();
    if (found.known(bounds)) {
      looks += 1 - counted;
      counted = 1;
      const double log_alpha = std::log(bounds.alpha) - std::log(looks * (looks + 1));
      find_random(found, bounds, training, log_alpha);
      find_unanswered(found, training, log_alpha);
    }
    if (evaluation && window.trained > 0 && window.samples > 0) {
      const double log_alpha = std::log(bounds.alpha) - std::log(passes * (passes + 1));
      find_unseen(found, bounds, log_alpha);
    }
    for (const Kind kind : {kRandom, kNeverAnswered, kRarelySeen}) {
      for (const auto& [number, since] : now[kind]) {
        if (!before[kind].contains(number)) continue;
        if (!evaluation || (since > 0 && at >= 2 * since)) told[kind].push_back(number);
      }
    }
  }
  void looks_so(Kind kind, std::uint32_t number) {
    const auto found = before[kind].find(number);
    now[kind].emplace(number,
                      found == before[kind].end() || found->second <= 0 ? at : found->second);
  }
  // It has had as many labels as the usual class has needed, about.
  static bool late(const ClassCourse* training, std::uint32_t number) {
    if (training == nullptr) return false;
    const auto found = training->total.find(number);
    return training->needed == 0 || found == training->total.end() ||
           found->second < kEnoughSeen * training->needed;
  }

  void find_random(const ClassWindow& found, const ClassBounds& bounds, const ClassCourse* training,
                   double log_alpha) {
    const double limit = found.limit(bounds);
    std::vector<double> logs;
    logs.reserve(found.judged.size());
    for (const std::uint32_t number : found.judged) logs.push_back(evidence(number, limit));
    const double from = named_from(logs, window.hypotheses(), log_alpha);
    for (std::size_t i = 0; i < logs.size(); ++i) {
      if (logs[i] >= from && !late(training, found.judged[i])) looks_so(kRandom, found.judged[i]);
    }
  }
  [[nodiscard]] double evidence(std::uint32_t number, double limit) const {
    const LedgerClass& one = window.classes.at(number);
    return ShareCounts{one[LedgerClass::wins], one[LedgerClass::pairs]}.against_at_least(
        limit, kFirst * (limit - 0.5));
  }

  void find_unanswered(const ClassWindow& found, const ClassCourse* training, double log_alpha) {
    if (found.right < kUsualRight) return;
    for (const std::uint32_t number : found.judged) {
      const LedgerClass& one = window.classes.at(number);
      const double share = one[LedgerClass::labels] / window.samples;
      if (one[LedgerClass::answers] > 0 || share >= 1) continue;
      const double log_chance = window.samples * std::log1p(-share) + std::log(window.hypotheses());
      const bool guessed =
          one[LedgerClass::loss] >= (1 - kSkill) * one[LedgerClass::labels] * -std::log(share);
      if (log_chance <= log_alpha && guessed && !late(training, number)) {
        looks_so(kNeverAnswered, number);
      }
    }
  }

  void find_unseen(const ClassWindow& found, const ClassBounds& bounds, double log_alpha) {
    const double tests = std::log(window.hypotheses());
    for (const auto& [number, one] : window.classes) {
      const double labels = one[LedgerClass::labels];
      if (labels <= 0 || (!window.whole() && one.senders < window.senders)) continue;
      const double trained = one[LedgerClass::trained];
      if (trained == 0) {
        // Each sample of the class is as likely to be one of training as its number says.
        const double none = labels * std::log(window.samples / (window.samples + window.trained));
        if (none + tests <= log_alpha) told[kNeverSeen].push_back(number);
      } else if (found.enough() && found.right >= kUsualRight && labels >= bounds.samples &&
                 2 * one.right_share() < found.right) {
        const double weighed = window.trained / kRarer;
        const double chance = at_least_by_chance(labels, labels + trained,
                                                 window.samples / (window.samples + weighed));
        if (std::log(chance) + tests <= log_alpha) looks_so(kRarelySeen, number);
      }
    }
  }
};

}  // namespace tocsin::rules
