// Records `approval/<command id>`: stops that wait for a person's word. The router only says what is wrong
// with one; who asks and who writes the command reads the topic itself.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "core/fields/stop_request.h"
#include "core/result.h"
#include "core/time.h"
#include "routing/suppress/controls.h"

namespace tocsin::routing {

class Approvals final : public ControlRecords {
 public:
  core::Status apply(std::string_view id, std::optional<std::string_view> value,
                     core::WallTime /*now*/) override {
    if (!value) return core::ok();
    const auto request = core::read_stop_request(*value);
    if (!request) return request.error();
    if (request->id != id) return core::invalid_argument("its id is not that of its key");
    return core::ok();
  }
  void forget(core::WallTime /*now*/) override {}
  void count(Stats& /*stats*/, core::WallTime /*now*/) const override {}
  core::Status restore(std::string_view /*id*/, std::string_view /*value*/) override {
    return core::ok();
  }
  void take(std::vector<StateRecord>& /*out*/) override {}
  void snapshot(std::vector<StateRecord>& /*out*/) const override {}
};

}  // namespace tocsin::routing
