// Firing issues by the values of some labels: answers "does one fire that matches, and has the same
// values?" without walking all issues.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/labels.h"
#include "core/time.h"
#include "routing/tables/state.h"
#include "routing/tree/matcher_index.h"
#include "routing/tree/matchers.h"

namespace tocsin::routing {

/// What is asked again and again.
struct FiringQuestion {
  Matchers matchers;               // of the issues that are looked for
  std::vector<std::string> equal;  // labels of equal value; an absent one counts as empty
  Matchers apart;                  // those that meet this too are counted apart
  core::Duration min_age{};        // an issue counts only when it has fired for so long
  core::Duration held{};           // and, if it has, for so long after its end
};

/// Remembers issues that match a question, and no others: nothing where nobody asks, else about 200
/// bytes for each such issue and question. A change of an issue costs O(its labels + questions that
/// may match), an answer O(labels of `equal`). All matching issues are kept, so the end of one hides
/// no other.
class FiringIndex {
 public:
  FiringIndex() = default;
  FiringIndex(const FiringIndex&) = delete;
  FiringIndex& operator=(const FiringIndex&) = delete;

  /// Before the first issue. Returns the number of the question.
  std::size_t ask(FiringQuestion question);

  /// The issue is new, or another one now; answers change at `now`. A shadow issue counts nowhere.
  void follow(const IssueState& state, core::WallTime now);
  /// It is about to be gone.
  void forget(const IssueState& state, core::WallTime now);
  /// After a restart, when all that fire are followed: this issue ended at `at` and counts no longer.
  void recall_end(const IssueState& state, core::WallTime at);

  /// The issue that counts at `tick` for an issue of these labels; of several the one that counts
  /// longest; null: none does. `but_apart`: none that meets FiringQuestion::apart.
  [[nodiscard]] const IssueState* deciding(std::size_t question, const core::Labels& labels,
                                           bool but_apart, core::WallTime tick) const;
  /// May the answer of deciding() have changed from `since` until `now`? May say so too often.
  [[nodiscard]] bool may_differ(std::size_t question, const core::Labels& labels,
                                core::WallTime since, core::WallTime now) const;
  /// The same for any labels.
  [[nodiscard]] bool may_differ(std::size_t question, core::WallTime since,
                                core::WallTime now) const;
  /// Issues that are remembered, each once per question.
  /// Is there a question at all?
  [[nodiscard]] bool asked() const noexcept { return !questions_.empty(); }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }

 private:
  /// Ordered by begin or end, so that the one that decides stands at an end.
  using Times = std::set<std::pair<core::WallTime, const IssueState*>>;
  struct Side {
    Times firing;  // by begin
    Times ended;   // by end; only while FiringQuestion::held
    [[nodiscard]] bool empty() const { return firing.empty() && ended.empty(); }
  };
  struct Bucket {
    std::array<Side, 2> sides;  // others, apart
    core::WallTime changed_at{};
  };
  using Buckets = std::unordered_map<std::string, Bucket>;  // by values of `equal`
  struct Question {
    FiringQuestion asked;
    Buckets buckets;
    core::WallTime dropped_at{};   // newest time at which a bucket became empty
    core::WallTime quiet_since{};  // no answer changes by itself after this
  };
  /// Where an issue is remembered.
  struct Place {
    std::size_t question = 0;
    Buckets::value_type* bucket = nullptr;
    std::size_t side = 0;
    bool firing = true;
    core::WallTime at{};
  };

  [[nodiscard]] const Bucket* find(const Question& question, const core::Labels& labels) const;
  void add(std::size_t number, const IssueState& state, core::WallTime now);
  void remove(const Place& place, const IssueState& state, core::WallTime now);

  std::vector<Question> questions_;
  MatcherIndex matchers_;  // of the questions
  std::unordered_map<const IssueState*, std::vector<Place>> places_;
  std::size_t size_ = 0;
  mutable std::string key_;            // of a bucket that is looked for
  std::vector<std::size_t> matching_;  // questions, while an issue is followed
};

}  // namespace tocsin::routing
