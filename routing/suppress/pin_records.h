// Records `pin/<run uid>`: runs that the stores of the page keep. The router only says what is wrong with one.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "core/fields/run_pin.h"
#include "core/result.h"
#include "routing/suppress/feedback_records.h"

namespace tocsin::routing {

class PinRecords final : public FeedbackRecords {
  [[nodiscard]] core::Result<std::string> key_of(std::string_view json) const override {
    auto pin = core::read_run_pin(json);
    if (!pin) return pin.error();
    return std::move(pin->run);
  }
};

}  // namespace tocsin::routing
