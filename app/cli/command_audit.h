// What a person changes by a command, as a record of `router-audit`.
#pragma once

#include <string>

#include "core/record.h"
#include "core/time.h"
#include "core/value.h"

namespace tocsin::app {

/// To be written before the change it tells of. `before` null: it was not there; `after` null: it is
/// gone. The person and the host are those of this process; `who`: somebody else, in whose name it is.
core::OutRecord command_audit(std::string what, std::string subject, core::Value before,
                              core::Value after, core::WallTime now, const std::string& who = {});

/// The value of a record as the audit shows it: its JSON; null: it has none.
core::Value value_of(const core::OutRecord& record);

}  // namespace tocsin::app
