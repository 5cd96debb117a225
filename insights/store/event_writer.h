// Events into the store, each with where it came from, in transactions that hold the positions too.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/command.h"
#include "core/identity.h"
#include "core/issue.h"
#include "core/notification.h"
#include "core/result.h"
#include "core/time.h"
#include "insights/store/kept_record.h"
#include "insights/store/set_aside.h"

namespace tocsin::insights {

class StoreDatabase;
class StoreLock;

/// The one writer of a store. Not thread-safe. What fails shows at commit(), which then has written
/// nothing.
class EventWriter {
 public:
  /// Opens or makes it. A file that is damaged or of another version is set aside, which `moved` tells,
  /// and begun anew; another program's file is failed_precondition. `source`: what is read; a store of
  /// something else is begun anew too. `condemned`: damage that was met in it; empty: none was.
  /// unavailable: another process writes it. resource_exhausted: the disk has no room.
  static core::Result<std::unique_ptr<EventWriter>> open(const std::string& path,
                                                         std::string_view source, SetAside& moved,
                                                         const std::string& condemned = "");
  ~EventWriter();
  EventWriter(const EventWriter&) = delete;
  EventWriter& operator=(const EventWriter&) = delete;

  /// Where to read on from.
  [[nodiscard]] std::vector<core::Position> positions();

  void saw(const KeptRecord& kept, const core::Issue& issue);
  void saw(const KeptRecord& kept, const core::JobEvent& job);
  void saw(const KeptRecord& kept, const core::RuleStatusEvent& rule);
  void saw(const KeptRecord& kept, const core::Command& command);
  void saw(const KeptRecord& kept, const core::Ack& ack);
  void saw(const KeptRecord& kept, const core::Delivery& delivery);
  /// A record that replaces the one of the same key: silences, acknowledgements, withdrawn commands.
  void saw_control(const KeptRecord& kept, std::string_view run);

  /// Makes durable what was seen together with the positions, and forgets the runs that changed.
  core::Status commit(const std::vector<core::Position>& positions);
  /// Runs of which something was seen since the last commit.
  [[nodiscard]] const std::set<std::string>& changed() const { return changed_; }

  /// Runs by uid that forget() leaves alone from now on, in place of those named before.
  void spare(std::set<std::string> runs) { spared_ = std::move(runs); }
  /// Forgets runs unheard of since before `before`, and the least lately heard ones while the file is
  /// larger than `max_bytes`; at most `most` runs at once. How many it has forgotten.
  core::Result<std::size_t> forget(core::WallTime before, std::uint64_t max_bytes,
                                   std::size_t most);

 private:
  EventWriter(std::unique_ptr<StoreDatabase> database, std::unique_ptr<StoreLock> lock);
  void begin();
  /// The row's number.
  std::int64_t keep(const KeptRecord& kept, std::string_view slot, std::string_view kind,
                    std::string_view run);
  void note_run(const core::RunUid& run);
  void hear_of_run(const core::Issue& issue, const std::string& run);
  void forget_run(const std::string& uid);
  struct OldRun {
    std::string uid;
    std::int64_t heard = 0;
  };
  /// The least lately heard one that is not spared.
  std::optional<OldRun> oldest_run();

  std::unique_ptr<StoreLock> lock_;
  std::unique_ptr<StoreDatabase> database_;
  bool open_ = false;  // a transaction is
  std::set<std::string> changed_;
  std::set<std::string> spared_;
  std::set<core::RunUid> known_runs_;  // some of those that have a row
  struct Statements;
  std::unique_ptr<Statements> do_;
};

}  // namespace tocsin::insights
