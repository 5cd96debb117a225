// What is wanted of this run: the newest valid command per slot (docs/events.md), checked on
// the client's own thread, read by training without waiting.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "collectors/hook/publish/session.h"
#include "core/command.h"
#include "core/mutex.h"
#include "core/record.h"
#include "core/time.h"

namespace tocsin::hook {

/// Thread-safe. take() and expire() are called by the thread that reads `commands`.
class CommandBoard {
 public:
  explicit CommandBoard(Session& session) : session_(session) {}

  /// One record of `commands`: checks run, launch, ranks, expiry and duplicates, acknowledges
  /// `received`, or answers `refused` with the reason. Records of other runs are ignored; the same
  /// command read again is not answered again. The attempt of a command is not judged: the engine
  /// settles it, and what was issued for an earlier launch shows in Command::launch.
  void take(const core::RecordView& record, core::WallTime now);
  /// Withdraws commands whose time is over and that training has not seen; when to call again, if
  /// there are others.
  std::optional<core::WallTime> expire(core::WallTime now);

  /// TOCSIN_WANTS_… bits of a loop that stands at this train step and asks; a stop or an adjustment for a
  /// later step is not among them. Without commands one atomic write and one read.
  [[nodiscard]] std::int32_t ask(std::int64_t train_step);
  /// As above, without the question and for any step.
  [[nodiscard]] std::int32_t bits() const noexcept { return bits_.load(); }
  /// The command of a slot as JSON of docs/events.md; marks it as seen.
  std::optional<std::string> read(std::string_view slot);
  /// Slots that training has not seen, but those for a later step than it has asked at.
  std::vector<std::string> unseen() const;
  /// Training handles this slot ("adjust/lr"); commands to others are refused as not_registered.
  void register_slot(std::string_view slot);
  /// Revision that this worker holds or held of a command; 1 for one that it does not know.
  [[nodiscard]] std::uint64_t revision_of(std::string_view slot, std::string_view command_id) const;
  /// Did a person, and no rule, ask for the stop that this run holds?
  [[nodiscard]] bool stopped_by_person() const;
  [[nodiscard]] std::uint64_t received() const noexcept { return received_.load(); }
  [[nodiscard]] std::uint64_t refused() const noexcept { return refused_.load(); }

 private:
  struct Slot {
    core::Command command;
    bool seen = false;
  };
  static std::int32_t bits_of(const std::string& action, const Slot& slot);
  void withdraw(const std::string& action);
  bool accept(const core::Command& command) REQUIRES(mutex_);
  void refuse(const core::Command& command, std::string_view reason) REQUIRES(mutex_);
  void answer(const core::Command& command, std::string_view phase, std::string_view reason);
  [[nodiscard]] bool for_this_launch(const core::Command& command) const;
  std::string_view refusal(const core::Command& command, core::WallTime now) const REQUIRES(mutex_);
  void refresh() REQUIRES(mutex_);

  Session& session_;
  mutable core::Mutex mutex_;
  std::map<std::string, Slot, std::less<>> slots_ GUARDED_BY(mutex_);
  struct Handled {
    std::string command_id;
    std::uint64_t revision = 0;
    [[nodiscard]] bool same(const core::Command& command) const {
      return command_id == command.command_id && revision == command.revision;
    }
  };
  // Newest per slot. When another client of the node takes over, everything is read again.
  std::map<std::string, Handled, std::less<>> taken_ GUARDED_BY(mutex_);
  std::map<std::string, Handled, std::less<>> refusals_ GUARDED_BY(mutex_);
  std::set<std::string, std::less<>> registered_ GUARDED_BY(mutex_);
  // A loop writes where it stands and then reads what is wanted; the reading thread writes what is
  // wanted and then reads where the loop stands. In one total order (the default of atomics) at
  // least one of the two sees the other, so a rank never passes its step without either a stop or
  // a `too_late`.
  std::atomic<std::int32_t> bits_{0};
  std::atomic<std::int64_t> asked_{-1};
  std::atomic<std::uint64_t> received_{0};
  std::atomic<std::uint64_t> refused_{0};
};

}  // namespace tocsin::hook
