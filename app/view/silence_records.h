// Records of `router-control` that begin, change or end a silence.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "core/record.h"
#include "core/time.h"
#include "core/value.h"
#include "routing/routing.h"

namespace tocsin::app {

/// `silences`, and what takes back those of `known` that ended long ago: who writes tidies up, since
/// nobody else may take a person's record back.
std::vector<core::OutRecord> silence_records(std::span<const routing::Silence> silences,
                                             const std::map<std::string, routing::Silence>& known,
                                             core::WallTime now);
/// What its record says, for the record of who changed it.
core::Value silence_fields(const routing::Silence& silence);
/// The same silence, ended now: its next version.
routing::Silence ended_silence(routing::Silence silence, core::WallTime now);
/// A silence that nobody has asked for before: gets its id, its first version and its times.
routing::Silence new_silence(routing::Silence asked, core::WallTime now);
/// What is to be written so that `asked` stands in the place of `old`: its next version, or, where the
/// change may not be made, its end and a new silence that replaces it. The last one is what stands.
std::vector<routing::Silence> changed_silence(const routing::Silence& old, routing::Silence asked,
                                              core::WallTime now);
/// "sil_…", by what it silences, who asked, and when.
std::string silence_id(const routing::Silence& silence);
/// pending, active or expired. One that recurs is active from its begin to its end.
std::string silence_state(const routing::Silence& silence, core::WallTime now);

}  // namespace tocsin::app
