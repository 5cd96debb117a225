// Sentences about the order of calls: a table of the findings that need no arithmetic.
#pragma once

#include <string_view>

namespace tocsin::rules {

/// `text` has "{model}", the class of the model, and "{count}", the finding's number. `listed`: names follow it.
struct ProtocolWords {
  std::string_view kind;
  std::string_view text;
  bool listed;
};

/// nullptr: a kind that the table does not have.
const ProtocolWords* protocol_words(std::string_view kind) noexcept;

}  // namespace tocsin::rules
