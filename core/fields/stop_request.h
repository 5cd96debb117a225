// The record of a stop that waits for a person's word.
#pragma once

#include <string>
#include <string_view>

#include "core/record.h"
#include "core/result.h"
#include "core/stop_request.h"

namespace tocsin::core {

/// The record, with its key.
OutRecord stop_request_record(const StopRequest& request);
std::string stop_request_json(const StopRequest& request);
/// invalid_argument: no such record. `id`, `run`, `state` are there, and the state is one of the known.
Result<StopRequest> read_stop_request(std::string_view json);

}  // namespace tocsin::core
