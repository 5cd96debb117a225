// The records of notes on runs.
#pragma once

#include <string>
#include <string_view>

#include "core/record.h"
#include "core/result.h"
#include "core/run_note.h"

namespace tocsin::core {

OutRecord run_note_record(const RunNote& note);
/// note_…
std::string run_note_id(const RunNote& note);

std::string run_note_json(const RunNote& note);
/// invalid_argument: it is none, `run` is no uid, it names nobody, says nothing, or is too long.
Result<RunNote> read_run_note(std::string_view json);

}  // namespace tocsin::core
