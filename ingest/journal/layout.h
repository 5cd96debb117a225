// Which topic lies in which of the journal's two files, under which table, and for how long.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "core/time.h"
#include "ingest/transport.h"

namespace tocsin::ingest {

/// Training processes, collectors and whoever acknowledges a command write `telemetry.db`; what
/// tocsin itself writes, and every position, is in `control.db`, so that one transaction holds it.
enum class JournalFile : std::uint8_t { telemetry, control };
inline constexpr JournalFile kJournalFiles[] = {JournalFile::telemetry, JournalFile::control};

/// "DIR/telemetry.db".
std::string journal_path(const std::string& directory, JournalFile file);

struct JournalTopic {
  std::string name;
  std::string table;  // the name with '_' for '-': no quotes needed in SQL
  JournalFile file = JournalFile::control;
  bool compacted = false;
  std::optional<core::Duration> retention;  // nullopt: only compaction takes records
  std::size_t max_bytes = 0;                // of one record's key and value
};
using JournalTopics = std::map<std::string, JournalTopic, std::less<>>;

/// The topic plan as the journal keeps it.
JournalTopics journal_topics(const TopicsConfig& cfg);

}  // namespace tocsin::ingest
