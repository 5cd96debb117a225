// What is captured at the present step: the client's own plan, what commands ask for on top (each
// asker in a slot of its own: `capture`, `capture/<asker>`), and how far the governor has widened the
// grid.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "collectors/hook/capture/capture.h"
#include "collectors/hook/capture/governor.h"
#include "collectors/hook/capture/step_counter.h"
#include "core/clock.h"
#include "core/command.h"

namespace tocsin::hook {

/// What a step boundary did to the plan.
struct CaptureChange {
  bool plan = false;               // tensors may belong to other collections now
  std::vector<core::Ack> answers;  // to commands: `applied`, `refused` and why, `ended`
};

/// Not thread-safe.
class CaptureControl {
 public:
  /// Borrows the clock.
  CaptureControl(CapturePlan plan, const core::Clock& clock);

  [[nodiscard]] CapturePlan& plan() noexcept { return plan_; }
  [[nodiscard]] const CapturePlan& plan() const noexcept { return plan_; }

  // ---- what is due
  /// Id of a collection for due(); 0 when the table is full.
  std::uint64_t collection(std::string_view name);
  /// Collections due at the present step. Asked again within a step it answers the same.
  CollectionMask due(const StepCounter& steps);
  /// Those of the step `ahead` of the present one, with the same promise.
  CollectionMask due_ahead(std::uint32_t ahead, const StepCounter& steps);
  /// Whether a collection (0: any) is due; from a yes on the caller works for us.
  bool wants(std::uint64_t collection, const StepCounter& steps);
  /// The same for the step `ahead` of the present one.
  bool wants_at(std::uint64_t collection, std::uint32_t ahead, const StepCounter& steps);
  /// Whether scalars are published at this step.
  [[nodiscard]] bool scalars_due(std::int64_t step) const;
  /// What due() has said is out of date: another mode, further names.
  void forget_due() noexcept {
    due_.reset();
    due_ahead_.reset();
  }

  /// CapturePlan::define(), between two answers of due().
  core::Status define(const std::vector<CollectionConfig>& collections);

  // ---- what it costs
  /// When the present measurement began: at the yes of wants(), else now.
  [[nodiscard]] core::Duration measuring_since() const;
  /// False: due() will say 0 for the present step, whenever it is asked. Asks nothing itself.
  [[nodiscard]] bool may_be_due(const StepCounter& steps) const {
    const Governor::Stretch& stretch = governor_.stretch();
    return !paused_ &&
           plan_.may_be_due(steps.mode(), steps.step(), std::min(stretch.costly, stretch.small));
  }
  /// Somebody has asked for a pause: no tensor is due, whatever plans say. Scalars, steps and times go on.
  [[nodiscard]] bool paused() const noexcept { return paused_; }
  /// Statistics were taken, from `since` to now, of tensors of these collections; 0: of whatever is due.
  void measured(core::Duration since, CollectionMask of = 0);
  /// So many bytes of statistics and elements were captured: they count against `max_bytes` of commands.
  void took(std::uint64_t bytes) noexcept { bytes_ += bytes; }
  /// Other threads worked so long on what was captured: it counts as capturing.
  void worked(core::Duration cost);
  [[nodiscard]] const Governor& governor() const noexcept { return governor_; }
  /// What the governor takes from whom: factor by collection.
  [[nodiscard]] core::ValueMap thinned() const;
  [[nodiscard]] core::Duration cost() const noexcept { return cost_; }

  // ---- steps and commands
  /// The present step ends. True when the governor has changed its factor.
  bool step_ends(const StepCounter& steps, core::Duration now);
  /// A command to capture, in the slot that is its action; takes effect at a step boundary and takes
  /// the place of what was asked for in that slot.
  void ask(core::Command command);
  /// What was asked for in this slot was withdrawn. What others ask for stays.
  void withdraw(const std::string& slot);
  /// Before the first capture of a step, so that a step is captured by one plan. What commands
  /// ask for comes on top of the client's own plan, all together; statistics that are not given and
  /// collections that are not built in are refused by name.
  CaptureChange step_begins(std::int64_t step);
  [[nodiscard]] std::uint64_t sampled_steps() const noexcept { return sampled_steps_; }

 private:
  [[nodiscard]] CollectionMask mask_of(std::uint64_t collection) const;
  /// Collections that cost next to nothing, and go by the governor's small factor.
  CollectionMask small();
  CollectionMask due_at(core::Mode mode, std::int64_t step);
  core::Ack apply(const core::Command& command, std::int64_t step);
  [[nodiscard]] std::optional<std::string> why_over(const core::Command& command,
                                                    std::int64_t step) const;
  std::optional<bool> extend(const core::Command& command, std::vector<std::string>& refused);
  bool end_asked(std::int64_t step, std::vector<core::Ack>& answers);
  bool take_asked(std::int64_t step, std::vector<core::Ack>& answers);

  const core::Clock& clock_;
  CapturePlan plan_;
  Governor governor_;
  std::unordered_map<std::uint64_t, CollectionMask> collections_;
  std::optional<CollectionMask> due_;  // of the present step, once asked
  // Of the step that was asked about ahead of it: grids in time are due once.
  std::optional<std::pair<std::int64_t, CollectionMask>> due_ahead_;
  core::Duration sampling_since_{-1};              // monotonic; since wants() said yes
  std::map<std::string, core::Command> asked_;     // by slot; not in effect yet
  std::map<std::string, core::Command> active_;    // by slot; part of the plan
  std::uint64_t bytes_ = 0;                        // captured since the start
  std::map<std::string, std::uint64_t> bytes_at_;  // the same when a slot began to be in effect
  bool withdrawn_ = false;                         // something that was in effect
  bool paused_ = false;                            // one of those in effect says so
  std::optional<CollectionMask> small_;            // until the plan changes
  std::uint64_t sampled_steps_ = 0;
  core::Duration cost_{0};
};

}  // namespace tocsin::hook
