// A place of records in one word, as people give it: `out` of the hook, TOCSIN_OUT, --out, --from.
#pragma once

#include <string>
#include <string_view>

#include "core/result.h"

namespace tocsin::hook {

/// One of the two.
struct Place {
  std::string brokers;    // "host:9092,other:9092"
  std::string directory;  // of a journal
};

/// "kafka://host:9092[,host:9092]" or a directory. invalid_argument for what is neither, or is most likely meant as
/// the other one ("localhost:9092", "kafka:/host", "http://host", "C:\data", ""): with the nearest right spelling.
/// A path with a '/' in front, or "./", is a directory whatever it looks like. `what` names the setting.
core::Result<Place> parse_place(std::string_view what, std::string_view text);
/// The same where only a directory can be meant.
core::Status check_directory(std::string_view what, std::string_view text);
/// "host:9092[,host:9092]", as TOCSIN_BROKERS has it. invalid_argument with the nearest right spelling.
core::Status check_brokers(std::string_view what, std::string_view text);

}  // namespace tocsin::hook
