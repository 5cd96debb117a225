// Commands to runs and to nodes' agents, and their answers, from the store of events.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "insights/store/kept_record.h"

namespace tocsin::insights {

class StoreDatabase;

/// Made for one request, as EventReader.
class CommandReader {
 public:
  /// unavailable: there is no store yet, or it cannot be read.
  static core::Result<std::unique_ptr<CommandReader>> open(const std::string& path);
  ~CommandReader();

  /// What was asked of a node last, by its key on `commands`; nullopt: nothing, or it was withdrawn.
  std::optional<KeptRecord> asked(std::string_view key);
  /// The newest answer of a node's agent to this command; nullopt: there is none.
  std::optional<KeptRecord> answer(const std::string& command_id);

  /// Commands whose newest record was written up to `until` (microseconds, UTC), the newest first. `run`: only
  /// those to it; empty: to all.
  std::vector<KeptRecord> commands(std::int64_t until, const std::string& run, std::size_t most);
  /// All answers to it, of each phase of a rank the newest, in order of time.
  std::vector<KeptRecord> answers(const std::string& command_id);
  /// When the slot was withdrawn last, microseconds; nullopt: it was not.
  std::optional<std::int64_t> withdrawn(std::string_view key);
  /// What failed while reading, if anything did.
  core::Status failure();

 private:
  explicit CommandReader(std::unique_ptr<StoreDatabase> database);
  std::unique_ptr<StoreDatabase> database_;
};

}  // namespace tocsin::insights
