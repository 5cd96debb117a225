// Records that could not be read, folded from `dlq`, and what people did about them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/record.h"
#include "core/result.h"
#include "core/time.h"
#include "core/value.h"

namespace tocsin::app {

/// Headers of a record of `dlq` that says what a person did about others.
namespace dlq_act {
inline constexpr std::string_view kAct = "act";  // replay, discard
inline constexpr std::string_view kOf = "act-of";
inline constexpr std::string_view kBy = "by";
inline constexpr std::string_view kNote = "note";
}  // namespace dlq_act

struct RefusedRecord {
  std::string id;  // "<topic>/<partition>@<offset>" of the record itself
  std::string topic;
  std::int32_t partition = 0;
  core::WallTime at{};         // when it was refused
  core::WallTime published{};  // when it was written
  std::string code;
  std::string detail;
  std::string component;
  std::optional<std::string> key;
  std::uint64_t size = 0;                                    // bytes of its value
  std::vector<std::pair<std::string, std::string>> headers;  // those that were kept
  std::string bytes;  // its value; empty where it was not asked for
  std::string act;    // replay, discard; empty: nobody has seen to it
  std::string by;
  std::string note;
};

class RefusedRecords {
 public:
  /// `whole`: ids whose bytes are kept.
  explicit RefusedRecords(std::set<std::string> whole = {}) : whole_(std::move(whole)) {}
  /// Of `dlq`, in the order of its partition.
  void apply(const core::RecordView& record);
  /// By id. A record that several stages refused stands here once.
  [[nodiscard]] const std::map<std::string, RefusedRecord>& records() const { return records_; }

 private:
  std::set<std::string> whole_;
  std::map<std::string, RefusedRecord> records_;
};

/// The same bytes under the same key and headers, to the same partition of the same topic.
/// failed_precondition: they were too long to be kept.
core::Result<core::OutRecord> replay_of_refused(const RefusedRecord& record);
/// Says in `dlq` what was done about it: `tocsin status` no longer counts it.
core::OutRecord refused_act_record(const RefusedRecord& record, const std::string& act,
                                   const std::string& by, const std::string& note);

std::string refused_text(const RefusedRecord& record);
core::Value refused_value(const RefusedRecord& record, bool whole);

}  // namespace tocsin::app
