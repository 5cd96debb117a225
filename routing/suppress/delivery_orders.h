// Control records that delivery obeys (app reads them for it): routing knows that there are such, and no more.
#pragma once

#include "routing/suppress/controls.h"

namespace tocsin::routing {

class DeliveryOrders final : public ControlRecords {
 public:
  core::Status apply(std::string_view /*id*/, std::optional<std::string_view> /*value*/,
                     core::WallTime /*now*/) override {
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
