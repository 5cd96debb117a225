// Records of `router-control` that begin, change or end a silence.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/record.h"
#include "core/time.h"
#include "core/value.h"
#include "routing/routing.h"

namespace tocsin::app {

/// `silence`, and what takes back those of `known` that ended long ago: who writes tidies up, since
/// nobody else may take a person's record back.
std::vector<core::OutRecord> silence_records(const routing::Silence& silence,
                                             const std::map<std::string, routing::Silence>& known,
                                             core::WallTime now);
/// What its record says, for the record of who changed it.
core::Value silence_fields(const routing::Silence& silence);
/// The same silence, ended now.
routing::Silence ended_silence(routing::Silence silence, core::WallTime now);
/// "sil_…", by what it silences, who asked, and when.
std::string silence_id(const routing::Silence& silence);
/// pending, active or expired
std::string silence_state(const routing::Silence& silence, core::WallTime now);

}  // namespace tocsin::app
