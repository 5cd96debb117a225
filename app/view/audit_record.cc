#include "app/view/audit_record.h"

#include "core/audit_topic.h"
#include "core/json.h"

namespace tocsin::app {
namespace {

constexpr std::size_t kMostOfAnAuditRecord = 256 * 1024;

}  // namespace

core::Value audit_value(const AuditEntry& entry) {
  return core::ValueMap{{"time", core::to_rfc3339(entry.at)},
                        {"who", entry.who},
                        {"role", entry.role},
                        {"by", entry.by},
                        {"source", entry.source},
                        {"what", entry.what},
                        {"subject", entry.subject},
                        {"before", entry.before},
                        {"after", entry.after}};
}

core::OutRecord audit_record(const AuditEntry& entry) {
  core::OutRecord out{core::topic::kRouterAudit, entry.what + "/" + entry.subject,
                      core::to_json(audit_value(entry))};
  out.partition = 0;
  return out;
}

core::Result<AuditEntry> read_audit_record(std::string_view json) {
  const auto value = core::parse_json(json, kMostOfAnAuditRecord);
  if (!value) return value.error();
  AuditEntry out;
  const auto at = core::parse_rfc3339(core::text_at(*value, "time"));
  if (!at) return core::invalid_argument("time: expected a time");
  out.at = *at;
  out.who = core::text_at(*value, "who");
  out.role = core::text_at(*value, "role");
  out.by = core::text_at(*value, "by");
  out.source = core::text_at(*value, "source");
  out.what = core::text_at(*value, "what");
  out.subject = core::text_at(*value, "subject");
  if (out.what.empty()) return core::invalid_argument("what: it is missing");
  if (const core::Value* before = core::find(*value, "before")) out.before = *before;
  if (const core::Value* after = core::find(*value, "after")) out.after = *after;
  return out;
}

}  // namespace tocsin::app
