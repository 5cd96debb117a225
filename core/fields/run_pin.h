// The records of pins on runs.
#pragma once

#include <string>
#include <string_view>

#include "core/record.h"
#include "core/result.h"
#include "core/run_pin.h"

namespace tocsin::core {

/// `pin/<run uid>`
std::string pin_key(std::string_view run);
OutRecord pin_record(const RunPin& pin);
/// Takes the pin of this run away.
OutRecord pin_tombstone(std::string_view run);

std::string pin_json(const RunPin& pin);
/// invalid_argument: it is none, `run` is no uid, or it names nobody.
Result<RunPin> read_run_pin(std::string_view json);

}  // namespace tocsin::core
