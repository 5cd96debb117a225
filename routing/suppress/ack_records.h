// Records `ack/<id>` of `router-control`: somebody takes issues on, or takes that back
// (docs/acknowledge.md). It holds nothing back by itself: the flush asks Acks.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "routing/suppress/acknowledgement.h"
#include "routing/suppress/controls.h"
#include "routing/tables/tables.h"

namespace tocsin::routing {

/// Its state is the table `acks`, which is restored and written with the other tables.
class AckRecords final : public ControlRecords {
 public:
  explicit AckRecords(Tables& tables) : acks_(tables.acks) {}

  core::Status apply(std::string_view id, std::optional<std::string_view> value,
                     core::WallTime now) override;
  void forget(core::WallTime now) override { acks_.forget(now); }
  void count(Stats& /*stats*/, core::WallTime /*now*/) const override {}

  core::Status restore(std::string_view /*id*/, std::string_view /*value*/) override {
    return core::ok();
  }
  void take(std::vector<StateRecord>& /*out*/) override {}
  void snapshot(std::vector<StateRecord>& /*out*/) const override {}

 private:
  Acks& acks_;
};

}  // namespace tocsin::routing
