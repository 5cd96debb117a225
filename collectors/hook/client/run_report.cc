#include "collectors/hook/client/run_report.h"

#include <fcntl.h>
#include <unistd.h>

#include <utility>

namespace tocsin::hook {

void RunReport::append(const core::ValueMap& fact) const {
  if (path_.empty()) return;
  // Never made here: the file belongs to whoever asked for it, and may be gone with it.
  const int file = open(path_.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  if (file < 0) return;
  const std::string line = core::to_json(fact) + "\n";
  (void)!write(file, line.data(), line.size());  // one write: lines of several ranks never mix
  close(file);
}

void RunReport::opened(const Identity& identity, std::uint64_t incarnation, bool judges) const {
  core::ValueMap fact{{"event", "opened"},
                      {"run", core::to_text(identity.run)},
                      {"attempt", std::int64_t{identity.attempt}},
                      {"worker", identity.worker},
                      {"incarnation", std::to_string(incarnation)},
                      {"pid", identity.pid},
                      {"pid_start", identity.pid_start},
                      {"boot_id", identity.boot_id}};
  if (judges) fact.emplace_back("judges", true);
  append(fact);
}

void RunReport::stopping(std::uint64_t incarnation) const {
  append({{"event", "stopping"}, {"incarnation", std::to_string(incarnation)}});
}

void RunReport::ended(std::uint64_t incarnation, bool told) const {
  append({{"event", "ended"}, {"incarnation", std::to_string(incarnation)}, {"told", told}});
}

}  // namespace tocsin::hook
