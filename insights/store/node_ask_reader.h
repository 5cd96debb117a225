// What a node's agent was asked, and what it answered, from the store of events.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "core/result.h"
#include "insights/store/kept_record.h"

namespace tocsin::insights {

class StoreDatabase;

/// Made for one request, as EventReader.
class NodeAskReader {
 public:
  /// unavailable: there is no store yet, or it cannot be read.
  static core::Result<std::unique_ptr<NodeAskReader>> open(const std::string& path);
  ~NodeAskReader();

  /// The newest record of `commands` with this key; nullopt: there is none, or it was withdrawn.
  std::optional<KeptRecord> asked(std::string_view key);
  /// The newest answer to this command; nullopt: there is none.
  std::optional<KeptRecord> answer(const std::string& command_id);
  /// What failed while reading, if anything did.
  core::Status failure();

 private:
  explicit NodeAskReader(std::unique_ptr<StoreDatabase> database);
  std::unique_ptr<StoreDatabase> database_;
};

}  // namespace tocsin::insights
