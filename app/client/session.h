// The training side of the client: counts steps, reduces tensors at once, packs rows into frames
// and puts them on the queue. No I/O.
#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "app/client/capture.h"
#include "app/client/delta_store.h"
#include "app/client/governor.h"
#include "app/client/identity.h"
#include "app/client/send_queue.h"
#include "core/clock.h"
#include "core/command.h"
#include "core/frame.h"
#include "core/labels.h"
#include "core/lifecycle.h"
#include "ingest/ingest.h"

namespace tocsin::app::client {

/// A tensor lent for the length of one call.
struct LentTensor {
  std::uint64_t id = 0;
  const void* data = nullptr;
  std::span<const std::int64_t> shape;
  std::span<const std::int64_t> strides;  // in elements; empty: contiguous
  core::Dtype dtype = core::Dtype::unknown;
  std::uint64_t flags = 0;
};

struct NameInfo {
  core::DictionaryType type = core::DictionaryType::tensor;
  core::Dtype dtype = core::Dtype::unknown;
  std::optional<core::Role> role;  // nullopt: by type and name
  std::vector<std::int64_t> dims;
  std::string attrs;       // JSON object or empty
  std::string collection;  // further collection; empty: none
};

struct SessionOptions {
  Identity identity;
  core::Labels labels;
  std::string framework;
  std::string version;
  std::string cluster;
  std::uint64_t incarnation = 0;  // wall ns when the client opened
};

/// Thread-safe: one mutex, held for the length of a call; the background threads take it only for
/// tick() and commands.
class Session {
 public:
  static constexpr std::size_t kFrameRows = 500;
  static constexpr core::Duration kBatchTime = std::chrono::milliseconds(20);
  static constexpr core::Duration kHeartbeat = std::chrono::seconds(5);
  static constexpr core::Duration kDictionaryAgain = std::chrono::minutes(5);

  /// Borrows clock and queue; they outlive the session.
  Session(SessionOptions options, CapturePlan plan, const core::Clock& clock, SendQueue& queue);

  // ---- training thread
  std::uint64_t name(std::string_view text, const NameInfo& info);
  /// Id of a collection for due(); 0 when the table is full.
  std::uint64_t collection(std::string_view name);
  /// Closes an open evaluation step and starts another pass; the same mode again does nothing.
  void set_mode(core::Mode mode);
  /// True when the collection (0: any) is due at the present step.
  bool due(std::uint64_t collection);
  /// The same for the step `ahead` of the present one.
  bool due_at(std::uint64_t collection, std::uint32_t ahead);
  /// How many rows were written; unknown ids are counted as errors.
  std::size_t tensors(std::span<const LentTensor> tensors);
  std::size_t statistics(std::span<const core::SummaryRow> rows);
  void scalars(std::span<const std::uint64_t> ids, std::span<const double> values);
  void span(std::uint64_t name, std::uint64_t track, std::int64_t start, std::int64_t duration,
            std::uint64_t args);
  void step_end(bool optimizer_skipped, std::uint32_t micro_steps);
  /// Counters of a resumed run; sent again with `continues_from`.
  void resume(const std::array<std::int64_t, 4>& steps, std::int64_t global_step,
              std::optional<std::int64_t> continues_from);

  // ---- any thread
  /// Sends what waited for kBatchTime, heartbeats, the dictionary again, gaps. Returns how long
  /// until the next call is due at the latest.
  core::Duration tick();
  /// Records that had left the queue were lost: a `gap` without counts (sequence numbers have
  /// them), and what every reader needs again.
  void delivery_failed(std::string_view why);
  /// Puts rows that wait into frames now.
  void flush();
  void leave(std::string_view reason);
  void end(const core::Lifecycle& end);
  void ack(core::Ack ack);
  /// A command of slot `capture`; takes effect at the next step boundary.
  void capture(core::Command command);
  /// The command of slot `capture` was withdrawn.
  void withdraw_capture();

  [[nodiscard]] std::int64_t step() const;
  [[nodiscard]] const Identity& identity() const noexcept { return options_.identity; }
  [[nodiscard]] std::uint64_t incarnation() const noexcept { return incarnation_; }
  [[nodiscard]] core::ValueMap counters() const;

 private:
  struct Name {
    core::DictionaryType type{};
    core::Dtype dtype{};
    core::Role role{};
    std::uint64_t hash = 0;
    std::vector<std::int64_t> dims;
    std::string text;
    std::string given_attrs;  // as the caller gave them
    std::string attrs;        // with collections
    CollectionMask own = 0;   // the collection that the caller named
    CollectionMask collections = 0;
    bool sent = false;
  };
  struct Sparse {
    core::SparseStat stat{};
    std::vector<std::uint32_t> rows;
    std::vector<double> values;
  };

  void ensure_started();
  void send_start(std::optional<std::int64_t> continues_from);
  void send_lifecycle(const core::Lifecycle& lifecycle);
  [[nodiscard]] core::FrameHeader header(std::int64_t step, std::int64_t global_step);
  void send(Lane lane, std::size_t rows, std::int64_t first_step, std::int64_t last_step);
  void send_dictionary(bool again);
  void rows_wait(core::Duration now);
  void flush_rows();
  void flush_summary();
  void flush_scalars();
  void flush_spans();
  void flush_step_ends();
  void finish_step(bool optimizer_skipped, std::uint32_t micro_steps);
  void govern(core::Duration monotonic);
  void apply_pending_capture();
  void plan_changed();
  void send_applied(const core::Command& command, const std::string& refused);
  void refuse_capture(const core::Command& command, std::string_view reason);
  void send_ack(core::Ack ack);
  CollectionMask due_now();
  [[nodiscard]] CollectionMask mask_of(std::uint64_t collection) const;
  bool reduce_one(const LentTensor& tensor, const Name& name);
  void add_delta(const LentTensor& tensor, std::uint64_t count, std::uint32_t row);
  void admit_deltas(std::span<const LentTensor> tensors);
  Name* find(std::uint64_t id);
  std::int64_t& mode_step() { return steps_[static_cast<std::size_t>(mode_)]; }

  SessionOptions options_;
  CapturePlan plan_;
  const core::Clock& clock_;
  SendQueue& queue_;
  const std::uint64_t incarnation_;
  const std::string route_key_;

  mutable std::mutex mutex_;
  ingest::FrameWriter writer_;
  std::uint64_t sequence_ = 1;
  std::uint64_t worker_hash_ = 0;
  std::vector<Name> names_;
  std::unordered_map<std::uint64_t, std::size_t> by_hash_;
  std::unordered_map<std::uint64_t, CollectionMask> collection_ids_;
  bool unsent_names_ = true;

  core::Mode mode_ = core::Mode::train;
  std::array<std::int64_t, 4> steps_{};
  std::array<std::uint32_t, 4> passes_{};
  std::array<std::uint32_t, 4> entered_{};
  std::int64_t global_step_ = 0;
  std::int64_t step_started_ = 0;        // wall ns
  core::Duration step_started_mono_{0};  // monotonic
  bool step_open_ = false;               // something was logged since the last step end
  bool due_known_ = false;
  CollectionMask due_ = 0;
  core::Duration sampling_since_{-1};  // monotonic; since due() said yes

  std::vector<core::SummaryRow> summary_;
  std::array<Sparse, 4> sparse_;  // delta_l2, prev_l2, delta_from_step, first_bad_index
  std::vector<core::ScalarRow> scalars_;
  std::vector<core::SpanRow> spans_;
  std::vector<core::StepEndRow> step_ends_;
  bool published_this_step_ = false;
  std::int64_t ticked_at_ = 0;        // global step at the last tick()
  core::Duration waiting_since_{-1};  // monotonic; of the oldest row that waits
  core::Duration opened_{0};
  core::Duration last_heartbeat_{0};
  core::Duration last_dictionary_{0};
  bool started_ = false;
  bool ended_ = false;

  DeltaStore deltas_;
  std::vector<std::string> delta_left_out_;
  std::unordered_map<std::uint64_t, bool> delta_refused_;
  Governor governor_;
  std::optional<core::Command> pending_capture_;
  bool pending_withdrawal_ = false;
  std::optional<std::int64_t> capture_until_;

  std::uint64_t sampled_steps_ = 0;
  std::uint64_t rows_ = 0;
  std::uint64_t errors_ = 0;
  core::Duration hook_time_{0};
};

}  // namespace tocsin::app::client
