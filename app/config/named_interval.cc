#include "app/config/named_interval.h"

#include <vector>

#include "app/config/config_path.h"
#include "config/config.h"
#include "core/text.h"
#include "core/visible_text.h"

namespace tocsin::app {

core::Result<routing::TimeInterval> named_interval(const std::string& config_file,
                                                   const std::string& name) {
  const std::string file = config_path(config_file);
  std::vector<routing::TimeInterval> intervals;
  config::Diagnostics problems;
  config::read_own_sections(
      file, config::process_environment(),
      [&](config::Reader& root) { routing::read_time_intervals(root, intervals); }, problems);
  for (const config::Diagnostic& item : problems.items()) {
    if (item.grade == config::Grade::error) return core::invalid_argument(config::to_text(item));
  }
  std::vector<std::string> names;
  for (routing::TimeInterval& one : intervals) {
    if (one.name == name) return std::move(one);
    names.push_back(one.name);
  }
  const std::string near = core::nearest(name, names);
  return core::not_found(file + " has no time interval \"" + core::visible(name, 100) + "\"" +
                         (near.empty() ? "" : "; did you mean \"" + near + "\"?"));
}

}  // namespace tocsin::app
