// The training side of the client: reduces tensors at once and hands rows, steps and words to the
// parts that keep them. No I/O.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "collectors/hook/capture/capture_control.h"
#include "collectors/hook/capture/lent_tensor.h"
#include "collectors/hook/capture/step_counter.h"
#include "collectors/hook/publish/announcer.h"
#include "collectors/hook/publish/frame_batcher.h"
#include "collectors/hook/publish/name_table.h"
#include "collectors/hook/publish/raw_capture.h"
#include "collectors/hook/publish/step_values.h"
#include "collectors/hook/publish/tensor_rows.h"
#include "core/mutex.h"

namespace tocsin::hook {

struct ScalarValue {
  std::uint64_t name = 0;
  double value = 0;
};

/// A span of the track "phase": UTC nanoseconds; duration -1: an instant.
struct PhaseTime {
  std::uint64_t name = 0;
  std::int64_t start = 0;
  std::int64_t duration = 0;
};

/// Thread-safe: one mutex, held for the length of a call; the background threads take it only for
/// tick() and commands.
class Session {
 public:
  static constexpr core::Duration kBatchTime = FrameBatcher::kBatchTime;
  static constexpr core::Duration kPace = FrameBatcher::kPace;
  static constexpr core::Duration kHeartbeat = Announcer::kHeartbeat;
  static constexpr core::Duration kDictionaryAgain = Announcer::kDictionaryAgain;

  /// Borrows clock and queues; they outlive the session. `raw`: null: no elements are sent.
  Session(SessionOptions options, CapturePlan plan, const core::Clock& clock, SendQueue& queue,
          RawQueue* raw = nullptr);

  // ---- training thread
  /// A name that is too long, or no text, is registered as one that fits (core/limits.h), and counted.
  std::uint64_t name(std::string_view text, const NameInfo& info);
  /// Id of a collection for due(); 0 when the table is full.
  std::uint64_t collection(std::string_view name);
  /// Closes an open evaluation step and starts another pass; the same mode again does nothing.
  void set_mode(core::Mode mode);
  /// Whether a tensor of this name and role would be in a collection that is captured.
  [[nodiscard]] bool wanted(std::string_view name, std::optional<core::Role> role) const;
  /// How often wanted() may have changed its answers: a command asked for more, or was withdrawn.
  [[nodiscard]] std::int32_t plan_changes() const noexcept { return plan_changes_.load(); }
  /// True when the collection (0: any) is due at the present step.
  bool due(std::uint64_t collection);
  /// The same for the step `ahead` of the present one.
  bool due_at(std::uint64_t collection, std::uint32_t ahead);
  /// Which of these tensors are due then: 0 or 1 for each, 3 where their elements are, too; 0 for
  /// ids that are not known.
  void due_of(std::span<const std::uint64_t> ids, std::uint32_t ahead, std::span<std::uint8_t> due);
  /// How many rows were written; unknown ids are counted as errors.
  std::size_t tensors(std::span<const LentTensor> tensors);
  std::size_t statistics(std::span<const core::SummaryRow> rows);
  void scalars(std::span<const std::uint64_t> ids, std::span<const double> values);
  /// Track 0: "phase".
  void span(std::uint64_t name, std::uint64_t track, std::int64_t start, std::int64_t duration,
            std::uint64_t args);
  void step_end(bool optimizer_skipped, std::uint32_t micro_steps);
  /// Scalars and spans of the present step, and its end; those that end before they start count as errors. False:
  /// nothing is due at the step that begins, whatever is asked, unless names, collections, mode or
  /// counters change in it.
  bool step_next(std::span<const ScalarValue> scalars, std::span<const PhaseTime> times,
                 bool optimizer_skipped, std::uint32_t micro_steps);
  /// Collections of the plan with their settings and the tensors that belong to them, as a map.
  [[nodiscard]] core::ValueMap collections() const;
  /// The script's own word on collections, before the first step. Errors: failed_precondition (too
  /// late), invalid_argument; then nothing has changed.
  core::Status define(const std::vector<CollectionConfig>& collections);
  /// What looks wrong in the first steps: a list of {kind, model, count, names} (docs/wire.md).
  void preflight(core::Value findings);
  /// Announcer::progress().
  void progress(double expect_next_in);
  /// Announcer::wrong_calls().
  [[nodiscard]] std::string_view wrong_calls() const;
  /// Counters of a resumed run; sent again with `continues_from`.
  void resume(const StepCounter::Steps& steps, std::int64_t global_step,
              std::optional<std::int64_t> continues_from);

  // ---- any thread
  /// See Announcer::tick().
  core::Duration tick();
  /// See Announcer::delivery_failed().
  void delivery_failed(std::string_view why);
  /// Puts rows that wait into frames now.
  void flush();
  void leave(std::string_view reason);
  void end(const core::Lifecycle& end);
  void ack(core::Ack ack);
  /// A command of a slot `capture` or `capture/<asker>`; takes effect at the next step boundary.
  void capture(core::Command command);
  /// The command of that slot was withdrawn.
  void withdraw_capture(const std::string& slot);

  /// Processor time that rules in this process took: part of what capturing costs.
  void judged(core::Duration cost);

  [[nodiscard]] std::int64_t step() const;
  /// Train steps that have ended; one atomic read.
  [[nodiscard]] std::int64_t train_step() const noexcept { return train_step_.load(); }
  [[nodiscard]] const Identity& identity() const noexcept { return options_.identity; }
  [[nodiscard]] std::uint64_t incarnation() const noexcept { return options_.incarnation; }
  [[nodiscard]] core::ValueMap counters() const;

 private:
  void finish_step(bool optimizer_skipped, std::uint32_t micro_steps) REQUIRES(mutex_);
  void plan_changed() REQUIRES(mutex_);

  const SessionOptions options_;
  const core::Clock& clock_;

  mutable core::Mutex mutex_;
  StepCounter steps_ GUARDED_BY(mutex_);
  bool begun_ GUARDED_BY(mutex_) = false;    // a step has ended
  std::atomic<std::int64_t> train_step_{0};  // of steps_, for whoever has no lock
  CaptureControl capture_ GUARDED_BY(mutex_);
  std::atomic<std::int32_t> plan_changes_{0};
  NameTable names_ GUARDED_BY(mutex_);
  FrameBatcher frames_ GUARDED_BY(mutex_);
  Announcer announcer_ GUARDED_BY(mutex_);
  TensorRows rows_ GUARDED_BY(mutex_);
  StepValues values_ GUARDED_BY(mutex_);
  RawCapture raw_ GUARDED_BY(mutex_);
};

}  // namespace tocsin::hook
