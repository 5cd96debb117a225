// From rows that wait to frames on the queue.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "collectors/hook/capture/extension_rows.h"
#include "collectors/hook/capture/step_counter.h"
#include "collectors/hook/identity/identity.h"
#include "collectors/hook/publish/name_table.h"
#include "collectors/hook/publish/send_queue.h"
#include "core/clock.h"
#include "core/frame.h"
#include "core/lifecycle.h"
#include "ingest/ingest.h"

namespace tocsin::hook {

/// Makes every record of the topic `telemetry`: names go before the rows that use them, rows before
/// the end of their step, and every frame has the next sequence number. Not thread-safe.
class FrameBatcher {
 public:
  static constexpr std::size_t kFrameRows = 500;
  /// So long rows wait for others when nothing has come for a while.
  static constexpr core::Duration kBatchTime = std::chrono::milliseconds(20);
  /// While they come all the time, the sending thread looks so often: each look costs a turn of its
  /// own and one of the transport.
  static constexpr core::Duration kPace = std::chrono::milliseconds(500);
  /// The same where something that is no number is among them.
  static constexpr core::Duration kUrgentPace = std::chrono::milliseconds(100);
  /// No row waits longer, also where the sending thread is held up.
  static constexpr core::Duration kLongestWait = std::chrono::milliseconds(600);

  /// Borrows everything but the incarnation.
  FrameBatcher(const Identity& identity, std::uint64_t incarnation, NameTable& names,
               const StepCounter& steps, const core::Clock& clock, SendQueue& queue);

  // ---- rows
  /// The name of a row that is about to be written; null, and counted as an error: not registered.
  const Name* use(std::uint64_t id);
  /// Takes the further statistics of the row that add() is given next.
  ExtensionRows& next_summary();
  void add(const core::SummaryRow& row);
  /// A scalar of the present step.
  void add_scalar(const Name& name, double value);
  void add_span(std::uint64_t name, std::uint64_t track, std::int64_t start, std::int64_t duration,
                std::uint64_t args);
  /// The end of the present step; sends what belongs to it when statistics were among it.
  void add_step_end(Moment now, std::uint32_t micro_steps, bool optimizer_skipped);
  /// Statistics that come from here on belong to another step.
  void step_begins() noexcept { published_ = false; }

  // ---- frames
  void flush();
  void flush_if_due(core::Duration now);
  /// Until flush_if_due() has something to do; nullopt: nothing waits.
  [[nodiscard]] std::optional<core::Duration> due_in(core::Duration now) const;
  void lifecycle(const core::Lifecycle& lifecycle);
  void dictionary(Tell which);
  /// Frames are marked: the grid is wider than asked for.
  void set_degraded(bool degraded) noexcept { degraded_ = degraded; }

  /// The header of a frame of the present step: no number yet.
  [[nodiscard]] core::FrameHeader stamp() const {
    return header(steps_.step(), steps_.global_step());
  }

  // ---- counters
  void count_error() noexcept { ++errors_; }
  [[nodiscard]] std::uint64_t errors() const noexcept { return errors_; }
  [[nodiscard]] std::uint64_t frames() const noexcept { return sequence_ - 1; }
  [[nodiscard]] std::uint64_t rows() const noexcept { return rows_; }
  /// Scalars so far, those that wait for their frame among them.
  [[nodiscard]] std::uint64_t scalars() const noexcept {
    return scalar_rows_ + waiting_.scalars.size();
  }
  /// Those of them with the role `ledger`. The hook tells these unasked.
  [[nodiscard]] std::uint64_t ledger_scalars() const noexcept { return ledger_scalars_; }
  /// The others: what the loop logs.
  [[nodiscard]] std::uint64_t logged_scalars() const noexcept {
    return scalars() - ledger_scalars_;
  }
  /// Of what the loop logs, since the newest step ended.
  [[nodiscard]] std::uint64_t scalars_since_step() const noexcept {
    return logged_scalars() - logged_at_step_;
  }

 private:
  /// Rows of the present step that wait, by kind.
  struct Waiting {
    std::vector<core::SummaryRow> summary;
    ExtensionRows extensions;  // of these
    std::vector<core::ScalarRow> scalars;
    std::vector<core::SpanRow> spans;
    std::vector<core::StepEndRow> step_ends;
    core::Duration since{-1};  // monotonic; of the oldest
  };

  [[nodiscard]] core::FrameHeader header(std::int64_t step, std::int64_t global_step) const;
  void send(Precedence precedence, std::size_t rows, std::int64_t first_step,
            std::int64_t last_step);
  void waits();
  void hurry();
  void flush_summary();
  void flush_scalars();
  void flush_spans();
  void flush_step_ends();

  const Identity& identity_;
  const std::uint64_t incarnation_;
  const std::string route_key_;
  NameTable& names_;
  const StepCounter& steps_;
  const core::Clock& clock_;
  SendQueue& queue_;
  ingest::FrameWriter writer_;
  Waiting waiting_;
  core::Duration looked_{-kPace};  // monotonic; when flush_if_due() last had something to do
  std::uint64_t sequence_ = 1;
  std::uint64_t rows_ = 0;
  std::uint64_t scalar_rows_ = 0;
  std::uint64_t ledger_scalars_ = 0;
  std::uint64_t logged_at_step_ = 0;  // when the newest step ended
  std::uint64_t errors_ = 0;
  bool urgent_ = false;     // among the rows that wait is one that must be heard of soon
  bool published_ = false;  // a frame of the present step that is not control is on its way
  bool degraded_ = false;
};

}  // namespace tocsin::hook
