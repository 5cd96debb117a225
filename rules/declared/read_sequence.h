// The keys of a rule over other rules: sequence, within, without.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "config/config.h"
#include "rules/contract/rule.h"

namespace tocsin::rules::declared {

/// As written.
struct SequenceKeys {
  std::vector<std::string> sequence;
  std::vector<std::string> without;
  std::string within;
  std::vector<std::string> by;
  std::optional<std::string> evidence;
};

void read_sequence_keys(config::Reader& item, SequenceKeys& keys);
/// nullptr: something is wrong, and was reported.
std::shared_ptr<Program> sequence_of(config::Reader& item, const SequenceKeys& keys);

}  // namespace tocsin::rules::declared
