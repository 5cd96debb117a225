// A cut: one partition's state as it was at one moment, written piece by piece while its runs go
// on. Whatever is about to change is written as it was first (copy on write), so nothing ever
// stops; and never over the newest valid records of its part (two sets of keys), so that until the
// last record, the index, everything restored is the cut before.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/function_ref.h"
#include "rules/engine/memory/family.h"
#include "rules/engine/memory/run.h"
#include "rules/engine/partition/state_record.h"
#include "rules/rules.h"

namespace tocsin::rules {

/// The last record of a cut: what makes the others valid.
struct Index {
  std::map<std::string, std::int64_t> next;           // input positions that the state stands for
  std::vector<std::pair<RunId, std::uint32_t>> runs;  // and their lives
  std::uint64_t log_first = 0;                        // logged entries from here on come on top
  std::vector<RunId> refused;                         // runs that found no room
  std::uint32_t slots = 0;                            // units per part
  std::string rules;  // which rules the states belong to (RuleTable::layout)

  template <typename A>
  friend void io(A& a, Index& i) {
    io_all(a, i.next, i.runs, i.log_first, i.refused, i.slots, i.rules);
  }
};

class Cut {
 public:
  using Runs = std::map<RunId, std::unique_ptr<Run>>;
  using Emit = core::FunctionRef<void(StateRecord)>;

  static constexpr std::uint32_t kWorkers = 256;  // per part
  static constexpr std::uint32_t kNames = 1024;
  static constexpr std::uint32_t kRosters = 32;

  /// `slots`: units per part, a power of two.
  void configure(std::int32_t partition, std::uint32_t slots) {
    partition_ = partition;
    shift_ = static_cast<std::uint32_t>(std::countr_zero(slots));
  }

  // To be called before the change, with the number of what is about to change or to be added.
  template <typename RunOrFamily>
  void touch_head(RunOrFamily& owner) {
    touch(owner, owner.head_mark, {PartKind::head, 0, 0});
  }
  void touch_worker(Run& run, std::uint32_t number) {
    touch(run, at_range(run.workers.marks, number / kWorkers),
          {PartKind::workers, 0, number / kWorkers});
  }
  void touch_name(Run& run, std::uint32_t number) {
    touch(run, at_range(run.names.marks, number / kNames), {PartKind::names, 0, number / kNames});
  }
  void touch_roster(Run& run, std::uint32_t roster) {
    touch(run, at_range(run.rosters.marks, roster / kRosters),
          {PartKind::rosters, 0, roster / kRosters});
  }
  void touch_slot(Run& run, std::uint32_t roster, std::uint32_t slot) {
    touch(run, at_range(run.rosters[roster].marks, slot >> shift_),
          {PartKind::slots, roster, slot >> shift_});
  }
  template <typename RunOrFamily>
  void touch_evaluator(RunOrFamily& owner, std::uint32_t number) {
    EvaluatorPart& part = owner.evaluators[number];
    touch(owner, part.mark, evaluator_part(part.identity));
  }
  void touch_slots(Run& run, std::uint32_t roster, std::size_t from, std::size_t to) {
    const std::size_t step = slots_per_part();
    for (std::size_t slot = from / step * step; slot < to; slot += step) {
      touch_slot(run, roster, static_cast<std::uint32_t>(slot));
    }
  }
  void touch_slots(Run& run, std::uint32_t roster, std::size_t from = 0) {
    touch_slots(run, roster, from, run.rosters[roster].slots.size());
  }
  /// Marks all parts of a run as changed (it was remapped). Not while a cut is under way.
  void touch_all(Run& run);
  void touch_all(Family& family);

  /// What was a run, or the parts that it has given up: kept until the cut under way has them.
  void retire(std::unique_ptr<Run> gone);
  void retire(Family gone);

  [[nodiscard]] bool writing() const noexcept { return index_.has_value(); }
  [[nodiscard]] bool changed() const noexcept { return changed_; }
  /// A cut is under way, or tombstones of what it has replaced are still due.
  [[nodiscard]] bool busy() const noexcept {
    return writing() || !staged_.empty() || !unused_.empty() || !replaced_.empty();
  }

  /// A new cut begins with the state as it is now. `old_log`: the entries that it contains.
  void begin(Index index, std::uint64_t old_log_first);
  /// Writes about `budget` bytes. True: more is due.
  bool write(Runs& runs, FamilyTable& families, std::size_t budget, Emit emit, EngineStats& stats);
  /// A cut without any part: where a partition without state begins.
  StateRecord begin_empty(Index index);

  // While restoring.
  void resume_after(std::uint64_t generation) { epoch_ = std::max(epoch_, generation + 1); }
  void unused(std::string key) { unused_.insert(std::move(key)); }
  /// Records of a part that the run goes on without, but that the last cut needs until the next is whole.
  void outdated(std::string_view part, const PartMark& mark);
  /// Gives a run's parts other keys: its ranges are not the old ones any more.
  void rename(Run& run);
  /// A number that no part of this partition's log has had: keys never mean two things, also of a
  /// run that was forgotten and came back.
  [[nodiscard]] std::uint32_t fresh_life() noexcept { return ++lives_; }
  void known_life(std::uint32_t life) noexcept { lives_ = std::max(lives_, life); }
  /// A part as the log has it.
  void restored(Run& run, const PartId& part, const PartMark& mark);
  [[nodiscard]] std::uint32_t slots_per_part() const noexcept { return std::uint32_t{1} << shift_; }

 private:
  static PartMark& at_range(std::vector<PartMark>& marks, std::size_t range) {
    if (range >= marks.size()) marks.resize(range + 1);
    return marks[range];
  }
  template <typename RunOrFamily>
  void touch(RunOrFamily& owner, PartMark& mark, const PartId& part) {
    if (mark.changed != epoch_) before_change(owner, mark, part);
  }
  [[nodiscard]] bool due(const PartMark& mark) const noexcept {
    return mark.changed > mark.saved && mark.changed < epoch_;
  }
  void before_change(Run& run, PartMark& mark, const PartId& part);
  void before_change(Family& family, PartMark& mark, const PartId& part);
  [[nodiscard]] std::uint8_t next_slot(const std::string& key, const PartMark& mark) const;
  /// `bytes`: of the part, whose keys begin with `key`.
  void save(const std::string& key, const std::string& bytes, PartMark& mark);
  template <typename RunOrFamily>
  void save_part(RunOrFamily& owner, PartMark& mark, const PartId& part);
  void stage(std::string key, std::string value);
  template <typename RunOrFamily>
  void discard(RunOrFamily& owner);
  void stage_index();
  template <typename RunOrFamily>
  bool save_due(RunOrFamily& owner, std::size_t budget);
  template <typename Gone>
  bool save_gone(std::vector<Gone>& gone, std::size_t budget);
  bool save_all(Runs& runs, FamilyTable& families, std::size_t budget);
  bool clean(std::set<std::string>& keys, std::size_t budget, std::size_t& spent, Emit emit);

  std::int32_t partition_ = 0;
  std::uint32_t shift_ = 9;  // 2^shift units per part
  std::uint64_t epoch_ = 1;  // the cut under way is epoch − 1
  std::uint32_t lives_ = 0;  // the largest that was ever given
  bool changed_ = false;
  std::optional<Index> index_;  // of the cut under way
  RunId cursor_;                // runs before it are written,
  core::RunUid family_cursor_;  // and families
  std::vector<std::unique_ptr<Run>> gone_;
  std::vector<Family> gone_families_;
  std::deque<StateRecord> staged_;
  std::size_t staged_bytes_ = 0;
  std::set<std::string> unused_;    // keys that no valid cut needs: may go at any time
  std::set<std::string> replaced_;  // that only the cut before this one needs
  std::set<std::string> outdated_;  // that the next cut will not need
};

}  // namespace tocsin::rules
