// What a person most likely got wrong where a file is not valid YAML. Internal to config.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "config/config.h"

namespace tocsin::config {

struct YamlFault {
  Location location;    // of the mistake, which may stand before the place where the parser gave up
  std::string message;  // what is wrong and how to mend it
};

/// The lines of one text, found once.
class Lines {
 public:
  explicit Lines(std::string_view text);
  /// Does the quoted text that begins at `where` end? yaml-cpp takes the end of the file for its end.
  [[nodiscard]] bool quote_is_closed(const Location& where) const;

 private:
  std::string_view text_;
  std::vector<std::size_t> begin_;  // of each line
};

/// `where` and `why` are what the parser said. Pure.
YamlFault explain_yaml(std::string_view text, const Location& where, const std::string& why);

}  // namespace tocsin::config
