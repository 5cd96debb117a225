#include "app/cli/command_audit.h"

#include <utility>

#include "app/process/person.h"
#include "app/view/audit_record.h"
#include "core/json.h"

namespace tocsin::app {

core::OutRecord command_audit(std::string what, std::string subject, core::Value before,
                              core::Value after, core::WallTime now, const std::string& who) {
  const std::string person = this_person();
  AuditEntry entry;
  entry.at = now;
  entry.who = who.empty() ? person : who;
  entry.by = "command";
  entry.source = person.substr(person.find('@') + 1);
  entry.what = std::move(what);
  entry.subject = std::move(subject);
  entry.before = std::move(before);
  entry.after = std::move(after);
  return audit_record(entry);
}

core::Value value_of(const core::OutRecord& record) {
  if (!record.value) return {};
  auto out = core::parse_json(*record.value, record.value->size());
  return out ? std::move(*out) : core::Value();
}

}  // namespace tocsin::app
