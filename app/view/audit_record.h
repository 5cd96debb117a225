// Who changed what: records of the topic `router-audit`.
#pragma once

#include <string>
#include <string_view>

#include "core/record.h"
#include "core/result.h"
#include "core/time.h"
#include "core/value.h"

namespace tocsin::app {

/// One change by a person or a program. It holds no secret.
struct AuditEntry {
  core::WallTime at{};
  std::string who;      // name of the token, or of the person
  std::string role;     // what let them; empty: nothing was asked
  std::string by;       // how they are known: token, session, proxy, command
  std::string source;   // address that it came from, or host of the command
  std::string what;     // "silence.set", "silence.ended", "issues.posted"
  std::string subject;  // id of what was changed
  core::Value before;   // null: it was not there
  core::Value after;    // null: it is gone
};

/// To be written together with the change, before it.
core::OutRecord audit_record(const AuditEntry& entry);
/// invalid_argument: it is none.
core::Result<AuditEntry> read_audit_record(std::string_view json);
core::Value audit_value(const AuditEntry& entry);

}  // namespace tocsin::app
