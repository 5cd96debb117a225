// Private to this room: the CloudEvents envelope, written in binary mode, read in both modes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/fields/json_in.h"
#include "core/record.h"
#include "core/result.h"
#include "ingest/events/events.h"

namespace tocsin::ingest {

/// An envelope and its data, whichever mode it came in.
struct Opened {
  Envelope envelope;
  core::JsonTape json;
  std::uint32_t data = 0;  // where the data stands in it
};

/// Opens a record with a value. invalid_argument: no CloudEvent, an attribute missing, bad JSON.
core::Result<Opened> open_event(const core::RecordView& record, std::size_t max_bytes);
/// Opens the text of one structured event.
core::Result<Opened> open_structured(std::string_view json, std::size_t max_bytes);

/// A decimal sequence; producers may use other orderings, which this program then does not use.
std::optional<std::uint64_t> parse_sequence(std::string_view text);

/// Headers of binary mode; empty attributes are left out.
struct Attributes {
  std::string_view type;
  std::string source;
  std::string id;
  core::WallTime time{};
  std::string subject;
  std::string_view schema;  // "issue.v1"
  std::vector<std::pair<std::string, std::string>> extensions = {};
};
std::vector<std::pair<std::string, std::string>> binary_headers(const Attributes& from);

}  // namespace tocsin::ingest
