// Names of time zones: which may be asked for, and which one was meant.
#pragma once

#include <string>
#include <string_view>

namespace tocsin::routing {

/// May this name be looked up? The database takes it for a path: a name from outside must not lead
/// elsewhere, and "localtime" is another zone on each machine.
bool may_be_zone(std::string_view name) noexcept;
/// The zone of the database whose name is nearest; empty: none is near, or there is no database.
std::string nearest_zone(const std::string& name);

}  // namespace tocsin::routing
