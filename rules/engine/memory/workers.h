// The workers of a run: who they are, where each stands, and the step clock over all of them.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "rules/contract/archive.h"
#include "rules/contract/loss_course.h"
#include "rules/contract/promise.h"
#include "rules/contract/rule.h"
#include "rules/engine/memory/flat_index.h"
#include "rules/engine/memory/moments.h"
#include "rules/engine/memory/names.h"
#include "rules/engine/memory/part_mark.h"
#include "rules/engine/memory/step_clock.h"

namespace tocsin::rules {

/// One training process, or a node's agent.
struct Worker {
  std::uint64_t name_hash = 0;
  std::uint32_t rank = 0;
  std::string name;
  std::string node;
  bool named = false;  // by a dictionary
  std::uint64_t incarnation = 0;
  std::uint64_t sequence = 0;
  bool has_sequence = false;
  bool unsequenced = false;  // sends JSON only: no step-ends
  bool agent = false;
  bool gone = false;  // left or ended
  bool idle = false;
  bool skewed = false;             // its clock is far ahead: its times are not believed
  bool gap = false;                // frames were lost since its last step-end
  std::int64_t last_arrival = 0;   // of progress, engine time
  std::int64_t last_progress = 0;  // of progress, record time
  std::int64_t last_time = 0;      // of measurement, of its newest progress
  Promise promise;                 // its newest
  std::array<std::int64_t, kModes> mark{kNever, kNever, kNever, kNever};  // last ended step
  std::array<std::int64_t, kModes> seen{kNever, kNever, kNever, kNever};  // last step with data
  std::uint32_t pass = 0;   // of its newest frame in an evaluation
  std::uint8_t active = 0;  // modes it takes part in
  core::Mode mode = core::Mode::global;
  double loss_scale = 1;
  // What it last said of its learning rate, and the most it ever said; NaN: nothing.
  double learning_rate = std::numeric_limits<double>::quiet_NaN();
  double max_learning_rate = std::numeric_limits<double>::quiet_NaN();
  LossCourse losses;
  std::array<std::int64_t, 8> step_times{};  // latest durations, for the idle limit
  std::uint32_t steps_timed = 0;
  Life gap_life;
  std::uint64_t gap_frames = 0;  // missing since the last report
  /// Of tensors of which this worker says something else than the run's dictionaries.
  std::map<std::uint64_t, Name> own_names;

  /// What is known of a tensor of this worker's; nullptr: no dictionary named it.
  [[nodiscard]] const Name* about(std::uint64_t tensor, const NameTable& names) const {
    if (own_names.empty()) return names.find(tensor);
    const auto own = own_names.find(tensor);
    return own == own_names.end() ? names.find(tensor) : &own->second;
  }

  template <typename A>
  friend void io(A& a, Worker& w) {
    io_all(a, w.name_hash, w.rank, w.name, w.node, w.named, w.incarnation, w.sequence,
           w.has_sequence, w.unsequenced, w.agent, w.gone, w.idle, w.skewed, w.gap, w.last_arrival,
           w.last_progress, w.last_time, w.promise, w.mark, w.seen, w.pass, w.active, w.mode,
           w.loss_scale, w.learning_rate, w.max_learning_rate, w.losses, w.step_times,
           w.steps_timed, w.gap_life, w.gap_frames, w.own_names);
  }
};

class Workers {
 public:
  static constexpr std::uint32_t kNone = 0xFFFFFFFFU;

  /// kNone: not known.
  [[nodiscard]] std::uint32_t find(std::uint64_t name, std::uint32_t rank) const;
  std::uint32_t add(Worker worker);
  /// To be called when what the step clock counts by has changed.
  void sync(std::uint32_t number);
  [[nodiscard]] const StepClock& clock() const noexcept { return clock_; }
  /// What is not in snapshots is found again.
  void index();

  [[nodiscard]] Worker& operator[](std::size_t number) noexcept { return list_[number]; }
  [[nodiscard]] const Worker& operator[](std::size_t number) const noexcept {
    return list_[number];
  }
  [[nodiscard]] std::uint32_t number_of(const Worker& worker) const noexcept {
    return static_cast<std::uint32_t>(&worker - list_.data());
  }
  [[nodiscard]] std::size_t size() const noexcept { return list_.size(); }
  [[nodiscard]] bool empty() const noexcept { return list_.empty(); }
  [[nodiscard]] auto begin() noexcept { return list_.begin(); }
  [[nodiscard]] auto end() noexcept { return list_.end(); }
  [[nodiscard]] auto begin() const noexcept { return list_.begin(); }
  [[nodiscard]] auto end() const noexcept { return list_.end(); }
  /// In snapshots range by range.
  [[nodiscard]] std::vector<Worker>& list() noexcept { return list_; }

  std::vector<PartMark> marks;  // per range

 private:
  void enter(std::uint32_t number);

  std::vector<Worker> list_;
  FlatIndex index_;                                                           // by key_of
  std::map<std::pair<std::uint64_t, std::uint32_t>, std::uint32_t> clashes_;  // of equal keys
  StepClock clock_;
};

}  // namespace tocsin::rules
