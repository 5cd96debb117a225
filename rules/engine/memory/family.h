// Families of runs: what those that completed were like, for rules that judge a run by its elders. In
// snapshots a family stands as a run that is over and has no workers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>

#include "core/identity.h"
#include "rules/engine/memory/evaluator_part.h"
#include "rules/engine/memory/part_mark.h"
#include "rules/engine/memory/run.h"

namespace tocsin::rules {

struct Family {
  core::RunUid uid;             // of the labels that make it, for one rule
  std::uint32_t life = 1;       // of its keys, as of a run's
  std::int64_t first_seen = 0;  // engine time
  std::int64_t last_used = 0;   // engine time
  EvaluatorParts evaluators;    // these hold what the runs left; per evaluated rule, may be shorter
  // Not in snapshots:
  PartMark head_mark;

  [[nodiscard]] RunId id() const noexcept { return {uid, 0}; }
};

/// The head as a snapshot has it. `partition`: where the family lies.
template <typename A>
void io_head(A& a, Family& family, std::int32_t partition) {
  Run run;
  run.id = family.id();
  run.life = run.names.life = family.life;
  run.partition = partition;
  run.job.ended = true;
  run.course.first_seen = family.first_seen;
  run.course.last_arrival = run.course.last_any = family.last_used;
  RunShape shape;
  shape.evaluators = identities_of(family.evaluators);
  io_head(a, run, shape);
}

/// What stood in a snapshot, with the marks of its records. The run is of no use after that.
inline Family family_of(Run& run) {
  Family family;
  family.uid = run.id.uid;
  family.life = run.life;
  family.first_seen = run.course.first_seen;
  family.last_used = run.course.last_any;
  family.evaluators = std::move(run.evaluators);
  family.head_mark = run.head_mark;
  return family;
}

/// The families of one partition.
class FamilyTable {
 public:
  using Families = std::map<core::RunUid, Family>;

  /// nullptr: not known.
  [[nodiscard]] Family* find(const core::RunUid& uid) {
    const auto found = families_.find(uid);
    return found == families_.end() ? nullptr : &found->second;
  }
  [[nodiscard]] const Family* find(const core::RunUid& uid) const {
    const auto found = families_.find(uid);
    return found == families_.end() ? nullptr : &found->second;
  }
  Family& add(Family family) {
    const core::RunUid uid = family.uid;
    return families_.insert_or_assign(uid, std::move(family)).first->second;
  }
  Families::iterator erase(Families::iterator family) { return families_.erase(family); }
  /// It leaves the table; known families only.
  [[nodiscard]] Family take(const core::RunUid& uid) {
    return std::move(families_.extract(uid).mapped());
  }
  /// A run was met whose rule knew none of its family until now.
  void met() noexcept { ++met_; }
  /// How often that was, since the partition was opened: more than before, so more may be learned.
  [[nodiscard]] std::uint64_t times_met() const noexcept { return met_; }

  [[nodiscard]] std::size_t size() const noexcept { return families_.size(); }
  [[nodiscard]] auto begin() { return families_.begin(); }
  [[nodiscard]] auto end() { return families_.end(); }
  [[nodiscard]] auto begin() const { return families_.begin(); }
  [[nodiscard]] auto end() const { return families_.end(); }
  /// The first whose uid is not less.
  [[nodiscard]] auto from(const core::RunUid& uid) { return families_.lower_bound(uid); }

 private:
  Families families_;
  std::uint64_t met_ = 0;
};

}  // namespace tocsin::rules
